"""One process of a paired benchmark: starts it, pins it, gives it one order at a time, and kills it."""

import json
import select
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from harness.core.environment import Environment
from harness.core.measurement import Problem
from harness.core.probe import ProbeRequest
from harness.machine.cores import pin, pin_threads, unpin
from harness.machine.files import emptied
from harness.probing import processes
from harness.probing.printed import Printed
from harness.probing.requests import wire_request
from harness.store import codec
from harness.worker import wire

# How often it is looked at what a process prints while it does an order.
LOOK_S = 1.0
# What the answer to an order has one of, unless it is an error.
ANSWERED_BY = {
    "load": {"load_s"},
    "block": {"times_ns"},
    "shape": {"calls_s"},
    "together": {"request_s", "skipped"},
    "replay": {"times_ns", "skipped"},
    "drop": {"dropped"},
}


class ProcessLost(Exception):
    """Raised when a process of the benchmark died, went silent or failed at an order; the model at hand is to blame."""

    def __init__(self, words: str, *, arm: str, refused: bool = False) -> None:
        super().__init__(words)
        self.problem = Problem(words=words, arm=arm, refused=refused)


class BenchmarkProcess:
    """One process of the benchmark.

    ``why_not_pinned``: why it does not run on ``cores`` alone, empty where it does; ``native``: the C++ worker of its
    release, in place of the Python one.
    """

    def __init__(
        self,
        arm: str,
        environment: Environment,
        request: ProbeRequest,
        folder: Path,
        *,
        cores: Sequence[int] = (),
        native: Path | None = None,
    ) -> None:
        emptied(folder)
        asked = wire_request(request, libraries=environment.spec.libraries)
        codec.write_atomically(folder / wire.REQUEST, codec.canonical(asked))
        self.arm = arm
        self.folder = folder
        self._buffer = b""
        self._printed = Printed(folder)
        try:
            env, kept = request.profile.env, request.runs_code
            self._process = (
                processes.start_worker(environment.interpreter, folder, env, kept=kept)
                if native is None
                else processes.start_native(native, folder, env, orders=True, kept=kept)
            )
        except OSError as error:
            raise ProcessLost(f"the {arm} process could not be started: {error.strerror or error}", arm=arm) from error
        # It has a single thread yet; those that it starts inherit its cores.
        self.why_not_pinned = pin(self._process.number, cores) if cores else ""

    @property
    def pid(self) -> int:
        return self._process.number

    def order(self, deadline_s: float, **order: Any) -> dict[str, Any]:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost("died") from error
        return self.answer(deadline_s, ANSWERED_BY.get(order["order"], set()))

    def answer(self, deadline_s: float, keys: Collection[str] = ("ready",)) -> dict[str, Any]:
        """Wait for one answer line; it has one of ``keys``, or ``"error"``."""
        stream = self._process.stdout
        limit = time.monotonic() + deadline_s
        while b"\n" not in self._buffer:
            left = limit - time.monotonic()
            self._printed.trim()
            if stream is None or left <= 0:
                processes.request_stack_dump(self._process.number, self.folder / wire.STACKS)
                raise self._lost(f"gave no answer within {deadline_s:.0f} s")
            if not select.select([stream], [], [], min(left, LOOK_S))[0]:
                continue
            chunk = stream.read1(65536)  # type: ignore[attr-defined]
            if not chunk:
                raise self._lost("died")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not {*keys, "error"} & answer.keys():
            raise self._lost(f"answered with garbage: {line[:80].decode(errors='replace')!r}")
        return answer

    def _lost(self, how: str) -> ProcessLost:
        return ProcessLost(f"the {self.arm} process {how}", arm=self.arm)

    def pin(self, cores: Sequence[int]) -> None:
        pin_threads(self._process.number, cores)

    def unpin(self) -> None:
        unpin(self._process.number)

    def close(self) -> bool:
        """Kill the process with its group, False if it could not be reaped; what it left lies in its folder."""
        reaped = processes.end(self._process)
        self._printed.finish()
        return reaped
