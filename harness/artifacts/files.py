"""Finds and opens the files that a static check reads: regular files only, read in parts."""

import glob
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from harness.artifacts.archive.formats import FORMATS, IN_PLACE_OF_A_MODEL, MAY_LOAD, recognise
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.programs import is_compiled
from harness.config.selection import did_you_mean
from harness.core.archive import ArchiveFormat
from harness.core.errors import SelectionError
from harness.core.models import PROGRAM_SUFFIX, ArtifactKind
from harness.store.run_folder import LOCK, PLAN, PROBES

SUFFIXES = frozenset((".gate", ".jit", ".pt", PROGRAM_SUFFIX, ".pth", ".ptl", ".torchscript", ".ts"))
"""What is looked for in a folder; a file that is named explicitly may have any suffix."""
TORCHSCRIPT: Final = ".pt"
"""The suffix that ``torch.jit.save`` is mostly given."""
TEXTS_TOO: Final = (".pth", ".ts")
"""Suffixes that text has of its own: paths for Python, TypeScript."""
MOST_BESIDE: Final = 10_000
"""Of the neighbours of a name that is not there, how many are looked at for one that was meant."""
REQUESTS: Final = ".inputs"
"""What stands between the artifact's stem and the suffix in the name of its requests."""
REQUEST_SUFFIXES: Final = (".pt", ".safetensors", ".npz", ".py")


@dataclass(frozen=True, slots=True)
class FileSource:
    """An open file."""

    descriptor: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``. Raises ``CannotRead``: the disk refuses, or there is no such
        offset.
        """
        try:
            return os.pread(self.descriptor, length, offset)
        except (OSError, OverflowError, ValueError) as error:
            raise CannotRead("unreadable_file", f"cannot be read: {error}") from None


class FoundFile(NamedTuple):
    """A file, and where it was found: below a folder's real path, or empty if it was named itself."""

    path: str
    within: str = ""

    @property
    def named(self) -> bool:
        return not self.within


def leads_out(path: str, within: str) -> bool:
    """Return whether a file, by links in its path, lies outside of the folder ``within`` that was named."""
    return bool(within) and not Path(os.path.realpath(path)).is_relative_to(within)


def real_path(path: str, within: str) -> str:
    """Return a file's real path. Raises ``CannotRead``: a link leads out of the folder ``within``."""
    real = os.path.realpath(path)
    if leads_out(real, within):
        raise CannotRead("leads_out", f"is a link that leads out of {within}")
    return real


@contextmanager
def opened(path: str, within: str = "") -> Iterator[FileSource]:
    """Open ``path`` for reading; found in the folder ``within``, if in one.

    Raises:
        CannotRead: it is no plain file (a pipe or a device might never answer), may not be read, or is a link that
            leads out of ``within``.
    """
    path = real_path(path, within) if within else path
    try:
        plain = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116  asked before: opening a device may set it to work
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        descriptor = os.open(path, flags) if plain else None
    except (OSError, ValueError) as error:
        raise CannotRead("unreadable_file", f"cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    if descriptor is None:
        raise CannotRead("unreadable_file", "is no plain file")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CannotRead("unreadable_file", "is no plain file")
        yield FileSource(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def find_files(names: Sequence[str]) -> tuple[FoundFile, ...]:
    """Return the files that ``names`` mean, each once: files, patterns, and folders (searched without following links).

    In a folder, that is files with one of ``SUFFIXES``. Folders whose names begin with a dot (environments, caches) and
    folders of runs are skipped unless they are named themselves. What exists and cannot be looked at is returned too.

    Raises:
        SelectionError: a name means nothing.
    """
    files: dict[str, FoundFile] = {}
    for name in names:
        folder = os.path.isdir(name)  # noqa: PTH112  Path.is_dir raises where a name is too long
        below = sorted(_below(name)) if folder else [name] if _is_there(name) else sorted(_matching(name))
        if not below:
            missing = "matches nothing" if glob.has_magic(name) else "does not exist"
            what = "holds no artifact" if folder else missing
            shown = name if name.isprintable() else ascii(name)
            raise SelectionError(
                f"{shown} {what}",
                f"{'' if folder else _meant(name)}name files, patterns, or folders with {', '.join(sorted(SUFFIXES))}",
            )
        within = os.path.realpath(_named_folder(name))
        for path in below:
            if path == name or path not in files:
                files[path] = FoundFile(path, "" if path == name else within)
    return tuple(files.values())


def _meant(name: str) -> str:
    """Return which neighbour may be meant by a name of nothing, in words; empty if none is named alike."""
    try:
        with os.scandir(Path(name).parent) as entries:
            beside = itertools.islice((entry for entry in entries if entry.name.isprintable()), MOST_BESIDE)
            paths = [f"{Path(name).with_name(entry.name)}{'/' * entry.is_dir()}" for entry in beside]
    except (OSError, ValueError):
        return ""
    return did_you_mean(name, paths)


def _named_folder(name: str) -> str:
    if os.path.isdir(name):  # noqa: PTH112  as above
        return name
    parts = Path(name).parts
    first = next((index for index, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(Path(*parts[:first]))


def _is_there(name: str) -> bool:
    try:
        os.lstat(name)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _matching(pattern: str) -> Iterator[str]:
    """Yield what a pattern means; ``**`` follows no links, which may lead in a circle."""
    if not glob.has_magic(pattern):
        return
    try:
        base = Path(_named_folder(pattern))
        rest = Path(pattern).relative_to(base)
        dotted = any(part.startswith(".") for part in rest.parts)
        for path in base.glob(str(rest)):
            inside = path.relative_to(base).parts[:-1]
            hidden = not dotted and any(part.startswith(".") for part in inside)
            made = any(_is_run(path.parents[level]) for level in range(len(inside)))
            if not hidden and not made and not os.path.isdir(path):  # noqa: PTH112  as above
                yield str(path)
    except (OSError, ValueError):  # "a**" is no pattern
        return


def _is_run(folder: Path) -> bool:
    """Whether the folder is that of a run, whose artifacts nobody means; a copy of one may lack the lock."""
    named = any(os.path.isfile(folder / name) for name in (PLAN, LOCK))  # noqa: PTH113  as above
    return named and os.path.isdir(folder / PROBES)  # noqa: PTH112  as above


def others_in(names: Sequence[str]) -> list[str]:
    """Return the files in the folders among ``names`` that ``find_files`` leaves out, requests aside."""
    below = (path for name in names if os.path.isdir(name) for path in _walked(name, []))  # noqa: PTH112  as above
    return [path for path in below if Path(path).suffix.lower() not in SUFFIXES and not is_request_file(path)]


MODELS: Final = frozenset(
    {
        ArchiveFormat.TORCHSCRIPT,
        ArchiveFormat.MOBILE,
        ArchiveFormat.FLATBUFFER,
        ArchiveFormat.LEGACY_TORCHSCRIPT,
        ArchiveFormat.EXPORTED_PROGRAM,
        ArchiveFormat.STATE_DICT,
        ArchiveFormat.PICKLED_MODULE,
        ArchiveFormat.TORCH_SAVE,
        ArchiveFormat.LEGACY_SAVE,
        ArchiveFormat.TORCH_PACKAGE,
        ArchiveFormat.SAFETENSORS,
    }
)
"""What is a model of torch, or part of one, by its content, whatever its name."""


def models_beside(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each model in a folder that ``find_files`` leaves out, and what it is, in words.

    That is by its content a file of another suffix, of so many as are looked at in seconds, and by their place what a
    link hides: links to folders are not followed.
    """
    real = os.path.realpath(folder)
    for path in _linked(folder):
        target = os.path.realpath(path)
        if not os.path.exists(target):  # noqa: PTH110  as above
            yield path, "a link to nothing"
        elif not Path(target).is_relative_to(real):
            yield path, f"a link to {target}, which is not followed: name that"
    others = others_in([folder])
    for path in others[:MOST_BESIDE]:
        recognised = None if os.path.islink(path) and leads_out(path, real) else format_of(path)  # noqa: PTH114
        if recognised in MODELS:
            judged = recognised in MAY_LOAD
            yield path, f"{FORMATS[recognised][0]}{f' by another suffix: name it, or call it {TORCHSCRIPT}' * judged}"
    if len(others) > MOST_BESIDE:
        yield folder, f"{len(others) - MOST_BESIDE:,} more files of other suffixes, which were not looked at"


def _linked(folder: str) -> Iterator[str]:
    """Yield the links below a folder that lead to folders, or to nothing."""
    for root, folders, names in os.walk(folder):
        inside = [name for name in folders if not name.startswith(".") and not _is_run(Path(root) / name)]
        folders[:] = inside
        paths = [str(Path(root) / name) for name in (*inside, *names)]
        links = sorted(path for path in paths if os.path.islink(path))  # noqa: PTH114  as above
        yield from (path for path in links if not os.path.isfile(path))  # noqa: PTH113  as above


def _below(folder: str) -> Iterator[str]:
    refused: list[str] = []
    yield from (path for path in _walked(folder, refused) if Path(path).suffix.lower() in SUFFIXES)
    yield from refused


def _walked(folder: str, refused: list[str]) -> Iterator[str]:
    for root, folders, names in os.walk(folder, onerror=lambda error: refused.append(str(error.filename))):
        folders[:] = [name for name in folders if not name.startswith(".") and not _is_run(Path(root) / name)]
        yield from (str(Path(root) / name) for name in names)


def is_request_file(path: str) -> bool:
    """Whether a file is named like the requests of an artifact: ``NAME.inputs.pt``."""
    name = Path(path)
    return name.suffix in REQUEST_SUFFIXES and name.stem.endswith(REQUESTS)


def format_of(path: str) -> ArchiveFormat | None:
    """Return what a file is, from its first bytes and the names in it; None where it is damaged or unreadable."""
    try:
        with opened(path) as source:
            recognised, directory = recognise(source, LIMITS)
    except CannotRead:
        return None
    return None if directory is not None and directory.problems else recognised


def is_in_place_of_a_model(path: str, recognised: ArchiveFormat | None) -> bool:
    """Whether a file named like a model is what a checkout, a download or a copy leaves where it went wrong.

    ``recognised``: what the file is by its content; None where that cannot be read.
    """
    suffix = Path(path).suffix.lower()
    is_text = recognised is ArchiveFormat.TEXT and suffix in TEXTS_TOO
    return suffix in SUFFIXES and recognised in IN_PLACE_OF_A_MODEL and not is_text


def kind_of(path: str, within: str = "") -> ArtifactKind:
    """Return what a file is, by its content; by its suffix where that cannot be read; ``within``: see ``opened``."""
    try:
        with opened(path, within) as source:
            recognised, directory = recognise(source, LIMITS)
    except CannotRead:
        recognised, directory = ArchiveFormat.UNKNOWN, None
    if recognised is ArchiveFormat.EXPORTED_PROGRAM and directory is not None:
        return ArtifactKind.PACKAGE if is_compiled(directory) else ArtifactKind.PROGRAM
    unreadable = (
        recognised in (ArchiveFormat.EMPTY, ArchiveFormat.UNKNOWN) and Path(path).suffix.lower() == PROGRAM_SUFFIX
    )
    return ArtifactKind.PROGRAM if unreadable else ArtifactKind.TORCHSCRIPT
