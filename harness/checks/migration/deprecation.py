"""What releases say of TorchScript and of its operators: facts that were seen in them, each with its source. Pure.

Seen in 2.6.0, 2.9.1, 2.10.0, 2.11.0, 2.13.0, 2.14.0 and 2.15.0: an archive was loaded with warnings shown, operators
were called, and the source of ``torch.jit.load`` was read. Tests see it again in the releases that they install.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from harness.core.errors import GateError
from harness.core.migration import ReleaseFact
from harness.environments.pythons import LAST_KNOWN_RELEASE, Minor, PythonRange, python_range

SOURCE: Final = "https://github.com/pytorch/pytorch/blob/v{}.0/torch/jit/_serialization.py"
WHEELS: Final = "wheels of the package index for Linux x86-64, docs/guide/environments.md"

# First release line that says it -> what loading an archive prints there, on a Python that torch supports it on.
ON_LOAD: Final[Sequence[tuple[Minor, str]]] = (
    ((2, 10), "DeprecationWarning: `torch.jit.load` is deprecated. Please switch to `torch.export`."),
    ((2, 14), "FutureWarning: `torch.jit.load` is deprecated. Please switch to `torch.export`."),
)
SAYS_NO_3_14: Final[Minor] = (2, 10)
ON_3_14: Final = "`torch.jit.load` is not supported in Python 3.14+ and may break"


class Deprecated(NamedTuple):
    """An operator that releases still have and whose every first call warns.

    ``since``: the first release line of those that were looked at in which it does; ``instead``: what to write, as the
    warning says it; empty where that says nothing.
    """

    since: Minor
    instead: str = ""


QUANTIZED: Final = Deprecated((2, 13), "the float module, quantized by PT2E (torchao); pytorch issue 184982")
# Known by their warnings, "... is deprecated"; what warns of some arguments only is left out.
OPERATORS: Final[Mapping[str, Deprecated]] = {
    "aten::_aminmax": Deprecated((2, 6), "aminmax"),
    "aten::_lu_with_info": Deprecated((2, 6), "torch.linalg.lu_factor"),
    "aten::chain_matmul": Deprecated((2, 6), "torch.linalg.multi_dot"),
    "aten::cholesky": Deprecated((2, 6), "torch.linalg.cholesky"),
    "aten::fbgemm_linear_quantize_weight": Deprecated((2, 6)),
    "aten::fbgemm_pack_gemm_matrix_fp16": Deprecated((2, 6)),
    "aten::fbgemm_pack_quantized_matrix": Deprecated((2, 6)),
    "aten::frobenius_norm": Deprecated((2, 6), "torch.linalg.vector_norm"),
    "aten::lu_solve": Deprecated((2, 6), "torch.linalg.lu_solve"),
    "aten::nuclear_norm": Deprecated((2, 6), "torch.linalg.matrix_norm"),
    "aten::qr": Deprecated((2, 6), "torch.linalg.qr"),
    "aten::quantize_per_channel": QUANTIZED,
    "aten::quantize_per_tensor": QUANTIZED,
    "aten::triangular_solve": Deprecated((2, 6), "torch.linalg.solve_triangular"),
}


def line_of(torch: str) -> Minor:
    """Return ``(2, 15)`` of ``"2.15.0+cpu"``; ``(0, 0)`` of what is no version."""
    match = re.match(r"(\d+)\.(\d+)", torch)
    return (int(match[1]), int(match[2])) if match is not None else (0, 0)


def release_facts(name: str, torch: str) -> tuple[ReleaseFact, ...]:
    """Return what is known of TorchScript in a release; nothing of one newer than all that were looked at."""
    line = line_of(torch)
    if not (0, 0) < line <= line_of(LAST_KNOWN_RELEASE):
        return ()
    warnings = [warning for since, warning in ON_LOAD if since <= line]
    source = SOURCE.format(".".join(map(str, line)))
    load = warnings[-1] if warnings else "loading prints no warning"
    facts = [ReleaseFact(release=name, text=load, source=source)]
    if pythons := _pythons(torch):
        refuses = f"; on 3.14 it says: {ON_3_14}" if line >= SAYS_NO_3_14 else ""
        facts.append(ReleaseFact(release=name, text=f"{pythons}{refuses}", source=WHEELS))
    return tuple(facts)


def _pythons(torch: str) -> PythonRange | None:
    try:
        return python_range(torch)
    except GateError:  # older than every wheel in the table
        return None


def deprecated_in(torch: str, operators: Sequence[str]) -> dict[str, str]:
    """Return those of the operators that a release deprecates -> what to write instead, empty where nobody says."""
    line = line_of(torch)
    return {name: OPERATORS[name].instead for name in operators if name in OPERATORS and OPERATORS[name].since <= line}
