"""The batch workers of a run: processes that do probes one after another, so that these share what a process costs."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest, ProbeResult
from harness.machine.processes import REAP_DEADLINE_S
from harness.probing.zygote import Child, Zygote

# Exports are not among them: a factory is any Python, and what it leaves in its process could change the next archive.
SHARING = ("adopt", "run")


def may_share(request: ProbeRequest) -> bool:
    """Whether a probe may run in a process that has done others: where contexts are dear, or its models say so.

    A script has a process of its own everywhere, and so has what runs code as it is loaded.
    """
    plain = request.script is None and not request.runs_code and request.runtime == "python" and request.beside == 0
    return (request.device.contexts or request.shares) and plain and request.verb in SHARING


@dataclass(eq=False)
class BatchWorker:
    """One process; ``folder`` holds each request's folder while it is done; ``done``: how many so far."""

    serves: tuple[Any, ...]
    zygote: Zygote
    process: Child
    folder: Path
    done: int = 0

    def end(self) -> bool:
        self.process.kill()
        with contextlib.suppress(OSError):  # what a failed probe has left stays
            self.folder.rmdir()
        return self.process.ended.wait(REAP_DEADLINE_S)


class Batches:
    """Lends batch workers, each to one probe at a time, as many as probes at once; ``start`` starts one."""

    def __init__(self, start: Callable[[ProbeRequest, tuple[Any, ...]], BatchWorker]) -> None:
        self._start = start
        self._idle: list[BatchWorker] = []
        self._lock = threading.Lock()
        self._open = 0

    @property
    def is_open(self) -> bool:
        return self._open > 0

    def open(self) -> None:
        with self._lock:
            self._open += 1

    def close(self) -> list[BatchWorker]:
        """End those that are idle, once as often as it was opened; return those that could not be reaped."""
        with self._lock:
            self._open -= 1
            idle = [] if self._open else list(self._idle)
            self._idle = [worker for worker in self._idle if worker not in idle]
        return [worker for worker in idle if not worker.end()]

    def take(self, request: ProbeRequest) -> BatchWorker:
        """Return a worker for this probe alone; none does a model twice: repeats are to show how processes differ."""
        serves = (request.side, request.verb, request.profile, request.device, request.limits, request.repeat)
        with self._lock:
            for worker in [worker for worker in self._idle if worker.process.ended.is_set()]:
                self._idle.remove(worker)
            idle = next((worker for worker in reversed(self._idle) if worker.serves == serves), None)
            if idle is not None:
                self._idle.remove(idle)
        return idle or self._start(request, serves)

    def keep(self, worker: BatchWorker) -> None:
        """Let the next probe have a worker that has done one well."""
        worker.done += 1
        with self._lock:
            if self._open:
                self._idle.append(worker)
                return
        worker.end()


def is_healthy(result: ProbeResult) -> bool:
    """Whether a process may go on after this: everything in it succeeded, also what may fail without being blamed."""
    return result.outcome is Outcome.COMPLETED and not any(model.failed for model in result.models)
