"""Files and folders that nobody needs: how much they hold, and their removal."""

import os
import shutil
from pathlib import Path

from harness.errors import RunDirError


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of everything below a folder; a link counts as itself, what is gone as nothing."""
    if path.is_dir() and not path.is_symlink():
        return sum(found.lstat().st_size for found in path.rglob("*") if not found.is_dir())
    return path.lstat().st_size if os.path.lexists(path) else 0


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with everything in it.

    Raises:
        RunDirError: it cannot be removed.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise RunDirError(f"{path} cannot be removed: {error.strerror or error}", "remove it by hand") from error
