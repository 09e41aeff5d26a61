"""All processes of one server: those below it, and those that have left it, by a variable that only they have."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final, Self

from harness.machine import proc_files
from harness.machine.files import text_of
from harness.machine.memory import bytes_in

MARK: Final = "TORCHSCRIPT_GATE_SERVER"
EVERY_S: Final = 0.1
MOST_OF_A_CORE: Final = 0.1  # what looking may take


class Tree:
    """The processes of one server; looks at their memory while its ``with`` block lasts.

    Args:
        mark: value of the variable ``MARK``, which only they have.
        limit_bytes: with more proportional memory than that the server is killed; None: any amount.

    Attributes:
        peak_bytes: largest proportional resident memory of all of them so far.
        over_limit: whether it was killed for that.
    """

    def __init__(self, pid: int, mark: str, limit_bytes: int | None = None) -> None:
        self.pid, self._mark, self._limit = pid, f"{MARK}={mark}".encode(), limit_bytes
        self.peak_bytes, self.over_limit = 0, False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory of a server", daemon=True)

    def __enter__(self) -> Self:
        """Start to look."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking; nothing is killed."""
        self._ended.set()
        self._thread.join()

    def pids(self) -> list[int]:
        """Return the processes below the supervisor, without it, the parents first."""
        parents: dict[int, list[int]] = {}
        for pid in proc_files.numbers_in("/proc"):
            status = proc_files.status_in(proc_files.read(f"/proc/{pid}/stat"))
            if status is not None and status.state not in "ZX":
                parents.setdefault(status.parent, []).append(pid)
        below, waiting = [], [self.pid]
        while waiting:
            children = sorted(parents.get(waiting.pop(0), ()))
            below += children
            waiting += children
        return below

    def left(self) -> list[int]:
        """Return every process that has the mark, wherever it is now: also what became a daemon."""
        marked = []
        for pid in proc_files.numbers_in("/proc"):
            with contextlib.suppress(OSError):
                if self._mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and _lives(pid):
                    marked.append(pid)
        return [pid for pid in marked if pid != self.pid]

    def kill(self, within_s: float = 5.0) -> list[int]:
        """Kill all of them, until none is there; return those that could not be ended."""
        end = time.monotonic() + within_s
        while left := self.left():
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                return left
            time.sleep(0.02)
        return []

    def memory(self) -> tuple[int, int]:
        """Return proportional resident memory, and the part of it that no file backs, of all together, in bytes."""
        total = anonymous = 0
        for pid in self.pids():
            text = text_of(Path(f"/proc/{pid}/smaps_rollup"))
            total += bytes_in(text, "Pss") or 0
            anonymous += bytes_in(text, "Pss_Anon") or bytes_in(text, "Anonymous") or 0
        return total, anonymous

    def _watch(self) -> None:
        pause = EVERY_S
        while not self._ended.wait(pause):
            begin = time.monotonic()
            total, _ = self.memory()
            self.peak_bytes = max(self.peak_bytes, total)
            if self._limit is not None and total > self._limit:
                self.over_limit = True
                self.kill()
            pause = max(EVERY_S, (time.monotonic() - begin) / MOST_OF_A_CORE)


def _lives(pid: int) -> bool:
    status = proc_files.status_in(proc_files.read(f"/proc/{pid}/stat"))
    return status is not None and status.state not in "ZX"


def main_process(pids: Collection[int], supervisor: int) -> int:
    """Return the process that the supervisor started: the one that is told to stop."""
    for pid in pids:
        status = proc_files.status_in(proc_files.read(f"/proc/{pid}/stat"))
        if status is not None and status.parent == supervisor:
            return pid
    return supervisor
