"""Opens the files that a static check reads, and finds them: plain files only, read where asked, never as a whole."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.archive.limits import CannotRead
from harness.errors import SelectionError

SUFFIXES = frozenset((".jit", ".pt", ".pth", ".ptl", ".torchscript", ".ts"))
"""What is looked at in a folder; a file that is named itself may have any name."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """An open file."""

    descriptor: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``.

        Raises:
            CannotRead: the disk refuses, or the place is none.
        """
        try:
            return os.pread(self.descriptor, length, offset)
        except (OSError, OverflowError, ValueError) as error:
            raise CannotRead("unreadable_file", f"cannot be read: {error}") from None


@contextmanager
def opened(path: str) -> Iterator[FileSource]:
    """Open ``path`` for reading.

    Raises:
        CannotRead: it is no plain file (a pipe or a device might never answer), or may not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise CannotRead("unreadable_file", f"cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CannotRead("unreadable_file", "is no plain file")
        yield FileSource(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def find_files(names: Sequence[str]) -> tuple[str, ...]:
    """Return the files that ``names`` mean, each once: files, patterns, and folders (searched without following links).

    Raises:
        SelectionError: a name means nothing.
    """
    found: dict[str, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            below = sorted(_below(name))
        elif path.exists() or not glob.has_magic(name):
            below = [name] if path.exists() or path.is_symlink() else []
        else:
            below = sorted(item for item in glob.glob(name, recursive=True) if not Path(item).is_dir())  # noqa: PTH207
        if not below:
            what = "holds no artifact" if path.is_dir() else "does not exist"
            raise SelectionError(
                f"{name} {what}", f"name files, patterns, or folders with {', '.join(sorted(SUFFIXES))}"
            )
        found.update(dict.fromkeys(below))
    return tuple(found)


def _below(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        yield from (str(Path(root) / name) for name in names if Path(name).suffix.lower() in SUFFIXES)
