"""The files of a probe: each by itself while it runs, then all in one zip file beside what later workers read."""

import contextlib
import errno
import io
import os
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO

from harness.core.errors import RunDirError
from harness.machine import files
from harness.worker import wire

RESULT = "result.json"
REST = "rest"  # names the probe of the requests that this one's process did not live to be asked
EARLIER = "earlier"  # names the run that made it, where that is not the one in whose folder it lies
PACKED = "probe.zip"
# What else lies in the folder is read by later workers, or was made by the model; it stays.
NAMES = (
    *(wire.REQUEST, wire.EVENTS, wire.STDOUT, wire.STDERR, RESULT, REST),
    *(f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}", f"{wire.OUTPUTS}/{wire.TENSORS_BIN}"),
)
# A larger file stays as well, to be mapped where it is. Only large ones are: a mapping holds a descriptor for the whole
# run, and there may be hundreds of models.
IN_MEMORY_BYTES = 4 * 1024 * 1024
# How a worker begins the file of stacks of a process that could show some.
ARMED = b"== gate stacks armed "


def compact(folder: Path, *, failed: bool = False) -> None:
    """Put the files of a probe that has ended into one, ``probe.zip``.

    Killed at any moment, or on a full disk, each file is whole either in the folder or in the zip file; the next call
    goes on there. ``failed``: somebody will look into it: stacks and what it printed as errors stay beside the zip file
    as well.
    """
    with contextlib.suppress(OSError):
        loose = [path for path in _loose(folder) if _can_move(path)]
        if not (folder / PACKED).exists():
            _write(folder, loose)
        for path in loose:
            if not (failed and _says_something(path)):
                path.unlink()
        for emptied in (wire.OUTPUTS, wire.WORK):
            with contextlib.suppress(OSError):  # it never was, or something stays in it
                (folder / emptied).rmdir()


def remove_foreign(folder: Path) -> None:
    """Remove our file names from a probe's folder: its model made them. Raises ``RunDirError``."""
    for name in (PACKED, REST, EARLIER):
        if os.path.lexists(folder / name):
            files.remove(folder / name)


def rest_of(folder: Path) -> Path | None:
    """Return the probe's folder that goes on where this process ended, if any. Raises ``RunDirError``."""
    try:
        return folder.parent / read(folder, REST).decode()
    except OSError:
        return None


def earlier_run(folder: Path) -> str:
    """Return the name of the earlier run that has made a probe; empty where it was made for the run of its folder."""
    try:
        return (folder / EARLIER).read_text()
    except OSError:
        return ""


def opened(folder: Path, name: str) -> BinaryIO:
    """Return a file of a probe, open for reading, wherever it is.

    Raises:
        OSError: it is neither in the folder nor in a zip file, or cannot be read.
        RunDirError: the zip file is damaged.
    """
    try:
        return (folder / name).open("rb")
    except FileNotFoundError:
        return io.BytesIO(_unzipped(folder, name))


def read(folder: Path, name: str) -> bytes:
    """Return the content of a file of a probe, wherever it is; raise as ``opened`` does."""
    with opened(folder, name) as stream:
        return stream.read()


def read_result(path: Path) -> bytes:
    """Return the content of a probe's ``result.json``, wherever it is; raise as ``opened`` does."""
    return read(path.parent, path.name)


def folders(probes: Path) -> list[Path]:
    return sorted(path for path in probes.glob("*") if path.is_dir())


def has_stacks(folder: Path, name: str = wire.STACKS) -> bool:
    """Return whether a probe's file of stacks holds more than what a worker writes when it could show some."""
    try:
        with opened(folder, name) as stream:
            return any(line.strip() and not line.startswith(ARMED) for line in stream)
    except (OSError, RunDirError):
        return False


def _says_something(path: Path) -> bool:
    if path.name.startswith(wire.STACKS):
        return has_stacks(path.parent, path.name)
    return path.name == wire.STDERR and path.stat().st_size > 0


def _unzipped(folder: Path, name: str) -> bytes:
    path = folder / PACKED
    try:
        with zipfile.ZipFile(path) as archive:
            return _member(archive, name)
    except files.ZIP_DAMAGE as error:
        raise RunDirError(f"{path} is damaged: {error}", "remove its folder: the probe is then made again") from error


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        if archive.getinfo(name).file_size > IN_MEMORY_BYTES:
            raise zipfile.BadZipFile(f"{name} is larger than what is put there")
        return archive.read(name)
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, f"it has no {name}", str(archive.filename)) from None


def _loose(folder: Path) -> list[Path]:
    return [*(folder / name for name in NAMES), *sorted(folder.glob("stacks*"))]


def _can_move(path: Path) -> bool:
    """Whether it is there, not reached by a link, and small enough to be read from the zip file."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= IN_MEMORY_BYTES and not path.parent.is_symlink()


def _write(folder: Path, loose: list[Path]) -> None:
    """Write the zip file, which is under its name once it is whole."""
    part = folder / f".{PACKED}.part"
    part.unlink(missing_ok=True)
    try:
        with files.new_zip(part, zipfile.ZIP_DEFLATED) as archive:
            for path in loose:
                how = zipfile.ZIP_STORED if path.name == wire.TENSORS_BIN else None  # numbers hardly get smaller
                archive.write(path, str(path.relative_to(folder)), how)
        part.replace(folder / PACKED)
    finally:
        part.unlink(missing_ok=True)
