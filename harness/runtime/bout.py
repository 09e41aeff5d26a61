"""One model in one round of a duel: which orders its processes get, and what their answers amount to."""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.domain.measurement import ArmSample, Block
from harness.domain.plan import LatencyBudget

# Calls after load: as many as fit into this time, up to this number, and at least the schedule's.
FIRST_CALLS = 16
FIRST_CALLS_S = 0.25
# Of another input set: a new shape is compiled again within its first calls.
SHAPE_CALLS = 8
SHAPE_CALLS_LEAST = 3
SHAPE_S = 0.25
MOST_CALLS = 100_000
PROBE_SHARE = 0.25
FEWEST_TURNS = 3
REPLAYS = 1000
# Below so many calls a quantile is made of too few of them.
P90_FROM = 50
P99_FROM = 200
# Extras compare two releases; the twin has told all that it can when the blocks are done.
RELEASES = ("old", "new")

Order = Callable[..., dict[str, Any]]


@dataclass(kw_only=True)
class Bout:
    """What one model is asked, and what came back.

    Attributes:
        blocks: in the order they ran.
        spoilt: whether a capture has left a process unable to answer any more.

    Args:
        arms: the processes; each order goes to one of them while the others sleep.
        chance: draws who comes first, anew for every turn.
        sets: input sets of other shapes, for ``extras``.
        callers: cores for callers at the same time; empty leaves them with their process.
        graphs: whether CUDA graphs are replayed.
    """

    model: str
    arms: Sequence[str]
    order: Order
    chance: random.Random
    budget: LatencyBudget
    sets: Sequence[str] = ()
    callers: Sequence[int] = ()
    graphs: bool = False
    blocks: list[Block] = field(default_factory=list)
    spoilt: bool = False
    _times_ns: dict[str, list[int]] = field(default_factory=dict)
    _resident: dict[str, list[int]] = field(default_factory=dict)
    _loads: dict[str, dict[str, Any]] = field(default_factory=dict)
    _more: dict[str, dict[str, Any]] = field(default_factory=dict)

    def time(self) -> None:
        """Load the model everywhere and let the arms take turns."""
        for arm in self._drawn(self.arms):
            self._loads[arm] = self._ask(arm, "load", calls=FIRST_CALLS, call_s=FIRST_CALLS_S)
        call_s = self._warm_call_s()
        calls = max(1, min(MOST_CALLS, round(self.budget.block_s / call_s)))
        for turn in range(self._turns(call_s)):
            for arm in self._drawn(self.arms):
                self._take(arm, turn, calls, self._ask(arm, "block", calls=calls))

    def measure_extras(self) -> None:
        """Measure what comes beside the blocks: other shapes, several callers at once, replayed graphs."""
        arms = [arm for arm in RELEASES if arm in self.arms]
        slowest_s = max(block.p50_s for block in self.blocks)
        calls = max(SHAPE_CALLS_LEAST, min(SHAPE_CALLS, round(SHAPE_S / max(slowest_s, 1e-9))))
        self._more = {arm: {"shapes_s": {}} for arm in arms}
        for name in self.sets:
            for arm in self._drawn(arms):
                answer = self._ask(arm, "shape", set=name, calls=calls)
                self._more[arm]["shapes_s"][name] = tuple(answer["calls_s"])
        if self.budget.threads > 1:
            crowd = {"threads": self.budget.threads, "seconds": self.budget.together_s, "cores": [*self.callers]}
            for arm in self._drawn(arms):
                self._more[arm]["request_s"] = self._ask(arm, "together", **crowd).get("request_s")
        if self.graphs:
            for arm in self._drawn(arms):
                answer = self._ask(arm, "replay", calls=min(self.blocks[0].calls, REPLAYS))
                times_ns = answer.get("times_ns")
                self._more[arm]["replay_s"] = 1e-9 * statistics.median(times_ns) if times_ns else None
                self.spoilt |= bool(answer.get("spoilt"))

    def drop(self) -> None:
        """Have every process let the model go."""
        for arm in self.arms:
            self._ask(arm, "drop")

    def samples(self) -> Mapping[str, ArmSample]:
        """Return arm -> what it told beside the blocks."""
        return {arm: self._sample(arm) for arm in self.arms}

    def _sample(self, arm: str) -> ArmSample:
        load, times_ns, resident = self._loads[arm], self._times_ns[arm], self._resident[arm]
        calls = sum(block.calls for block in self.blocks if block.arm == arm)
        return ArmSample(
            load_s=load["load_s"],
            calls_s=tuple(load["calls_s"]),
            p90_s=1e-9 * nearest_rank(times_ns, 0.90) if calls >= P90_FROM else None,
            p99_s=1e-9 * nearest_rank(times_ns, 0.99) if calls >= P99_FROM else None,
            peak_rss_bytes=load["peak_rss_bytes"],
            device_bytes=load["device_bytes"],
            growth_bytes=resident[-1] - resident[0] if len(resident) > 1 else None,
            **self._more.get(arm, {}),
        )

    def _warm_call_s(self) -> float:
        """Return the seconds of a call on the slowest arm, from the median of a short block on each."""
        known_s = max(min(load["calls_s"]) for load in self._loads.values())
        calls = max(2, min(25, round(PROBE_SHARE * self.budget.block_s / max(known_s, 1e-9))))
        answers = [self._ask(arm, "block", calls=calls) for arm in self._drawn(self.arms)]
        slowest_ns: float = max(statistics.median(answer["times_ns"]) for answer in answers)
        return 1e-9 * max(slowest_ns, 1.0)

    def _turns(self, call_s: float) -> int:
        """Return the number of turns: fewer where one call is longer than a block, so that it stays affordable."""
        blocks, block_s = self.budget.blocks, self.budget.block_s
        return blocks if call_s <= block_s else min(blocks, max(FEWEST_TURNS, round(blocks * block_s / call_s)))

    def _take(self, arm: str, turn: int, calls: int, answer: Mapping[str, Any]) -> None:
        times_ns: list[int] = answer["times_ns"]
        block_ns = max(statistics.fmean(times_ns) * calls, 1.0)  # of a long block not every time is sent
        self.blocks.append(
            Block(
                arm=arm,
                turn=turn,
                p50_s=1e-9 * statistics.median(times_ns),
                calls=calls,
                waited=min(answer["wait_ns"] / block_ns, 1.0),
            )
        )
        self._times_ns.setdefault(arm, []).extend(times_ns)
        self._resident.setdefault(arm, []).append(answer["rss_bytes"])

    def _ask(self, arm: str, order: str, **details: Any) -> dict[str, Any]:
        return self.order(arm, order=order, model=self.model, **details)

    def _drawn(self, arms: Sequence[str]) -> list[str]:
        return self.chance.sample(arms, len(arms))


def nearest_rank(values: Sequence[int], quantile: float) -> int:
    """Return the smallest value that at least ``quantile`` of all do not exceed."""
    return sorted(values)[math.ceil(quantile * len(values)) - 1]
