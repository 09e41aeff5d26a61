"""The files of a probe: each by itself while it runs and where it fails, all in one zip file once it has completed."""

import contextlib
import errno
import io
import os
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO

from harness.errors import RunDirError
from harness.system import files
from harness.worker import wire

RESULT = "result.json"
COMPLETED = "completed.zip"
# What else lies in the folder is read by later workers, or was made by the model; it stays.
NAMES = (
    *(wire.REQUEST, wire.EVENTS, wire.STDOUT, wire.STDERR, RESULT),
    *(f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}", f"{wire.OUTPUTS}/{wire.TENSORS_BIN}"),
)
# A larger file stays as well, to be mapped where it is. Only large ones are: a mapping holds a descriptor for the whole
# run, and there may be hundreds of models.
IN_MEMORY_BYTES = 4 * 1024 * 1024


def compact(folder: Path) -> None:
    """Put the files of a probe that has completed into one, ``completed.zip``.

    Killed at any moment, or on a full disk, each file is whole either in the folder or in the zip file; the next call
    goes on there.
    """
    with contextlib.suppress(OSError):
        loose = [path for path in _loose(folder) if _can_move(path)]
        if not loose:
            return
        if not (folder / COMPLETED).exists():
            _write(folder, loose)
        for path in loose:
            path.unlink()
        for emptied in (wire.OUTPUTS, wire.WORK):
            with contextlib.suppress(OSError):  # it never was, or something stays in it
                (folder / emptied).rmdir()


def remove_foreign(folder: Path) -> None:
    """Remove a zip file from the folder of a probe that has just ended: its model has made it.

    Raises:
        RunDirError: it cannot be removed.
    """
    if os.path.lexists(folder / COMPLETED):
        files.remove(folder / COMPLETED)


def opened(folder: Path, name: str) -> BinaryIO:
    """Return a file of a probe, open for reading, wherever it is.

    Raises:
        OSError: it is neither in the folder nor in the zip file, or cannot be read.
        RunDirError: the zip file is damaged.
    """
    try:
        return (folder / name).open("rb")
    except FileNotFoundError:
        return io.BytesIO(_unzipped(folder / COMPLETED, name))


def read(folder: Path, name: str) -> bytes:
    """Return the content of a file of a probe, wherever it is; raise as ``opened`` does."""
    with opened(folder, name) as stream:
        return stream.read()


def read_result(path: Path) -> bytes:
    """Return the content of a probe's ``result.json``, wherever it is; raise as ``opened`` does."""
    return read(path.parent, path.name)


def _unzipped(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(name).file_size > IN_MEMORY_BYTES:
                raise zipfile.BadZipFile(f"{name} is larger than what is put there")
            return archive.read(name)
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, f"it has no {name}", str(path)) from None
    except files.ZIP_DAMAGE as error:
        hint = "remove the folder that it lies in: the probe is then made again"
        raise RunDirError(f"{path} is damaged: {error}", hint) from error


def _loose(folder: Path) -> list[Path]:
    return [*(folder / name for name in NAMES), *sorted(folder.glob(f"{wire.STACKS}*"))]


def _can_move(path: Path) -> bool:
    """Whether it is there, not reached by a link, and small enough to be read from the zip file."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= IN_MEMORY_BYTES and not path.parent.is_symlink()


def _write(folder: Path, loose: list[Path]) -> None:
    part = folder / f".{COMPLETED}.part"
    part.unlink(missing_ok=True)
    try:
        with zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
            for path in loose:
                how = zipfile.ZIP_STORED if path.name == wire.TENSORS_BIN else None  # numbers hardly get smaller
                archive.write(path, str(path.relative_to(folder)), how)
        part.replace(folder / COMPLETED)
    finally:
        part.unlink(missing_ok=True)
