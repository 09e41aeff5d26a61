"""One model in one round of the paired benchmark: the orders that its processes get, and what they answer."""

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from harness.checks.latency.processes import ProcessLost
from harness.core.measurement import CONTROL, ArmSample, Block
from harness.core.plan import LatencyBudget

# Calls after load: as many as fit into this time, up to this number, and at least the schedule's.
FIRST_CALLS = 8
FIRST_CALLS_S = 0.05
# Calls after which one is warm: those before it are profiled and compiled.
COLD_CALLS = 2
# Calls after load in a round that is there for the steady call alone.
FEWEST_FIRST_CALLS = COLD_CALLS + 2
# For a further input set: its first 4 calls may recompile (``SHAPE_CALLS`` of the quantities), one more is usual.
SHAPE_CALLS = 6
SHAPE_CALLS_LEAST = 5
SHAPE_S = 0.15
MOST_CALLS = 100_000
PROBE_SHARE = 0.25
# Where one call is longer than a block: three turns left rounds of 100 ms calls twice as noisy as ten of shorter calls
# (docs/adr/0048-what-made-rounds-noisy.md).
FEWEST_TURNS = 6
REPLAYS = 1000
# The order whose callers run on the cores of all lanes.
TOGETHER = "together"
# Below so many calls a quantile is made of too few of them.
P90_FROM = 50
P99_FROM = 200

Order = Callable[..., dict[str, Any]]


@dataclass(kw_only=True)
class ModelRound:
    """The orders for one model, and the replies.

    Attributes:
        spoilt: whether a process was lost beside the blocks, or answers no plain call any more.

    Args:
        order: gives an order and returns the answer, also where that is an error; raises ``ProcessLost`` without one.
        chance: draws who comes first, anew for every turn; never who came last in the turn before.
        sets: input sets of other shapes, for ``measure_extras``.
        callers: cores for callers at the same time; empty leaves them with their process.
        alone: entered while they call: their cores may be those of other lanes.
        pause_s: wait before an order to another arm: the threads of the pool of the last one spin on for a while.
    """

    model: str
    arms: Sequence[str]
    order: Order
    chance: random.Random
    budget: LatencyBudget
    sets: Sequence[str] = ()
    callers: Sequence[int] = ()
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    graphs: bool = False
    first_calls: int = FIRST_CALLS
    pause_s: float = 0.0
    blocks: list[Block] = field(default_factory=list)
    spoilt: bool = False
    _times_ns: dict[str, list[int]] = field(default_factory=dict)
    _resident: dict[str, list[int]] = field(default_factory=dict)
    _loads: dict[str, dict[str, Any]] = field(default_factory=dict)
    _more: dict[str, dict[str, Any]] = field(default_factory=dict)
    _missing: dict[str, dict[str, str]] = field(default_factory=dict)
    _lost: dict[str, str] = field(default_factory=dict)
    _last: str = ""

    def time(self) -> None:
        """Load the model everywhere and let the arms take turns."""
        for arm in self._drawn(self.arms):
            calls = FEWEST_FIRST_CALLS if arm == CONTROL else self.first_calls
            self._loads[arm] = self._ask(arm, "load", calls=calls, call_s=FIRST_CALLS_S)
        call_s = self._warm_call_s()
        calls = max(1, min(MOST_CALLS, round(self.budget.block_s / call_s)))
        before = ""
        for turn in range(self._turns(call_s)):
            for arm in self._turn_after(before):
                self._take(arm, turn, calls, self._ask(arm, "block", calls=calls))
                before = arm

    def work(self) -> None:
        self._ask(self.arms[0], "block", calls=self.blocks[0].calls)

    def measure_extras(self) -> None:
        """Measure what comes beside the blocks: other shapes, several callers at once, replayed graphs.

        The control is there for the steady call, and is spared this. What fails is missing, with the reason; the rest
        goes on where its process lives and answers.
        """
        slowest_s = max(block.p50_s for block in self.blocks)
        calls = max(SHAPE_CALLS_LEAST, min(SHAPE_CALLS, round(SHAPE_S / max(slowest_s, 1e-9))))
        self._more = {arm: {"shapes_s": {}} for arm in self.arms}
        compared = [arm for arm in self.arms if arm != CONTROL]
        for name in self.sets:
            for arm in self._drawn(compared):
                answer = self._try(f"new_shape:{name}", arm, "shape", set=name, calls=calls)
                if answer:
                    self._more[arm]["shapes_s"][name] = tuple(answer["calls_s"])
        if self.budget.threads > 1:
            crowd = {"threads": self.budget.threads, "seconds": self.budget.together_s, "cores": [*self.callers]}
            with self.alone():
                for arm in self._drawn(compared):
                    answer = self._try("request", arm, TOGETHER, **crowd)
                    self._more[arm].update({name: answer.get(name) for name in ("request_s", "request_cpu_s")})
        if self.graphs:
            for arm in self._drawn(compared):
                answer = self._try("replay", arm, "replay", calls=min(self.blocks[0].calls, REPLAYS))
                times_ns = answer.get("times_ns")
                self._more[arm]["replay_s"] = 1e-9 * statistics.median(times_ns) if times_ns else None

    def _try(self, quantity: str, arm: str, order: str, **details: Any) -> Mapping[str, Any]:
        """Return the answer; an empty one where there is none, and why goes to what is missing."""
        try:
            answer = {"skipped": self._lost[arm]} if arm in self._lost else self._give(arm, order, **details)
        except ProcessLost as lost:
            answer = {"skipped": str(lost), "spoilt": True}
        why = answer.get("error", answer.get("skipped"))
        if why is None:
            return answer
        self._missing.setdefault(arm, {})[quantity] = why
        if answer.get("spoilt"):
            self.spoilt = True
            self._lost[arm] = why
        return {}

    def drop(self) -> None:
        for arm in self.arms:
            self._ask(arm, "drop")

    def samples(self) -> Mapping[str, ArmSample]:
        return {arm: self._sample(arm) for arm in self.arms}

    def _sample(self, arm: str) -> ArmSample:
        load, times_ns, resident = self._loads[arm], self._times_ns[arm], self._resident[arm]
        calls = sum(block.calls for block in self.blocks if block.arm == arm)
        return ArmSample(
            load_s=load["load_s"],
            calls_s=tuple(load["calls_s"]),
            mean_s=1e-9 * max(statistics.fmean(times_ns), 1.0),
            p90_s=1e-9 * nearest_rank(times_ns, 0.90) if calls >= P90_FROM else None,
            p99_s=1e-9 * nearest_rank(times_ns, 0.99) if calls >= P99_FROM else None,
            peak_rss_bytes=load["peak_rss_bytes"],
            device_bytes=load["device_bytes"],
            growth_bytes=resident[-1] - resident[0] if len(resident) > 1 else None,
            missing=self._missing.get(arm, {}),
            **self._more.get(arm, {}),
        )

    def _warm_call_s(self) -> float:
        """Return the seconds of a call on the slowest arm, from the median of a short block on each.

        What a model with a state does between its calls, untimed, is added. Where the first calls have told that it is
        longer than a block, no more are made.
        """
        warm_s = [min(load["calls_s"][COLD_CALLS:], default=0.0) for load in self._loads.values()]
        if all(warm_s) and max(warm_s) > self.budget.block_s:
            return max(warm_s)
        known_s = max(min(load["calls_s"]) for load in self._loads.values())
        calls = max(2, min(25, round(PROBE_SHARE * self.budget.block_s / max(known_s, 1e-9))))
        answers = [self._ask(arm, "block", calls=calls) for arm in self._drawn(self.arms)]
        return max(map(_call_s, answers))

    def _turns(self, call_s: float) -> int:
        """Return the number of turns: fewer where one call is longer than a block, so that it stays affordable."""
        blocks, block_s = self.budget.blocks, self.budget.block_s
        return blocks if call_s <= block_s else min(blocks, max(FEWEST_TURNS, round(blocks * block_s / call_s)))

    def _take(self, arm: str, turn: int, calls: int, answer: Mapping[str, Any]) -> None:
        times_ns: list[int] = answer["times_ns"]
        self.blocks.append(
            Block(
                arm=arm,
                turn=turn,
                p50_s=1e-9 * max(statistics.median(times_ns), 1.0),
                calls=calls,
                waited=min(answer["wait_ns"] / max(answer["wall_ns"], 1), 1.0),
            )
        )
        self._times_ns.setdefault(arm, []).extend(times_ns)
        self._resident.setdefault(arm, []).append(answer["rss_bytes"])

    def _ask(self, arm: str, order: str, **details: Any) -> dict[str, Any]:
        answer = self._give(arm, order, **details)
        if "error" in answer:
            raise ProcessLost(f"{arm}: {answer['error']}", arm=arm, refused=True)
        return answer

    def _give(self, arm: str, order: str, **details: Any) -> dict[str, Any]:
        if self.pause_s and self._last not in ("", arm):
            time.sleep(self.pause_s)
        self._last = arm
        return self.order(arm, order=order, model=self.model, **details)

    def _turn_after(self, before: str) -> list[str]:
        """Return the arms in an order that is drawn, in which ``before`` is not the first unless it is alone.

        A block right after one of the same process finds the caches as it left them, and is 6 to 23 % faster than one
        after another's (docs/evidence.md#caches).
        """
        first = self.chance.choice([arm for arm in self.arms if arm != before] or [before])
        return [first, *self._drawn([arm for arm in self.arms if arm != first])]

    def _drawn(self, arms: Sequence[str]) -> list[str]:
        return self.chance.sample(arms, len(arms))


def _call_s(answer: Mapping[str, Any]) -> float:
    times_ns: list[int] = answer["times_ns"]
    between_ns: float = max(answer["wall_ns"] - sum(times_ns), 0) / len(times_ns)
    return 1e-9 * max(statistics.median(times_ns) + between_ns, 1.0)


def nearest_rank(values: Sequence[int], quantile: float) -> int:
    """Return the smallest value that at least ``quantile`` of all do not exceed."""
    return sorted(values)[math.ceil(quantile * len(values)) - 1]
