"""Reads from a shared library for which machine it is and which functions it takes from others or offers; no code.

The layout is that of the System V ABI (https://gabi.xinuos.com, "Object Files"); numbers are those of ``elf.h``.
"""

import struct
from dataclasses import dataclass

from harness.artifacts.archive.limits import CannotRead, Limits, Source

MAGIC, HEADER = b"\x7fELF", 64
LONG, LITTLE = 2, 1
"""``EI_CLASS`` and ``EI_DATA`` of the libraries whose symbols are read: 64 bits, the least byte first."""
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x15: "ppc64le", 0x16: "s390x", 0xF3: "riscv64"}
SECTION, SYMBOL = 64, 24
DYNAMIC_SYMBOLS = 11
MOST_SECTIONS = 4096
GLOBAL, WEAK = 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """What its dynamic symbols say.

    ``machine``: ``"x86_64"``, ...; ``takes``: what must be found in other libraries before it can be opened;
    ``offers``: what others find in it.
    """

    machine: str
    takes: frozenset[str] = frozenset()
    offers: frozenset[str] = frozenset()


def read_library(source: Source, limits: Limits) -> Library | None:
    """Return what a library says, None of another file; of foreign word size or byte order the machine alone."""
    header = source.read(0, HEADER)
    if len(header) < HEADER or not header.startswith(MAGIC):
        return None
    order = "<" if header[5] == LITTLE else ">"
    (number,) = struct.unpack_from(order + "H", header, 18)
    library = Library(machine=MACHINES.get(number, f"ELF machine {number}"))
    if (header[4], header[5]) != (LONG, LITTLE):
        return library
    (offset,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    if size != SECTION or not 0 < count <= MOST_SECTIONS:
        raise CannotRead("damaged", "a library without its table of sections")
    table = _part(source, offset, size * count, limits)
    sections = [struct.unpack_from("<4xI16xQQI", table, size * index) for index in range(count)]
    symbols = next((section for section in sections if section[0] == DYNAMIC_SYMBOLS), None)
    if symbols is None or symbols[3] >= count:
        raise CannotRead("damaged", "a library without its table of symbols")
    strings = sections[symbols[3]]
    names = _part(source, strings[1], strings[2], limits)
    takes, offers = set[str](), set[str]()
    for name_at, info, defined in struct.iter_unpack(
        "<IBxH16x", _part(source, symbols[1], symbols[2] // SYMBOL * SYMBOL, limits)
    ):
        if info >> 4 not in (GLOBAL, WEAK) or (not defined and info >> 4 == WEAK):  # a weak one may be missing
            continue
        name = names[name_at : names.find(b"\0", name_at)] if name_at < len(names) else b""
        (offers if defined else takes).add(name.decode("ascii", "replace"))
    return Library(machine=library.machine, takes=frozenset(takes), offers=frozenset(offers))


def _part(source: Source, offset: int, size: int, limits: Limits) -> bytes:
    if size > limits.symbol_bytes:
        raise CannotRead("too_large", f"a table of {size} bytes in a library; {limits.symbol_bytes} are read")
    data = source.read(offset, size) if offset < source.size else b""
    if len(data) < size:
        raise CannotRead("damaged", "a table of a library lies outside of it")
    return data
