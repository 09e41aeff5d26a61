"""Reads a package of AOTInductor into facts: for which machine, CPU and device it was compiled, what it asks of torch.

The machine and the functions of torch stand in its library; the rest in what torch has written beside it, which 2.6.0
does not yet.
"""

from typing import Any

from harness.artifacts.archive.elf import read_library
from harness.artifacts.archive.limits import Limits, Source
from harness.artifacts.archive.members import Directory, open_member, read_member
from harness.artifacts.archive.plain_json import read_json
from harness.core.archive import ArchiveProblem, ProgramContainer, ProgramFacts

TORCHS_FUNCTIONS = ("aoti_torch_", "torch_")
"""How the functions of torch's C interface for compiled code begin: torch/csrc/inductor/aoti_torch/c and stable/c."""
INSTRUCTIONS = {"avx512": "avx512f", "neon": "asimd"}
"""Where torch names them otherwise than ``/proc/cpuinfo``."""
METADATA = "_metadata.json"


def read_package(
    source: Source, directory: Directory, limits: Limits, version: str
) -> tuple[ProgramFacts, tuple[ArchiveProblem, ...]]:
    """Return what a package tells, and what could not be understood. Raises ``CannotRead``: a member is damaged."""
    written: dict[str, Any] = {}
    operators: set[str] = set()
    functions: set[str] = set()
    machines: list[str] = []
    problems = []
    for name, member in sorted(directory.inside.items()):
        if name.endswith(".so"):
            library = read_library(open_member(source, member, limits), limits)
            if library is None:
                problems.append(ArchiveProblem(kind="no_library", text=f"{name} is no library of Linux"))
                continue
            machines.append(library.machine)
            functions |= {name for name in library.takes if name.startswith(TORCHS_FUNCTIONS)}
        elif name.endswith(".json"):
            content = read_json(name, read_member(source, member, limits.program_bytes, limits))
            if name.endswith(METADATA):
                written |= content if isinstance(content, dict) else {}
            else:
                operators |= _operators(content)
    if not machines and not problems:
        problems.append(ArchiveProblem(kind="member_missing", text="*.so is not there: it holds no compiled code"))
    words = _text(written, "AOTI_CPU_ISA").lower().split()
    facts = ProgramFacts(
        container=ProgramContainer.COMPILED,
        archive_version=version,
        operators=tuple(sorted(operators)),
        functions=tuple(sorted(functions)),
        machine=machines[0] if machines else _text(written, "AOTI_MACHINE"),
        instructions=tuple(INSTRUCTIONS.get(word, word) for word in words if word != "invalid_vec_isa"),
        on=_text(written, "AOTI_DEVICE_KEY"),
    )
    return facts, tuple(problems)


def _text(written: dict[str, Any], key: str) -> str:
    value = written.get(key)
    return value if isinstance(value, str) else ""


def _operators(content: Any) -> set[str]:
    nodes = content.get("nodes") if isinstance(content, dict) else None
    operators = set()
    for entry in nodes if isinstance(nodes, list) else ():
        node = entry.get("node") if isinstance(entry, dict) else None
        target = node.get("target") if isinstance(node, dict) else None
        if isinstance(target, str):
            operators.add(target.removeprefix("torch.ops.").replace("::", "."))
    return operators
