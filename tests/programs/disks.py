"""A file system of its own that is soon full, where this machine allows to mount one."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int = 64, inodes: int = 2000) -> Iterator[Path]:
    """Yield ``folder`` with so much space and so many inodes; the test is left out where nothing can be mounted."""
    folder.mkdir()
    options = f"size={megabytes}m,nr_inodes={inodes}"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, *, inodes_left: int | None = None, bytes_left: int | None = None) -> Path:
    """Take all inodes, or all bytes, of the file system of ``folder`` but so many; return what to remove for them."""
    filler = folder / "filler"
    filler.mkdir()
    state = os.statvfs(folder)
    with contextlib.suppress(OSError):  # of a program that takes the rest meanwhile: full is full
        if inodes_left is not None:
            for number in range(state.f_favail - inodes_left):
                (filler / str(number)).touch()
        if bytes_left is not None:
            with (filler / "bytes").open("wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, state.f_bavail * state.f_frsize - bytes_left)
    return filler
