"""One round of a duel: fresh processes of both environments, alive at once, timed in short alternating blocks.

Only one process works at a time, in an order drawn anew for every block, so that drift of the machine cancels.
The processes are fresh, never forks of one zygote: those would share one memory layout.
"""

import json
import random
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.domain.environment import Environment
from harness.domain.measurement import Block, PairSample
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ProbeRequest
from harness.runtime import codec, process
from harness.runtime.probe_runner import wire_request
from harness.worker import wire

START_DEADLINE_S = 180.0


# Every answer of a fighter has one of these.
ANSWER_KEYS = {"ready", "load_s", "per_call_s", "error"}


class FighterLost(Exception):
    """Raised when a process of the duel died or went silent; the model at hand is to blame."""


class Fighter:
    """One process of the duel."""

    def __init__(self, arm: str, environment: Environment, request: ProbeRequest, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        codec.write_atomically(folder / wire.REQUEST, codec.canonical(wire_request(request)))
        self.arm = arm
        self._folder = folder
        self._buffer = b""
        try:
            self._process: subprocess.Popen[bytes] = process.start_worker(
                environment.interpreter, folder, request.profile.env
            )
        except OSError as error:
            raise FighterLost(f"the {arm} process could not be started: {error.strerror or error}") from error

    def order(self, deadline_s: float, **order: Any) -> dict[str, Any]:
        """Send an order and return its answer."""
        try:
            if self._process.stdin is None:
                raise FighterLost(self.arm)
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise FighterLost(f"the {self.arm} process died") from error
        return self.answer(deadline_s)

    def answer(self, deadline_s: float) -> dict[str, Any]:
        """Wait for one answer line."""
        stream = self._process.stdout
        limit = time.monotonic() + deadline_s
        while b"\n" not in self._buffer:
            left = limit - time.monotonic()
            if stream is None or left <= 0 or not select.select([stream], [], [], left)[0]:
                process.request_stack_dump(self._process.pid, self._folder / wire.STACKS)
                raise FighterLost(f"the {self.arm} process gave no answer within {deadline_s:.0f} s")
            chunk = stream.read1(65536)  # type: ignore[attr-defined]
            if not chunk:
                raise FighterLost(f"the {self.arm} process died")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not ANSWER_KEYS & answer.keys():
            raise FighterLost(f"the {self.arm} process answered with garbage: {line[:80].decode(errors='replace')!r}")
        return answer

    def close(self) -> None:
        """Kill the process with its group; what it left lies in its folder."""
        process.reap(self._process)


class Round:
    """One round: an arm per entry of ``requests``, every model in turn.

    Args:
        environments: arm -> environment; arms are ``old``, ``new`` and ``twin``.
        requests: arm -> a request whose ``runs`` are the models.
        number: index of the round; seeds the order of blocks.
        deadline_s: for any single order.
    """

    def __init__(
        self,
        environments: Mapping[str, Environment],
        requests: Mapping[str, ProbeRequest],
        folder: Path,
        *,
        number: int,
        budget: LatencyBudget,
        deadline_s: float,
    ) -> None:
        self._environments = environments
        self._requests = requests
        self._folder = folder
        self._number = number
        self._budget = budget
        self._deadline_s = deadline_s
        self._random = random.Random(number)
        self._starts = 0
        self._fighters: dict[str, Fighter] = {}
        self.wall_ns = (0, 0)
        self.problems: dict[str, str] = {}

    def fight(self, models: Sequence[str], tick: Callable[[str], None]) -> list[PairSample]:
        """Return one sample per model; a model that fails is left out and named in ``problems``."""
        samples = []
        begin_ns = time.monotonic_ns()
        try:
            self._start()
            for model in models:
                tick(model)
                try:
                    samples.append(self._duel(model))
                except FighterLost as lost:
                    self.problems[model] = str(lost)
                    self._stop()
                    self._start()
        except FighterLost as lost:
            for model in models:
                self.problems.setdefault(model, f"the duel could not start: {lost}")
        finally:
            self._stop()
            self.wall_ns = (begin_ns, time.monotonic_ns())
        return samples

    def _start(self) -> None:
        again = f"-{self._starts}" if self._starts else ""
        self._starts += 1
        for arm, environment in self._environments.items():
            folder = self._folder / f"round-{self._number}{again}-{arm}"
            self._fighters[arm] = Fighter(arm, environment, self._requests[arm], folder)
        for fighter in self._fighters.values():
            fighter.answer(START_DEADLINE_S)

    def _stop(self) -> None:
        for fighter in self._fighters.values():
            fighter.close()
        self._fighters = {}

    def _order(self, arm: str, **order: Any) -> dict[str, Any]:
        answer = self._fighters[arm].order(self._deadline_s, **order)
        if "error" in answer:
            raise FighterLost(f"{arm}: {answer['error']}")
        return answer

    def _duel(self, model: str) -> PairSample:
        arms = list(self._fighters)
        self._random.shuffle(arms)
        loads = {arm: self._order(arm, order="load", model=model) for arm in arms}
        calls = self._calls_per_block(model, arms)
        blocks = []
        for _ in range(self._budget.blocks):
            self._random.shuffle(arms)
            for arm in arms:
                answer = self._order(arm, order="block", model=model, calls=calls)
                blocks.append(Block(arm=arm, per_call_s=answer["per_call_s"], calls=calls))
        return PairSample(
            model=model,
            round=self._number,
            blocks=tuple(blocks),
            load_s={arm: answer["load_s"] for arm, answer in loads.items()},
            first_calls_s={arm: tuple(answer["first_calls_s"]) for arm, answer in loads.items()},
        )

    def _calls_per_block(self, model: str, arms: Sequence[str]) -> int:
        """Return how many calls fill a block; the same number on every arm, from a warm call of the slowest."""
        slowest: float = max(self._order(arm, order="block", model=model, calls=2)["per_call_s"] for arm in arms)
        return max(1, min(100_000, round(self._budget.block_s / max(slowest, 1e-9))))
