"""Rounds of the paired benchmark: fresh processes of both releases, timed in short alternating blocks."""

import random
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.checks.latency.lanes import NO_WORKERS, Lane, ReadWriteLock, combined
from harness.core.environment import Environment
from harness.core.machine import MachineState
from harness.core.measurement import NO_PROBLEM, PairSample, Problem
from harness.core.plan import LatencyBudget
from harness.core.probe import ProbeRequest
from harness.machine.cores import ANYWHERE, Placement

# So many models tell what a round does to all of its models alike: the control times these, and no others.
FEWEST_CONTROLS = 8

# Between two attempts to end lanes: one that is just starting its processes has more of them a moment later.
ENDING_S = 0.1


class Round:
    """One round: an arm per entry of ``requests``, every model once, in one lane or in several at the same time.

    Attributes:
        wall_ns: begin and end on the monotonic clock, once it was measured.

    Args:
        environments: arm -> environment; arms are ``old``, ``new`` and ``control``.
        requests: arm -> a request whose ``runs`` are the models; of their schedules the first set is timed.
        number: index of the round; with ``folder`` it seeds the order of models and blocks.
        lanes: how many there may be; there are as many as the machine has physical cores for.
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
        placement: Placement = ANYWHERE,
        lanes: int = 1,
        native: Mapping[str, Path] = NO_WORKERS,
    ) -> None:
        self._number = number
        self._random = random.Random(f"{folder} {number}")
        self._placements = placement.lanes(lanes)
        self._lane = partial(
            Lane, environments, requests, folder, number=number, budget=budget, deadline_s=deadline_s, native=native
        )
        self.wall_ns = (0, 0)
        self.problems: dict[str, Problem] = {}
        self.machine_state: MachineState | None = None
        self.unreaped: list[str] = []

    def measure(
        self,
        models: Sequence[str],
        tick: Callable[[str], None],
        *,
        extras: bool = True,
        confirming: Collection[str] = (),
    ) -> list[PairSample]:
        """Return one sample per model, in their order; a model that fails is left out and named in ``problems``.

        The models come in an order drawn anew, and whichever lane is free takes the next. What a process keeps from one
        to the next favours none of them then. The control times some of them only, see ``with_control``, those that are
        confirmed, and the first of each lane, which pays for what a process does once.
        """
        waiting = deque(self._random.sample(models, len(models)))
        lock = ReadWriteLock()
        placements = self._placements[: max(len(models), 1)]
        first = [*waiting][: len(placements)]
        controls = with_control(models, self._number).union(confirming, first)
        lanes = [
            self._lane(
                name=f"round-{self._number}" + f"-lane-{index}" * (index > 0),
                placement=own,
                lock=lock,
                starting=own.ranked if len(placements) == 1 else (),
            )
            for index, own in enumerate(placements)
        ]
        begin_ns = time.monotonic_ns()
        try:
            samples = self._in_lanes(lanes, waiting, tick, extras=extras, controls=controls)
        finally:
            self.wall_ns = (begin_ns, time.monotonic_ns())
            self.unreaped = [text for lane in lanes for text in lane.unreaped]
            self.machine_state = combined([lane.machine_state() for lane in lanes])
        for lane in lanes:
            self.problems |= lane.problems
        why = next((lane.why_not_started for lane in lanes if lane.why_not_started), NO_PROBLEM)
        for model in waiting:
            self.problems[model] = replace(why, words=f"the benchmark could not start: {why.words}")
        return [samples[model] for model in models if model in samples]

    def _in_lanes(
        self,
        lanes: Sequence[Lane],
        waiting: deque[str],
        tick: Callable[[str], None],
        *,
        extras: bool,
        controls: Collection[str],
    ) -> dict[str, PairSample]:
        """Return what the lanes measured; where this is interrupted, they are ended first."""
        with ThreadPoolExecutor(len(lanes), thread_name_prefix="lane") as threads:
            working = [
                threads.submit(lane.measure, waiting, tick, extras=extras, controls=controls, chance=self._random)
                for lane in lanes
            ]
            try:
                wait(working)
            except BaseException:
                waiting.clear()
                while wait(working, timeout=ENDING_S).not_done:
                    for lane in lanes:
                        lane.stop()
                raise
        return {model: sample for lane in working for model, sample in lane.result().items()}


def with_control(models: Sequence[str], number: int) -> frozenset[str]:
    """Return the models of a round that the control times too: all of a small round, of a large one others each time.

    It halves the luck of a model's old process, which is dear in a large round, and tells what a round does to all of
    its models, for which some suffice (docs/adr/0072-a-control-for-some.md).
    """
    every = control_every(len(models))
    return frozenset(model for index, model in enumerate(models) if (index + number) % every == 0)


def control_every(models: int) -> int:
    """Return that every so many-th of the models of a round has the control."""
    return max(models // FEWEST_CONTROLS, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRound:
    """What one round gave; ``key`` digests what was asked: another question's round is not taken for this one."""

    key: str
    samples: tuple[PairSample, ...]
    problems: dict[str, Problem]
    wall_s: float = 0.0
    machine_state: MachineState | None = None
