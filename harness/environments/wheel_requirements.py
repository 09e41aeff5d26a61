"""What the package index's wheels of torch ask of a machine: CUDA, GPU architectures, glibc; by release line. Pure.

For Linux on x86-64. The table is for releases that are not built yet; of a built one its own files tell
(``look_at_wheel``). Sources, by column:

- CUDA: the ``nvidia-cuda-runtime*`` or ``cuda-toolkit`` that each wheel requires, read from the index's metadata with
  ``uv pip compile`` for one release of every line; 2.15 from its ``torch/version.py``, for it says 13.2 there.
- Architectures: read from the wheels of 1.13, 2.1, 2.3, 2.6, 2.11 and 2.15 themselves. 2.0 is taken to be like 1.13,
  for it has the same CUDA; 2.7 from https://github.com/pytorch/pytorch/issues/157517; 2.8 to 2.10 from
  ``.ci/manywheel/build_cuda.sh`` of release/2.8, until 2.11 left out 7.0.
- glibc: the highest symbol version that the libraries of 1.13, 2.1, 2.3, 2.6, 2.11 and 2.15 ask for (2.17 and 2.28);
  wheels are tagged ``manylinux_2_28`` from 2.7 on.
"""

import mmap
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from packaging.version import InvalidVersion, Version

from harness.environments.candidate_facts import Wheel
from harness.machine.files import text_of

_MAXWELL_TO_AMPERE: Final = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86")
_TURING_TO_BLACKWELL: Final = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


class Row(NamedTuple):
    """What holds from release line ``since`` on, until the next row."""

    since: tuple[int, int]
    cuda: str
    architectures: tuple[str, ...]
    glibc: str


WHEELS: Final[Sequence[Row]] = (
    Row((1, 13), "11.7", ("sm_37", *_MAXWELL_TO_AMPERE), "2.17"),
    Row((2, 1), "12.1", (*_MAXWELL_TO_AMPERE, "sm_90"), "2.17"),
    Row((2, 5), "12.4", (*_MAXWELL_TO_AMPERE, "sm_90"), "2.17"),
    Row((2, 7), "12.6", (*_MAXWELL_TO_AMPERE, "sm_90"), "2.28"),
    Row((2, 8), "12.8", ("sm_70", *_TURING_TO_BLACKWELL), "2.28"),
    Row((2, 11), "13.0", _TURING_TO_BLACKWELL, "2.28"),
    Row((2, 15), "13.2", _TURING_TO_BLACKWELL, "2.28"),
)

SOURCE: Final = "the gate's table"

LAST_LINE: Final = (2, 15)
"""The last release line that was looked at."""


def wheel_of(release: str) -> Wheel | None:
    """Return what the wheel of ``release`` asks for; None where the table does not know it.

    A build with a suffix other than ``+cpu`` is not the index's own: ``2.6.0+cu118`` has the architectures of another
    table, so only its CUDA is known.
    """
    try:
        version = Version(release)
    except InvalidVersion:
        return None
    line = (version.major, version.minor)
    rows = [row for row in WHEELS if row.since <= line]
    if not rows or line > LAST_LINE:
        return None
    row, suffix = rows[-1], version.local or ""
    if suffix == "cpu":
        return Wheel(cuda=None, glibc=row.glibc, source=SOURCE)
    if suffix:
        cuda = cuda_of_suffix(suffix)
        return Wheel(cuda=cuda, glibc=row.glibc, source=SOURCE) if cuda else None
    return Wheel(cuda=row.cuda, architectures=row.architectures, glibc=row.glibc, source=SOURCE)


def cuda_of_suffix(suffix: str) -> str | None:
    """Return ``"12.4"`` for ``"cu124"``; None for what is no CUDA build."""
    digits = suffix.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}" if digits != suffix and digits.isdigit() and len(digits) > 1 else None


INSTALLED: Final = "the installed wheel"

_CUDA: Final = re.compile(r"^cuda\b[^=\n]*=\s*(?:'([\d.]+)'|None)", re.MULTILINE)
_GLIBC: Final = re.compile(r"^Tag: \S*manylinux_(\d+)_(\d+)_", re.MULTILINE)
# torch/csrc/cuda/Module.cpp keeps the architectures as one string: what torch.cuda.get_arch_list() splits.
_ARCHITECTURES: Final = re.compile(rb"\0((?:(?:sm|compute)_\d+[af]? ?)+)\0")


def look_at_wheel(site: Path) -> Wheel | None:
    """Return what the torch in ``site``, a site-packages folder, asks for; None where there is none.

    Reads ``torch/version.py``, the tag of the wheel, and the list of architectures out of ``libtorch_python.so``
    (30 MB; 60 ms).
    """
    match = _CUDA.search(text_of(site / "torch" / "version.py"))
    if match is None:
        return None
    return Wheel(
        cuda=match[1],
        architectures=_architectures(site / "torch" / "lib" / "libtorch_python.so") if match[1] else (),
        glibc=_glibc(site),
        source=INSTALLED,
    )


def site_of(interpreter: Path) -> Path | None:
    """Return the site-packages folder beside an environment's interpreter, without starting it."""
    return next(iter(sorted(interpreter.parent.parent.glob("lib/python3.*/site-packages"))), None)


def _glibc(site: Path) -> str | None:
    """Return the oldest glibc from the wheel's tag; ``linux_x86_64`` and ``manylinux1`` tell nothing true."""
    for path in sorted(site.glob("torch-*.dist-info/WHEEL")):
        versions = [(int(major), int(minor)) for major, minor in _GLIBC.findall(text_of(path))]
        if versions:
            return ".".join(map(str, min(versions)))
    return None


def _architectures(library: Path) -> tuple[str, ...]:
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = _ARCHITECTURES.search(content)
            return tuple(match[1].decode().split()) if match else ()
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return ()
