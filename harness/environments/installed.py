"""What is installed beside a torch, as files: whether an environment is still the one that it was."""

import os
from pathlib import Path
from typing import Final

from harness.store import codec

MOST_FILES: Final = 50_000
# Which lists further folders of modules, and what a virtual environment's tools write there themselves.
_FOLDERS, _OF_TOOLS = ".pth", ("_virtualenv.pth", "distutils-precedence.pth")
_MADE_AT_IMPORT: Final = "__pycache__"


def digest_of_installed(site: Path, *, alone: bool = False) -> str | None:
    """Return a digest over names, sizes and times of all files below a folder of packages; tens of milliseconds.

    None where it cannot be known: too many files, one that is not to be read. ``alone``: where modules of another
    folder count too, which a ``.pth`` file may name.
    """
    parts: list[tuple[str, int, int]] = []
    folders = [str(site)]
    try:
        while folders:
            folder = folders.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != _MADE_AT_IMPORT:
                            folders.append(entry.path)
                        continue
                    status = entry.stat()
                    parts.append((entry.path, status.st_size, status.st_mtime_ns))
                    if alone and entry.name.endswith(_FOLDERS) and entry.name not in _OF_TOOLS:
                        return None
            if len(parts) > MOST_FILES:
                return None
    except OSError:
        return None
    return codec.digest(sorted(parts))
