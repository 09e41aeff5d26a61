"""Reads a package of AOTInductor into facts: for which machine, CPU and device it was compiled, what it calls by name.

The machine stands in the header of its library; the rest in what torch has written beside it, which 2.6.0 does not yet.
"""

import json
import struct
from typing import Any

from harness.archive.limits import CannotRead, Limits, Source
from harness.archive.members import Directory, read_member
from harness.domain.archive import ProgramContainer, ProgramFacts

ELF, ELF_HEADER = b"\x7fELF", 20
LITTLE = 1
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x15: "ppc64le", 0x16: "s390x", 0xF3: "riscv64"}
INSTRUCTIONS = {"avx512": "avx512f", "neon": "asimd"}
"""Where torch names them otherwise than ``/proc/cpuinfo``."""
METADATA = "_metadata.json"


def read_package(source: Source, directory: Directory, limits: Limits, version: str) -> ProgramFacts:
    """Return what a package tells.

    Raises:
        CannotRead: a member is damaged, or what should be JSON is none.
    """
    written: dict[str, Any] = {}
    operators: set[str] = set()
    machine = ""
    for name, member in sorted(directory.inside.items()):
        if name.endswith(".so") and not machine and member.size <= limits.program_bytes:
            machine = _machine(read_member(source, member, limits.program_bytes, limits)[:ELF_HEADER])
        elif name.endswith(".json"):
            content = _json(name, read_member(source, member, limits.program_bytes, limits))
            if name.endswith(METADATA):
                written |= content if isinstance(content, dict) else {}
            else:
                operators |= _operators(content)
    words = _text(written, "AOTI_CPU_ISA").lower().split()
    return ProgramFacts(
        container=ProgramContainer.COMPILED,
        archive_version=version,
        operators=tuple(sorted(operators)),
        machine=machine or _text(written, "AOTI_MACHINE"),
        instructions=tuple(INSTRUCTIONS.get(word, word) for word in words if word != "invalid_vec_isa"),
        on=_text(written, "AOTI_DEVICE_KEY"),
    )


def _machine(header: bytes) -> str:
    if len(header) < ELF_HEADER or not header.startswith(ELF):
        return ""
    (number,) = struct.unpack_from("<H" if header[5] == LITTLE else ">H", header, 18)
    return MACHINES.get(number, f"ELF machine {number}")


def _json(name: str, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CannotRead("damaged", f"{name!r} is no JSON: {error}") from None


def _text(written: dict[str, Any], key: str) -> str:
    value = written.get(key)
    return value if isinstance(value, str) else ""


def _operators(content: Any) -> set[str]:
    """Return the operators that are called by name: of ``{"nodes": [{"node": {"target": ...}}]}``."""
    nodes = content.get("nodes") if isinstance(content, dict) else None
    found = set()
    for entry in nodes if isinstance(nodes, list) else ():
        node = entry.get("node") if isinstance(entry, dict) else None
        target = node.get("target") if isinstance(node, dict) else None
        if isinstance(target, str):
            found.add(target.removeprefix("torch.ops.").replace("::", "."))
    return found
