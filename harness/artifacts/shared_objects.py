"""What ELF files say of themselves: which libraries and symbols they need, and which symbols they export.

Nothing is run. pyelftools reads headers and the dynamic section; symbol tables of LibTorch have 90,000 entries, which
numpy reads at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from harness.core.errors import ConfigError

MAGIC = b"\x7fELF"
# Elf64_Sym of the System V ABI.
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
COPY = {"EM_X86_64": 5, "EM_AARCH64": 1024}
"""R_X86_64_COPY and R_AARCH64_COPY."""
GLOBAL, WEAK, UNIQUE = 1, 2, 10
OBJECT, FUNCTION = 1, 2
DEFAULT, PROTECTED = 0, 3


class DamagedFileError(ConfigError):
    """An ELF file that may need anything, and cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedObject:
    """One executable or shared library.

    Attributes:
        name: its SONAME, else its file's name; ``file``: where it lies.
        needed: names of the libraries that the loader brings with it, in their order.
        run_path: folders in which the loader looks for those, ``$ORIGIN`` as it stands; ``overrides``: whether before
            those of ``LD_LIBRARY_PATH`` (DT_RPATH without DT_RUNPATH).
        undefined: mangled names that another library must define, data that the loader copies from there too;
            ``optional``: those that may stay undefined (weak).
        copied: of those the data that an executable has a place for.
        exported: mangled names that others can link to; ``strong``: those of functions and objects that a program has
            once, so not inline and no template's.
        versions: library -> symbol versions that are needed of it, as ``GLIBC_2.28``; ``provided``: its own.
        machine: ``"x64"`` or ``"AArch64"``, say.
    """

    name: str
    file: str
    machine: str = "x64"
    needed: tuple[str, ...] = ()
    run_path: tuple[str, ...] = ()
    overrides: bool = False
    undefined: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provided: tuple[str, ...] = ()


def is_elf(path: Path) -> bool:
    """Whether a file begins as ELF files do; False too where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_file(path: Path) -> SharedObject:
    """Read an executable or a shared library.

    Raises:
        ConfigError: it cannot be read, is no ELF file, is not for 64 bits, or is linked statically;
            ``DamagedFileError``: it is cut off, or its section headers are gone.
    """
    try:
        with path.open("rb") as stream:
            return read(stream, str(path))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", "name an executable or a shared library"
        ) from None


def read(stream: BinaryIO, file: str) -> SharedObject:
    """Read one from a stream that can seek, a member of a wheel for instance; ``file``: how it is named in errors."""
    try:
        elf = ELFFile(stream)
        dynamic = elf.get_section_by_name(".dynamic")
        if dynamic is None and any(segment["p_type"] == "PT_DYNAMIC" for segment in elf.iter_segments()):
            raise DamagedFileError(
                f"{file} has no section headers, in which its symbols stand",
                "name the file before sections are stripped",
            )
        if dynamic is None:
            raise ConfigError(
                f"{file} is no executable or library that loads others: it has no dynamic section",
                "name the server's executable, or the .so of a custom operator; object files are linked later",
            )
        if elf.elfclass != 64 or not elf.little_endian:
            raise ConfigError(
                f"{file} is for a {elf.elfclass}-bit machine: LibTorch is for 64 bits", "name another file"
            )
        return _read(elf, dynamic, file)
    except (ELFError, ValueError, IndexError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{file} is no whole ELF file: {error}", "copy or build it again") from None


def _read(elf: ELFFile, dynamic: Any, file: str) -> SharedObject:
    tags: dict[str, list[str]] = {}
    for tag in dynamic.iter_tags():
        for kind in ("needed", "soname", "rpath", "runpath"):
            if (text := getattr(tag, kind, None)) is not None:
                tags.setdefault(kind, []).append(text)
    symbols = _symbols(elf)
    return SharedObject(
        name=next(iter(tags.get("soname", ())), Path(file).name),
        file=file,
        machine=elf.get_machine_arch(),
        needed=tuple(tags.get("needed", ())),
        run_path=tuple(part for text in tags.get("runpath", tags.get("rpath", ())) for part in text.split(":") if part),
        overrides="runpath" not in tags,
        versions=dict(_versions(elf.get_section_by_name(".gnu.version_r"))),
        provided=tuple(
            version for _, names in _versions(elf.get_section_by_name(".gnu.version_d")) for version in names
        ),
        **symbols,
    )


def _symbols(elf: ELFFile) -> dict[str, frozenset[str]]:
    table, texts = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".dynstr")
    if table is None or texts is None:
        return {}
    symbols, text = np.frombuffer(table.data(), SYMBOL), texts.data()
    binding, kind, visibility = symbols["info"] >> 4, symbols["info"] & 15, symbols["other"] & 3
    linkable = (
        np.isin(binding, (GLOBAL, WEAK, UNIQUE)) & np.isin(visibility, (DEFAULT, PROTECTED)) & (symbols["name"] > 0)
    )
    # Data of a library that an executable has a place for: the loader copies it there, and needs the library's symbol.
    copied = np.isin(np.arange(len(symbols)), _copied(elf))
    defined = linkable & (symbols["section"] != 0) & ~copied
    missing = linkable & ((symbols["section"] == 0) | copied)
    return {
        "undefined": _names(text, symbols[missing & ((binding != WEAK) | copied)]),
        "optional": _names(text, symbols[missing & (binding == WEAK) & ~copied]),
        "copied": _names(text, symbols[missing & copied]),
        "exported": _names(text, symbols[defined]),
        "strong": _names(text, symbols[defined & (binding == GLOBAL) & np.isin(kind, (OBJECT, FUNCTION))]),
    }


def _copied(elf: ELFFile) -> Any:
    """Return the indices of symbols that have a copy relocation."""
    section, kind = elf.get_section_by_name(".rela.dyn"), COPY.get(elf["e_machine"])
    relocations = np.frombuffer(section.data() if section is not None else b"", RELOCATION)
    return (relocations["info"] >> 32)[(relocations["info"] & 0xFFFFFFFF) == (kind or -1)]


def _names(text: bytes, symbols: Any) -> frozenset[str]:
    return frozenset(text[start : text.index(b"\0", start)].decode() for start in symbols["name"].tolist())


def _versions(section: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (library, versions); of definitions the first of each is its name, the others what it inherits from."""
    for entry, parts in section.iter_versions() if section is not None else ():
        names = tuple(part.name for part in parts)
        yield (entry.name, names) if entry.name is not None else ("", names[:1])
