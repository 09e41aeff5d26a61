"""Small files of the kernel that may be missing, sizes and removal of folders, and locks between processes."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.core.errors import DiskFull, RunDirError
from harness.machine.pool import Patience

FULL = "the disk is full (df shows its space, df -i its inodes)"
IGNORED = "# Made by the TorchScript upgrade gate.\n*\n"
# What zipfile raises where an archive is damaged, encrypted, or compressed in a way that it does not know.
ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def last_lines(path: Path, most: int) -> tuple[str, ...]:
    """Return the last lines of a log that are not empty, of its last 16 KiB; none where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16384))
        return tuple(line for line in file.read().decode(errors="replace").splitlines() if line.strip())[-most:]
    return ()


def plain_bytes(path: Path) -> bytes:
    """Return a plain file's content. Raises ``OSError``: unreadable, or no plain file: a pipe never answers."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no plain file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(descriptor)


def folder_with(path: Path, patterns: Sequence[str], name: str) -> Path | None:
    """Return the first folder that has ``name``: ``path`` itself, or one below it, in the order of the patterns."""
    below = (folder for pattern in patterns for folder in sorted(path.glob(pattern)))
    return next((folder for folder in (path, *below) if (folder / name).exists()), None)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, by the links in it, lies below a folder's real place; a link itself lies where it stands."""
    return Path(os.path.realpath(path.parent), path.name).is_relative_to(os.path.realpath(folder))


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of everything below a folder; a link counts as itself, what is gone as nothing."""
    if path.is_dir() and not path.is_symlink():
        return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
    return path.lstat().st_size if os.path.lexists(path) else 0


def refusal(error: OSError) -> str:
    """Return in words why the system refused; of a tree that could not be copied, the first refusal."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        words = str(error.args[0][0][-1])
        return FULL if os.strerror(errno.ENOSPC) in words else words
    return FULL if error.errno == errno.ENOSPC else (error.strerror or str(error))


def unwritable(what: str, error: OSError, hint: str) -> RunDirError:
    """Return the error of something that the system refuses to write: ``"FOLDER cannot be made"`` and why not."""
    words = refusal(error)
    return (DiskFull if words == FULL else RunDirError)(f"{what}: {words}", hint)


def make_ignored(folder: Path) -> None:
    """Make a folder unless it is there, of which git sees nothing: a new one gets a ``.gitignore``.

    Where folders above it are missing too, the uppermost gets it. Raises ``OSError``: it cannot be made.
    """
    if folder.is_dir():
        return
    made = folder
    while not os.path.lexists(made.parent):
        made = made.parent
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (made / ".gitignore").open("x", encoding="utf-8") as stream:
        stream.write(IGNORED)


def emptied(folder: Path) -> Path:
    """Return ``folder``, made anew and empty (of a link only the link is removed). Raises ``RunDirError``."""
    if os.path.lexists(folder):
        remove(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise unwritable(f"{folder} cannot be made", error, "free space, or make it writable") from error
    return folder


def moved(folder: Path, place: Path) -> Path:
    """Return ``place``, where ``folder`` lies now; what was there is removed. Raises ``RunDirError``."""
    if os.path.lexists(place):
        remove(place)
    try:
        return folder.rename(place)
    except OSError as error:
        raise unwritable(f"{folder} cannot be moved to {place}", error, "is it still there?") from error


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with everything in it. Raises ``RunDirError``: it cannot be removed."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise RunDirError(f"{path} cannot be removed: {refusal(error)}", "remove it by hand") from error


def keep_bug_report(text: str) -> Path | None:
    """Write the traceback of our bug to a new file, to be sent, and return its path; None if it cannot be written."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="harness-bug-", suffix=".txt", delete=False) as stream:
            stream.write(text)
    except OSError:
        return None
    return Path(stream.name)


@contextmanager
def locked(path: Path, patience: Patience) -> Iterator[int]:
    """Hold the lock at ``path``, a file or a folder that is there; gives its descriptor, for a child to inherit.

    That another process has it is told at once. Raises ``Cancelled`` and ``DeadlineExceeded`` while waiting for it, and
    ``OSError``: the file cannot be made.
    """
    lock = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT) | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(lock):
            patience.tick()
            patience.wait_until(lambda: _try_lock(lock))
        yield lock
    finally:
        os.close(lock)


@contextmanager
def new_zip(path: Path, compression: int) -> Iterator[zipfile.ZipFile]:
    """Give a new zip file and close it; closing during an interrupted write would hide the interrupt: ValueError."""
    archive = zipfile.ZipFile(path, "x", compression, strict_timestamps=False)
    try:
        yield archive
    except BaseException:
        if archive.fp is not None:
            archive.fp.close()
            archive.fp = None  # so that nothing closes it once more
        raise
    archive.close()


def lock_shared(path: Path) -> int | None:
    """Return the descriptor of a lock that others may have too, made if it is missing; None: somebody has it alone.

    It ends with the descriptor, which no child inherits. Raises ``OSError``: it cannot be made.
    """
    lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if _try_lock(lock, fcntl.LOCK_SH):
        return lock
    os.close(lock)
    return None


def lock_alone(path: Path) -> int | None:
    """Return the descriptor of a lock that nobody else has, made if it is missing; None: somebody has it.

    Raises ``OSError``: it cannot be made.
    """
    lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if _try_lock(lock):
        return lock
    os.close(lock)
    return None


def touch(path: Path) -> None:
    """Note that something was used, in the time of a file that is there, where this user may."""
    with suppress(OSError):
        os.utime(path)


def _try_lock(lock: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
