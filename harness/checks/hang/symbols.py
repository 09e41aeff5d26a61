"""Names of functions from the symbol tables of ELF files, read here: no debugger needs to be installed.

The wheels of torch come with their full symbol tables (530 000 functions in libtorch_cpu.so), so that this finds the
local functions and templates too, which a process does not know of itself. 40 ms for that library.
"""

import mmap
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from harness.checks.hang.stack_formats import Names

_FULL, _DYNAMIC = 2, 11  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTIONS: Final = (0, 2, 10)  # STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC
_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_NESTED = re.compile(r"_ZN[KVrRO]*(St)?L?(?=\d)")
_LENGTH = re.compile(r"L?(\d+)")
_SIMPLE = re.compile(r"_ZL?(?=\d)")
_TOKEN = re.compile(
    r"S[0-9A-Z]*_|S[tabsiod]|T\d*_|L[a-z]n?\d+E|(?P<length>\d+)|(?P<open>[INXJF])|(?P<close>E)|[A-Za-z_]"
)


def look_up(wanted: Mapping[str, Iterable[int]]) -> Names:
    """Return the mangled names of the functions at these addresses; a file that cannot be read names none."""
    names: dict[tuple[str, int], str] = {}
    for path, offsets in wanted.items():
        try:
            functions = function_names(Path(path), offsets)
        except (OSError, ValueError, IndexError, OverflowError, struct.error):
            continue
        names.update({(path, offset): name for offset, name in functions.items()})
    return names


def function_names(path: Path, offsets: Iterable[int]) -> dict[int, str]:
    """Return the name of the function that contains each address, for those that lie in one.

    ``path``: a 64-bit little-endian ELF file. Raises ``OSError``: the file cannot be read; ``ValueError``,
    ``IndexError``, ``OverflowError``, ``struct.error``: it is no such file, or a damaged one.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as image:
        if image[:6] != b"\x7fELF\x02\x01":
            raise ValueError(path)
        names: dict[int, str] = {}
        for kind in (_FULL, _DYNAMIC):
            missing = sorted(set(offsets) - set(names))
            if missing:
                names.update(_from_table(image, kind, missing))
        return names


def _from_table(image: mmap.mmap, kind: int, offsets: list[int]) -> dict[int, str]:
    sections = list(_sections(image))
    names: dict[int, str] = {}
    for section_kind, begin, size, link in sections:
        if section_kind != kind:
            continue
        strings = sections[link][1]
        table = np.frombuffer(image[begin : begin + size], _SYMBOL)
        wanted = np.array(offsets, np.uint64)
        first = np.searchsorted(wanted, table["value"])
        usable = (first < len(wanted)) & (table["size"] > 0) & (table["section"] != 0)
        usable &= np.isin(table["info"] & 15, _FUNCTIONS)
        rows = np.nonzero(usable)[0]
        rows = rows[wanted[first[rows]] < table["value"][rows] + table["size"][rows]]
        for row in rows:
            at = strings + int(table["name"][row])
            name = image[at : image.find(b"\0", at)].decode("ascii", "replace")
            end = int(table["value"][row]) + int(table["size"][row])
            for offset in offsets[int(first[row]) :]:
                if offset >= end:
                    break
                names.setdefault(offset, name)
    return names


def _sections(image: mmap.mmap) -> Iterable[tuple[int, int, int, int]]:
    (table,) = struct.unpack_from("<Q", image, 0x28)
    entry, count = struct.unpack_from("<HH", image, 0x3A)
    for index in range(count):
        _name, kind, _flags, _address, begin, size, link = struct.unpack_from("<IIQQQQI", image, table + index * entry)
        yield kind, begin, size, link


def plain_demangled(name: str) -> str:
    """Return a mangled name as its qualified name, without arguments: readable where ``c++filt`` is missing."""
    nested, simple = _NESTED.match(name), _SIMPLE.match(name)
    match = nested or simple
    if match is None:
        return name
    parts, at = ["std"] if nested and nested.group(1) else [], match.end()
    while number := _LENGTH.match(name, at):
        begin = number.end()
        at = begin + int(number.group(1))
        if at > len(name):
            return name
        parts.append("(anonymous namespace)" if name[begin:at].startswith("_GLOBAL__N") else name[begin:at])
        if simple:
            break
        at = _after_template_arguments(name, at)
    if nested and name[at : at + 2] in ("C1", "C2"):
        parts.append(parts[-1])
    elif nested and name[at : at + 2] in ("D0", "D1", "D2"):
        parts.append("~" + parts[-1])
    return "::".join(parts) if parts else name


def _after_template_arguments(name: str, at: int) -> int:
    if name[at : at + 1] != "I":
        return at
    depth = 0
    while match := _TOKEN.match(name, at):
        at = match.end()
        if match.group("length"):
            at += int(match.group("length"))
        elif match.group("open"):
            depth += 1
        elif match.group("close"):
            depth -= 1
        if depth == 0:
            break
    return at
