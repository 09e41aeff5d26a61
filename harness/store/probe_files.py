"""The files of a probe: each by itself while it runs, then all in one zip file; once the run has ended, one for all."""

import contextlib
import errno
import functools
import io
import os
import stat
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from harness.errors import RunDirError
from harness.system import files
from harness.worker import wire

RESULT = "result.json"
REST = "rest"  # names the probe of the requests that this one's process did not live to be asked
PACKED = "probe.zip"
GATHERED = "probes.zip"
COMMENT = b"the probes of a run"
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
    goes on there.

    Args:
        failed: somebody will look into it: stacks and what it printed as errors stay beside the zip file as well.
    """
    with contextlib.suppress(OSError):
        loose = [path for path in _loose(folder) if _can_move(path)]
        if not (folder / PACKED).exists():
            if not (folder / wire.REQUEST).exists():  # the run's zip file has it
                return
            _write(folder, loose)
        for path in loose:
            if not (failed and _says_something(path)):
                path.unlink()
        for emptied in (wire.OUTPUTS, wire.WORK):
            with contextlib.suppress(OSError):  # it never was, or something stays in it
                (folder / emptied).rmdir()


def gather(probes: Path, linked: Collection[Path]) -> None:
    """Put the zip files of the probes of a run into one, ``probes.zip``, and remove the folders that this empties.

    A kill or a full disk loses nothing, as above.

    Args:
        probes: the folder of the probes' folders.
        linked: folders of probes, and files in them, that a report leads to: they are there afterwards.
    """
    with contextlib.suppress(OSError, RunDirError):
        for path in linked:
            _restore(path, probes)
        folders = [path for path in sorted(probes.iterdir()) if path not in linked and _can_move(path / PACKED)]
        if not folders:
            return
        _write_gathered(probes, folders)
        for folder in folders:
            for path in (*_loose(folder), folder / PACKED):
                if path not in linked and _can_move(path):
                    path.unlink()
            with contextlib.suppress(OSError):  # something stays in it
                folder.rmdir()


def remove_foreign(folder: Path) -> None:
    """Remove files of ours from the folder of a probe that has just ended: its model has made them.

    Raises:
        RunDirError: one cannot be removed.
    """
    for name in (PACKED, REST):
        if os.path.lexists(folder / name):
            files.remove(folder / name)


def rest_of(folder: Path) -> Path | None:
    """Return the folder of the probe that goes on where this one's process ended; None where none does.

    Raises:
        RunDirError: the zip file is damaged.
    """
    try:
        return folder.parent / read(folder, REST).decode()
    except OSError:
        return None


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
    """Return the folders of all probes of a run, in order, those too whose files are in the run's zip file alone."""
    try:
        gathered = _names(_gathered(probes))
    except (OSError, RunDirError):
        gathered = set()
    return sorted({path for path in probes.glob("*") if path.is_dir()} | {probes / name for name in gathered})


def has_stacks(folder: Path, name: str = wire.STACKS) -> bool:
    """Return whether a probe's file of stacks holds more than what a worker writes when it could show some."""
    try:
        with opened(folder, name) as stream:
            return any(line.strip() and not line.startswith(ARMED) for line in stream)
    except (OSError, RunDirError):
        return False


def _says_something(path: Path) -> bool:
    """Whether a file of a probe that failed tells a reader why."""
    if path.name.startswith(wire.STACKS):
        return has_stacks(path.parent, path.name)
    return path.name == wire.STDERR and path.stat().st_size > 0


def _unzipped(folder: Path, name: str) -> bytes:
    path = folder / PACKED
    # In a folder with a request the probe was made again since the run's zip file was written.
    alone = path.exists() or (folder / wire.REQUEST).exists()
    source = path if alone else io.BytesIO(_packed(folder))
    with _damage_named(path if alone else folder.parent / GATHERED), zipfile.ZipFile(source) as archive:
        return _member(archive, name)


def _packed(folder: Path) -> bytes:
    """Return the zip file of a probe, as the run's zip file has it."""
    archive = _gathered(folder.parent)
    with _damage_named(folder.parent / GATHERED):
        return _member(archive, f"{folder.name}.zip")


def _gathered(probes: Path) -> zipfile.ZipFile:
    status = (probes / GATHERED).stat()
    with _damage_named(probes / GATHERED):
        return _opened(probes / GATHERED, (status.st_ino, status.st_size, status.st_mtime_ns))


@functools.lru_cache(maxsize=1)
def _opened(path: Path, _state: tuple[int, ...]) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(path)  # its directory is long, and read for every file of every probe
    if archive.comment != COMMENT:  # torn: what was found is the end of a zip file within
        raise zipfile.BadZipFile("its end is missing")
    return archive


def _names(archive: zipfile.ZipFile) -> set[str]:
    return {name.removesuffix(".zip") for name in archive.namelist()}


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        if archive.getinfo(name).file_size > IN_MEMORY_BYTES:
            raise zipfile.BadZipFile(f"{name} is larger than what is put there")
        return archive.read(name)
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, f"it has no {name}", str(archive.filename)) from None


@contextlib.contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except files.ZIP_DAMAGE as error:
        hint = f"remove {'it' if path.name == GATHERED else 'its folder'}: the probe is then made again"
        raise RunDirError(f"{path} is damaged: {error}", hint) from error


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
    with _new_archive(folder / PACKED) as archive:
        for path in loose:
            how = zipfile.ZIP_STORED if path.name == wire.TENSORS_BIN else None  # numbers hardly get smaller
            archive.write(path, str(path.relative_to(folder)), how)


def _write_gathered(probes: Path, moved: list[Path]) -> None:
    """Write the run's zip file anew, with what it had."""
    try:
        before = _gathered(probes)
        kept = _names(before) - {folder.name for folder in moved}
    except FileNotFoundError:
        kept = set()
    contents: dict[str, Callable[[], bytes]] = {name: functools.partial(_packed, probes / name) for name in kept}
    contents |= {folder.name: (folder / PACKED).read_bytes for folder in moved}
    with _new_archive(probes / GATHERED) as archive:
        archive.comment = COMMENT
        for name in sorted(contents):
            archive.writestr(zipfile.ZipInfo(f"{name}.zip"), contents[name]())  # as it is: it is compressed


@contextlib.contextmanager
def _new_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Give a zip file to be filled, which is under its name once it is whole."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with files.new_zip(part, zipfile.ZIP_DEFLATED) as archive:
            yield archive
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _restore(path: Path, probes: Path) -> None:
    """Make a folder or file again that a report leads to, where the run's zip file alone has it."""
    if path.exists() or probes not in path.parents:
        return
    if path.parent == probes:
        path, content = path / PACKED, _packed(path)
    else:
        content = read(path.parent, path.name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
