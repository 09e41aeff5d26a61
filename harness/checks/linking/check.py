"""Holds the symbols that a binary needs against those of two releases; it measures, ``verdict/linking.py`` judges."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from harness.artifacts.shared_objects import SharedObject
from harness.checks.linking import known_symbols
from harness.checks.linking.demangled import brief, demangled
from harness.checks.linking.libtorch import LibTorch, highest, is_api, order
from harness.checks.linking.loader import Loader
from harness.checks.linking.successors import successors_in
from harness.core.linking import LIBTORCH, OPENMP, LinkedBinary, LinkNote, SymbolChange
from harness.core.text import counted, first_few
from harness.machine.files import text_of

# The interface in C that PyTorch keeps stable for what AOTInductor compiles.
STABLE = re.compile(r"aoti_torch_|torch_(?:call|list|library|get|set|new|delete|free|copy|is)_")
# What an extension module finds in the interpreter that imports it.
INTERPRETER = re.compile(r"_?Py")
# In torch/version.py of an installed wheel: 2.6.0+cu124.
VERSION = re.compile(r"__version__ = '(\d+\.\d+\.\d+)")
RUNTIME = {"GLIBC": "libc.so.6", "GLIBCXX": "libstdc++.so.6", "CXXABI": "libstdc++.so.6"}
NAMED = 5


def uses_libtorch(binary: SharedObject) -> bool:
    """Whether it needs one of LibTorch's libraries or symbols."""
    libraries = any(name.startswith(("libtorch", "libc10")) for name in binary.needed)
    return libraries or any(is_api(symbol) for symbol in binary.undefined)


def check_binary(
    binary: SharedObject, old: LibTorch, new: LibTorch, loader: Loader, source: Collection[str] | None = None
) -> LinkedBinary:
    """Return what both releases have of what one binary needs; ``source``: the words of its source code."""
    beside, absent = loader.bring(binary, without=(*old.brings, *new.brings))
    given = frozenset[str]().union(*(library.exported for library in beside))
    needed = binary.undefined - given
    of_torch = {symbol for symbol in needed if symbol in old.exported or symbol in new.exported or is_api(symbol)}
    lacked = successors_in(new).missing(of_torch - new.exported, source)
    # What the old release does not have either, in no form, is another library's or another build's.
    missing = [one for one in lacked if one.symbol in old.exported or one.change is not SymbolChange.GONE]
    brought = new.wanted(new.brings)
    nowhere = {one.symbol for one in lacked} - {one.symbol for one in missing}
    if not absent:  # else a library that is not here may have them
        nowhere |= {symbol for symbol in needed - of_torch if not INTERPRETER.match(symbol)}
    return LinkedBinary(
        file=binary.file,
        uses=len(of_torch),
        stable=bool(of_torch) and all(STABLE.match(symbol) for symbol in of_torch),
        missing=tuple(missing),
        unresolved=tuple(sorted(demangled(symbol) for symbol in nowhere)),
        absent=tuple(name for name in absent if name not in brought),
        fits=known_symbols.having(of_torch) if of_torch else (),
        notes=(*_notes(binary, beside, old, new, loader), *_strings(binary, of_torch, old, new)),
    )


def interface(binary: SharedObject) -> frozenset[str]:
    """Return the symbols of PyTorch that a binary needs."""
    return frozenset(symbol for symbol in binary.undefined if is_api(symbol))


def _notes(
    binary: SharedObject, beside: Sequence[SharedObject], old: LibTorch, new: LibTorch, loader: Loader
) -> Iterator[LinkNote]:
    for folder, release in libtorch_in_run_path(binary, loader):
        if release != new.name:
            before = "before LD_LIBRARY_PATH" if binary.overrides else "after LD_LIBRARY_PATH"
            yield LinkNote(
                kind="run_path",
                subject=str(folder),
                text=f"its {'RPATH' if binary.overrides else 'RUNPATH'} brings the LibTorch in {folder}, {before}",
                what_to_do=f"put {new.name} there, or change it: patchelf {'--force-rpath ' * binary.overrides}"
                f"--set-rpath DIR {binary.file}",
            )
    copied = {symbol for symbol in binary.copied if is_api(symbol)}
    if copied:
        yield LinkNote(
            kind="copied",
            subject=binary.name,
            text=f"it has places for {counted(len(copied), 'object')} of LibTorch's, as large as in {old.name}: "
            + _some(copied),
            what_to_do="compile again: where the new ones are larger, what is beyond is not there (ld.so warns of it)",
        )
    lost = {symbol for symbol in binary.optional if symbol in old.exported and symbol not in new.exported}
    if lost:
        yield LinkNote(
            kind="weak",
            subject=binary.name,
            text=f"{counted(len(lost), 'weak symbol')} will be null: {_some(lost)}",
            what_to_do="see that the code asks whether they are there before it uses them",
        )
    yield from _duplicates(binary, new)
    yield from _openmp(binary, beside, old, new)


def libtorch_in_run_path(binary: SharedObject, loader: Loader) -> Iterator[tuple[Path, str]]:
    """Yield (folder with LibTorch, its release or ``""``) that a binary's RPATH or RUNPATH leads to."""
    for folder in loader.run_path(binary):
        if (folder / LIBTORCH).exists():
            version = VERSION.search(text_of(folder.parent / "version.py"))
            yield folder, version[1] if version is not None else ""


def _strings(binary: SharedObject, symbols: Collection[str], old: LibTorch, new: LibTorch) -> Iterator[LinkNote]:
    texts = [demangled(symbol) for symbol in symbols]
    newer = any("std::__cxx11" in text for text in texts)
    if newer == any("std::string" in text for text in texts):  # none, or both
        return
    if newer != old.new_strings:
        yield LinkNote(
            kind="strings",
            subject=binary.name,
            text=f"it has libstdc++'s {_age(newer)} strings and LibTorch {old.name} the {_age(not newer)} ones: it was"
            " built against another build",
            what_to_do="name that one's folder with --old",
        )
    if newer != new.new_strings:
        yield LinkNote(
            kind="strings",
            subject=binary.name,
            text=f"it has libstdc++'s {_age(newer)} strings and LibTorch {new.name} the {_age(not newer)} ones",
            what_to_do=f"compile with -D_GLIBCXX_USE_CXX11_ABI={int(not newer)}, which TORCH_CXX_FLAGS of CMake has",
        )


def _age(newer: bool) -> str:  # noqa: FBT001  an adjective
    return "newer" if newer else "older"


def _duplicates(binary: SharedObject, new: LibTorch) -> Iterator[LinkNote]:
    both = binary.strong & new.defined
    if both:
        yield LinkNote(
            kind="duplicate",
            subject=binary.name,
            text=f"LibTorch defines {counted(len(both), 'function')} of it too, and a process uses one: {_some(both)}",
            what_to_do="hide the binary's: link its copy with -Wl,--exclude-libs,ALL or -fvisibility=hidden",
        )


def _openmp(binary: SharedObject, beside: Sequence[SharedObject], old: LibTorch, new: LibTorch) -> Iterator[LinkNote]:
    own = sorted({name for one in (binary, *beside) for name in one.needed if OPENMP.match(name)})
    if not own or not new.openmp:
        return
    if new.openmp not in own:
        yield LinkNote(
            kind="openmp",
            subject=new.openmp,
            text=f"two OpenMP runtimes in one process, each with its own threads: {own[0]} of the binary and "
            f"{new.openmp} of LibTorch {new.name}, unless LibTorch is loaded first",
            what_to_do="set OMP_NUM_THREADS for the sum of both, or build the binary without -fopenmp",
        )
    elif old.openmp not in own:
        yield LinkNote(
            kind="openmp",
            subject=new.openmp,
            text=f"binary and LibTorch share {new.openmp}, where LibTorch {old.name} had {old.openmp} for itself: "
            "whichever copy is loaded first serves both",
            what_to_do="measure with the thread settings of production: omp_set_num_threads now reaches LibTorch too",
        )


def check_image(old: LibTorch, new: LibTorch, loader: Loader, binaries: Iterable[SharedObject]) -> tuple[LinkNote, ...]:
    """Return what those libraries of the new release that binaries need want of the machine or image."""
    named = {name for binary in binaries for name in binary.needed}
    before = old.wanted(named & {*old.brings})
    return (*_system_versions(new, loader), *_libraries(old, new, before, new.wanted(named & {*new.brings}), loader))


def _system_versions(new: LibTorch, loader: Loader) -> Iterator[LinkNote]:
    provided = loader.provided()
    for family, library in RUNTIME.items():
        wanted = new.versions.get(family)
        if wanted is None or library not in provided:
            continue
        here = highest([{library: provided[library]}]).get(family, "0")
        if order(here) < order(wanted):
            yield LinkNote(
                kind="version",
                subject=library,
                text=f"LibTorch {new.name} needs {family}_{wanted}, and {library} here has up to {family}_{here}",
                what_to_do="take a base image with a newer C library"
                if family == "GLIBC"
                else "bring a newer libstdc++",
                stops=True,
            )


def _libraries(
    old: LibTorch, new: LibTorch, before: Sequence[str], after: Sequence[str], loader: Loader
) -> Iterator[LinkNote]:
    known = {_stem(name): name for name in before}
    lacking = [name for name in after if name not in before and not _runtime(name) and not loader.has(name)]
    if lacking:
        named = [f"{name} (was {known[_stem(name)]})" if _stem(name) in known else name for name in lacking]
        yield LinkNote(
            kind="library",
            subject=lacking[0],
            text=f"LibTorch {new.name} needs what {old.name} did not, and the system's folders here lack: "
            f"{', '.join(named)}",
            what_to_do="bring them with the image, or with the nvidia packages that torch's wheel asks for",
        )


def _runtime(name: str) -> bool:
    return re.match(r"(?:ld-linux|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+|util)\.so)", name) is not None


def _stem(library: str) -> str:
    return library.partition(".so")[0]


def _some(symbols: Collection[str]) -> str:
    return first_few(sorted({brief(demangled(symbol)) for symbol in symbols}), NAMED)
