"""Prints progress on standard error: one line per stage, refreshed in place on a terminal, sparse in a log."""

import os
import sys
import threading
import time
from typing import TextIO

from harness.domain.text import visible

QUIET_INTERVAL_S = 2.0
_COLUMNS = 80


class Progress:
    """Says what is going on; thread-safe.

    On a terminal the current line is rewritten. Elsewhere a line is printed when a stage begins, every two
    seconds at most while it goes on, and when it ends.
    """

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = enabled
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._begin = time.monotonic()
        self._last = 0.0
        self._stage, self._done, self._total = "", 0, 0
        self._lock = threading.RLock()

    def stage(self, name: str, total: int = 0) -> None:
        """Begin a stage of ``total`` steps (0: unknown)."""
        with self._lock:
            self.finish()
            self._stage, self._done, self._total, self._last = name, 0, total, 0.0
            self._show("", force=True)

    def step(self, what: str = "") -> None:
        """Count one finished step."""
        with self._lock:
            self._done += 1
            self._show(what, force=False)

    def tick(self, what: str) -> None:
        """Say what the current stage is doing."""
        with self._lock:
            self._show(what, force=False)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            if self._enabled:
                self._stream.write(("\r\x1b[K" if self._terminal else "") + visible(text) + "\n")
                self._stream.flush()

    def finish(self) -> None:
        """End the current stage."""
        with self._lock:
            if self._stage:
                self._show("done", force=True)
                if self._terminal and self._enabled:
                    self._stream.write("\n")
            self._stage = ""

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):  # a terminal that does not tell
            return _COLUMNS

    def _show(self, what: str, *, force: bool) -> None:
        now = time.monotonic()
        interval = 0.1 if self._terminal else QUIET_INTERVAL_S
        if not self._enabled or (not force and now - self._last < interval):
            return
        self._last = now
        count = f" {self._done}/{self._total}" if self._total else ""
        line = visible(f"[{now - self._begin:6.1f} s] {self._stage}{count}  {what}".rstrip())
        if self._terminal:
            self._stream.write(f"\r\x1b[K{line[: self._columns() - 1]}")  # a line that wraps could not be rewritten
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
