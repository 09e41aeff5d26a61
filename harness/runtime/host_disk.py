"""Looks at the disk that environments are built on, and at the installer's cache."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.domain.host import Disk


def look(folder: Path, cache: Path | None) -> Disk:
    """Return what is known of the disk below ``folder``, which need not be there yet.

    Args:
        cache: of uv; None where it does not build.
    """
    there = _nearest(folder)
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        free = None
    return Disk(
        folder=str(there),
        writable=os.access(there, os.W_OK),
        free=free,
        cache=str(cache) if cache is not None else "",
        same_filesystem=_device(there) == _device(_nearest(cache)) if cache is not None else None,
    )


def uv_cache(environ: Mapping[str, str]) -> Path:
    """Return where uv keeps its cache, from ``environ``: UV_CACHE_DIR, else the user's cache folder.

    https://docs.astral.sh/uv/concepts/cache/#cache-directory
    """
    named = environ.get("UV_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    home = Path(environ.get("HOME") or "~").expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "uv"


def _nearest(folder: Path) -> Path:
    """Return ``folder``, or the nearest one above it that is there."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


def _device(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except OSError:
        return None
