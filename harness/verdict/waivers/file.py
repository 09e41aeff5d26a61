"""``golden/waivers.toml`` on disk: read whole, and replaced atomically by one process at a time."""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness.core.errors import ConfigError, RunDirError
from harness.machine import files
from harness.machine.pool import DeadlineExceeded, Patience
from harness.store import codec

WAIT_S = 10.0


def read(path: Path) -> str:
    """Return the text of the file, its line endings as they are; empty where there is none.

    Raises:
        ConfigError: it cannot be read, or is no UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", "save it as UTF-8 text") from error


def change(path: Path, edit: Callable[[str], str]) -> None:
    """Replace the text by what ``edit`` makes of it, exclusively. Raises ``ConfigError``: no access, held too long."""
    real = Path(os.path.realpath(path))  # if it is a link, the file behind it is changed
    patience = Patience(deadline=time.monotonic() + WAIT_S, tick=lambda: None, cancelled=threading.Event())
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with files.locked(real.parent, patience):
            before = read(real)
            after = edit(before)
            if after != before:
                _check_writable(real)
                codec.write_atomically(real, after.encode("utf-8"))
    except DeadlineExceeded:
        raise ConfigError(f"{path} is being changed by another process", "try again once that has ended") from None
    except (OSError, RunDirError) as error:
        what = error.message if isinstance(error, RunDirError) else f"{path} cannot be written: {error}"
        raise ConfigError(what, "free space, or let this user write there") from error


def _check_writable(path: Path) -> None:
    """Refuse a read-only file: replacing it would not need its permission."""
    if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
        raise PermissionError(errno.EACCES, "it is read-only")
