"""A lock between processes: a file that the kernel unlocks when its last holder ends, however it ends."""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.runtime.installer import DeadlineExceeded
from harness.runtime.side_by_side import Cancelled

_POLL_S: Final = 0.05
_TICK_S: Final = 2.0


@contextmanager
def held(
    path: Path, *, deadline: float, cancelled: threading.Event, tick: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Hold the lock at ``path``; gives its file descriptor, for a child process to inherit.

    Args:
        deadline: on ``time.monotonic()``.
        tick: called at once and about every 2 s while another process has it.

    Raises:
        Cancelled: while waiting for the one who has it.
        DeadlineExceeded: likewise.
        OSError: the file cannot be made.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        next_tick = time.monotonic()
        while not _taken(lock):
            now = time.monotonic()
            if now > deadline:
                raise DeadlineExceeded
            if now >= next_tick:
                next_tick = now + _TICK_S
                tick()
            if cancelled.wait(_POLL_S):
                raise Cancelled
        yield lock
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
