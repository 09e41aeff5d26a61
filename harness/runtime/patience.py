"""Waiting for another process: how long, whom to tell meanwhile, and who may end it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.runtime.side_by_side import Cancelled

_POLL_S: Final = 0.02
_TICK_S: Final = 2.0


class DeadlineExceeded(Exception):
    """Raised where what was waited for did not happen in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How a build waits.

    Attributes:
        deadline: on ``time.monotonic()``.
        tick: called about every 2 s while it waits.
        cancelled: ends the wait.
    """

    deadline: float
    tick: Callable[[], None]
    cancelled: threading.Event

    def wait_until(self, has_happened: Callable[[], bool]) -> None:
        """Return once ``has_happened``, which is asked 50 times a second.

        Raises:
            Cancelled: ``cancelled`` was set.
            DeadlineExceeded: it did not happen in time.
        """
        next_tick = time.monotonic() + _TICK_S
        while not has_happened():
            now = time.monotonic()
            if now >= self.deadline:
                raise DeadlineExceeded
            if now >= next_tick:
                next_tick = now + _TICK_S
                self.tick()
            if self.cancelled.wait(_POLL_S):
                raise Cancelled
