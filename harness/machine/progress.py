"""Prints progress on standard error: on a terminal one line that is rewritten in place, in a log a few plain ones."""

import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import TextIO

from harness.core.text import visible

PLAIN_INTERVAL_S = 10.0
CI_INTERVAL_S = 30.0
TERMINAL_INTERVAL_S = 0.1
# How fast a stage is, is known after so long.
KNOWN_AFTER_S = 3.0
TERMINAL_COLUMNS, LOG_COLUMNS = 80, 160


class Progress:
    """Says what is going on: the stage, how far it is, how long it will take, and what was found so far; thread-safe.

    On a terminal that is one line, gone when the last stage has ended. Elsewhere a line is printed when a stage begins,
    and every ten seconds at most while it goes on, every thirty where ``CI`` is set.
    """

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = enabled
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        in_ci = os.environ.get("CI", "").casefold() not in ("", "0", "false")
        self._interval_s = TERMINAL_INTERVAL_S if self._terminal else CI_INTERVAL_S if in_ci else PLAIN_INTERVAL_S
        self._begin = time.monotonic()
        self._last = self._stage_begin = self._begin
        self._end: float | None = None
        self._stage, self._done, self._total = "", 0, 0
        self._red: set[str] = set()
        self._line = ""
        self._lock = threading.RLock()

    def stage(self, name: str, total: int = 0, *, left_s: float | None = None) -> None:
        """Begin a stage of ``total`` steps (0: unknown); ``left_s``: how long, where known better than from steps."""
        with self._lock:
            self._stage, self._done, self._total = name, 0, total
            self._stage_begin = time.monotonic()
            self._end = None if left_s is None else self._stage_begin + left_s
            self._show("", force=True)

    def step(self, what: str = "") -> None:
        with self._lock:
            self._done += 1
            self._show(what, force=False)

    def tick(self, what: str) -> None:
        with self._lock:
            self._show(what, force=False)

    def red(self, names: Iterable[str]) -> None:
        """Add models to those that look red so far."""
        with self._lock:
            self._red.update(names)

    def judged(self, red: Iterable[str]) -> None:
        """Replace the models that looked red so far by those that are."""
        with self._lock:
            self._red = {*red}

    def note(self, text: str) -> None:
        with self._lock:
            if self._enabled:
                self._write(("\r\x1b[K" if self._terminal else "") + visible(text) + "\n" + self._line)

    def finish(self) -> None:
        with self._lock:
            if self._line and self._enabled:
                self._write("\r\x1b[K")
            self._stage = self._line = ""

    @property
    def columns(self) -> int:
        """How wide a line may be: as the terminal is; in a log, and where a terminal does not say, as is usual."""
        if not self._terminal:
            return LOG_COLUMNS
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or TERMINAL_COLUMNS
        except (OSError, ValueError):
            return TERMINAL_COLUMNS

    def _left(self, now: float) -> str:
        left_s = None
        if self._end is not None:
            left_s = self._end - now
        elif 0 < self._done < self._total and now - self._stage_begin >= KNOWN_AFTER_S:
            left_s = (now - self._stage_begin) / self._done * (self._total - self._done)
        return "" if left_s is None or left_s <= 0 else f", {rough_duration(left_s)} left"

    def _show(self, what: str, *, force: bool) -> None:
        now = time.monotonic()
        if not self._enabled or (not force and now - self._last < self._interval_s):
            return
        self._last = now
        count = f" {self._done}/{self._total}" if self._total else ""
        red = f", {len(self._red)} red" if self._red else ""
        line = visible(f"[{now - self._begin:6.1f} s] {self._stage}{count}{self._left(now)}{red}  {what}".rstrip())
        if self._terminal:
            self._line = line[: self.columns - 1]  # a line that wraps could not be rewritten
            self._write(f"\r\x1b[K{self._line}")
        else:
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def rough_duration(seconds: float) -> str:
    """Return a time that is known roughly: ``about 40 s``, ``about 5 min``, ``about 2 h``."""
    if seconds < 100:
        return f"about {max(5 * round(seconds / 5), 5)} s"
    return f"about {round(seconds / 60)} min" if seconds < 100 * 60 else f"about {round(seconds / 3600)} h"
