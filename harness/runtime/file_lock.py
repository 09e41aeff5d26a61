"""A lock between processes: a file that the kernel unlocks when its last holder ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.runtime.patience import Patience


@contextmanager
def held(path: Path, patience: Patience) -> Iterator[int]:
    """Hold the lock at ``path``, a file or a folder that is there; gives its descriptor, for a child to inherit.

    Where another process has it, that is told at once.

    Raises:
        Cancelled: while waiting for the one who has it.
        DeadlineExceeded: likewise.
        OSError: the file cannot be made.
    """
    lock = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT) | os.O_CLOEXEC, 0o644)
    try:
        if not _taken(lock):
            patience.tick()
            patience.wait_until(lambda: _taken(lock))
        yield lock
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
