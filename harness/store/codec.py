"""Frozen types to JSON files and back; canonical bytes, atomic writes."""

import contextlib
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.errors import RunDirError
from harness.machine.files import plain_bytes, unwritable
from harness.store.json import JsonError, from_json

T = TypeVar("T")
OTHER_FOLDER = "free space, or name another folder with --out"
_DRAFT = re.compile(r"\..+\.(?P<pid>\d+)\.\d+\.part")


def canonical(value: Any) -> bytes:
    """Return ``value`` as JSON with a fixed order of keys: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def pretty(value: Any) -> bytes:
    """Return ``value`` as indented JSON with a fixed order of keys, for files that people review."""
    return msgspec.json.format(canonical(value), indent=2) + b"\n"


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def write_atomically(
    path: Path, data: bytes, *, parents: bool = False, synced: bool = False, hint: str = OTHER_FOLDER
) -> None:
    """Write ``path`` so that a reader, or a kill at any moment, sees the old content or the new one.

    Its permissions stay as they were. ``synced``: so does a machine that loses its power; it costs a wait for the disk.
    Raises ``RunDirError``: the folder cannot be written, or the disk is full.
    """
    temporary = draft_of(path)
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a process that was killed, or a link that somebody else has made
        temporary.write_bytes(data)
        if synced:
            _sync(temporary)
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, temporary)
        temporary.replace(path)
        if synced:
            _sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise unwritable(f"{path} cannot be written", error, hint) from error


def draft_of(path: Path) -> Path:
    """Return where what will be ``path`` is written first: a name of this process, by which it is removed later."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_drafts(folder: Path) -> None:
    """Remove drafts that killed processes left below ``folder``. Raises ``OSError``."""
    for part in folder.rglob(".*.part"):
        writer = _DRAFT.fullmatch(part.name)
        if writer and not Path("/proc", writer["pid"]).exists():
            part.unlink(missing_ok=True)


def read_json(path: Path, type_: type[T], *, read: Callable[[Path], bytes] = plain_bytes) -> T:
    """Return the ``type_`` in ``path``, found by ``read``. Raises ``RunDirError``: missing, no JSON, another shape."""
    try:
        return from_json(read(path), type_)
    except OSError as error:
        raise RunDirError(f"{path} cannot be read: {error.strerror or error}", "is this a run directory?") from error
    except JsonError as error:
        raise RunDirError(f"{path} is damaged or from another version: {error}", "run again") from error
