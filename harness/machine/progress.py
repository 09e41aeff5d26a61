"""Prints progress on standard error: on a terminal one line that is rewritten in place, in a log a few plain ones."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TextIO

from harness.core.text import visible

LOG_INTERVAL_S = 5.0
CI_INTERVAL_S = 30.0
TERMINAL_INTERVAL_S = 0.1
# A terminal's line is written again after so long without news: its clock runs.
TERMINAL_BEAT_S = 1.0
# How fast a stage is, is known after so long.
KNOWN_AFTER_S = 3.0
# A step that takes so many times the mean of those before it says that the mean tells nothing of the rest.
OVERDUE = 3.0
TERMINAL_COLUMNS, LOG_COLUMNS = 80, 160


class Activity:
    """Something that runs now: what it is doing, since when on the progress's clock, how long that took before."""

    def __init__(self, doing: str, since: float) -> None:
        self._doing, self.since, self._before = doing, since, ""

    def at(self, doing: str, since: float, *, before: str = "") -> None:
        """Say what it does from ``since`` on; ``before``: how long that took elsewhere, in words."""
        self._doing, self.since, self._before = doing, since, before

    def words(self, now: float) -> str:
        """Return what it does, and how long it has been at that, once it has been for a while."""
        if now - self.since < KNOWN_AFTER_S:
            return self._doing
        return f"{self._doing}, {now - self.since:.0f} s" + (f" ({self._before})" if self._before else "")


def in_ci() -> bool:
    """Whether a CI server says that this is one of its jobs."""
    return os.environ.get("CI", "").casefold() not in ("", "0", "false")


class Progress:
    """Says what is going on: the stage, how far it is, how long it will take, what runs, what is red; thread-safe.

    On a terminal that is one line, gone when the last stage has ended. Elsewhere a line is printed when a stage begins,
    and every five seconds while it goes on, every thirty where ``CI`` is set, whether anything ends meanwhile or not.

    Args:
        clock: seconds, as ``time.monotonic``.
        beats: whether a thread writes the line again while nothing ends; ``beat`` does so once.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        enabled: bool = True,
        clock: Callable[[], float] = time.monotonic,
        beats: bool = True,
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = enabled
        self._clock = clock
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interval_s = TERMINAL_INTERVAL_S if self._terminal else CI_INTERVAL_S if in_ci() else LOG_INTERVAL_S
        self._begin = clock()
        self._last = self._stage_begin = self._last_step = self._begin
        self._end: float | None = None
        self._stage, self._done, self._total = "", 0, 0
        self._red: set[str] = set()
        self.waived: Collection[str] = ()
        """Models of which a waiver lets something pass: what of them looks red may be known."""
        self._activities: list[Activity] = []
        self._doing = ""
        self._line = ""
        self._lock = threading.RLock()
        self._beats = beats and enabled
        self._ended = threading.Event()
        self._ended.set()

    def stage(self, name: str, total: int = 0, *, left_s: float | None = None) -> None:
        """Begin a stage of ``total`` steps (0: unknown); ``left_s``: how long, where known better than from steps."""
        with self._lock:
            self._stage, self._done, self._total, self._doing = name, 0, total, ""
            self._stage_begin = self._last_step = self._clock()
            self._end = None if left_s is None else self._stage_begin + left_s
            self._show("", force=True)
            if self._beats and self._ended.is_set():
                self._ended = threading.Event()
                threading.Thread(target=self._beat_on, args=(self._ended,), name="progress", daemon=True).start()

    def step(self, what: str = "") -> None:
        with self._lock:
            self._done, self._doing = self._done + 1, ""
            self._last_step = self._clock()
            self._show(what, force=False)

    def tick(self, what: str) -> None:
        with self._lock:
            self._doing = what
            self._show(what, force=False)

    @contextlib.contextmanager
    def running(self, what: str) -> Iterator[Activity]:
        """Show that ``what`` runs, until the block ends; of several, what has been at it for longest."""
        activity = Activity(what, self._clock())
        with self._lock:
            self._activities.append(activity)
        try:
            yield activity
        finally:
            with self._lock:
                self._activities.remove(activity)

    def beat(self) -> None:
        """Write the line again if it is old: what runs now, and for how long."""
        with self._lock:
            if self._stage and self._clock() - self._last >= (TERMINAL_BEAT_S if self._terminal else self._interval_s):
                self._show("", force=True)

    def _beat_on(self, ended: threading.Event) -> None:
        while not ended.wait(TERMINAL_BEAT_S / 2):
            with contextlib.suppress(ValueError):  # the stream was closed
                self.beat()

    def red(self, names: Iterable[str]) -> None:
        """Add models to those that look red so far."""
        with self._lock:
            self._red.update(names)

    def judged(self, red: Iterable[str]) -> None:
        """Replace the models that looked red so far by those that are."""
        with self._lock:
            self._red = {*red}

    @property
    def red_names(self) -> tuple[str, ...]:
        """The models that are red as far as is known, in the order of their names."""
        return tuple(sorted(self._red))

    def note(self, text: str) -> None:
        with self._lock:
            if self._enabled:
                self._write(("\r\x1b[K" if self._terminal else "") + visible(text) + "\n" + self._line)

    def finish(self) -> None:
        with self._lock:
            self._ended.set()
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
            mean_s = (self._last_step - self._stage_begin) / self._done
            since_s = now - self._last_step
            if since_s <= max(OVERDUE * mean_s, KNOWN_AFTER_S):
                left_s = mean_s * (self._total - self._done) - since_s
        return "" if left_s is None or left_s <= 0 else f", {rough_duration(left_s)} left"

    def _now(self, now: float) -> str:
        """Return what runs longest, and how many more do."""
        if not self._activities:
            return ""
        more = len(self._activities) - 1
        longest = min(self._activities, key=lambda activity: activity.since)
        return longest.words(now) + (f" (and {more} more)" if more else "")

    def _show(self, what: str, *, force: bool) -> None:
        now = self._clock()
        if not self._enabled or (not force and now - self._last < self._interval_s):
            return
        self._last = now
        count = f" {self._done}/{self._total}" if self._total else ""
        waived = len(self._red & {*self.waived})
        counts = ((len(self._red) - waived, "red"), (waived, "red with a waiver"))
        red = "".join(f", {number} {words}" for number, words in counts if number)
        what = self._now(now) or what or self._doing
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
