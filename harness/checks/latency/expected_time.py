"""How long the benchmark will take: from what loads and calls took before it begins, then from its own rounds."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.checks.latency.budget import side_by_side
from harness.checks.latency.model_round import (
    COLD_CALLS,
    FEWEST_FIRST_CALLS,
    FEWEST_TURNS,
    FIRST_CALLS,
    FIRST_CALLS_S,
    SHAPE_CALLS,
    SHAPE_CALLS_LEAST,
    SHAPE_S,
)
from harness.core.measurement import CONTROL
from harness.core.plan import LatencyBudget
from harness.core.probe import ModelResult

# Starting the processes of one round, in CPU time of an import of torch: it waits for a cold disk once.
START_IMPORTS = 1.0
# What a model costs each arm in a round besides its own work: orders, collections, pauses.
ORDERS_S = 0.03
# Loading and cold calls take this share of what they took in a probe, which compiles for the first time in its life and
# beside another one (13 and 24 models of served size, 2026-11-26: 0.4 to 0.7).
COLD_SHARE = 0.5
# Which share of the models a look leaves undecided, before any was looked at; it counts as so many models. Of 13 and 24
# models of served size the first one left 0 to 4 on fast machines, up to 17 on one half as fast (docs/hand-bench.md).
UNDECIDED_BEFORE = 0.25
GUESSED_ON = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundCost:
    """Seconds of one round of a model in its lane: of the first, which measure more than the steady call, or later."""

    first_s: float
    later_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Open:
    """A model that is still to be timed: how many rounds it had, and after how many one looks."""

    rounds: int
    looks: Sequence[int]


class TimeLeft:
    """Says how long the rounds of a benchmark will take; every measured round corrects it.

    What was expected before counts as much as the first round does: that one also reads archives from the disk, and by
    itself it made the time left a third too long (docs/calibration.md). ``start_s`` is the expected start of a round's
    processes; ``first_rounds``: how many measure more than the steady call.
    """

    def __init__(self, costs: Mapping[str, RoundCost], *, start_s: float, first_rounds: int, lanes: int = 1) -> None:
        self._costs, self._start_s, self.lanes, self._first_rounds = costs, start_s, lanes, first_rounds
        self._guessed_s = self._expected_s = self._measured_s = 0.0

    def took(self, names: Iterable[str], wall_s: float, *, is_first: bool) -> None:
        """Learn how long a round of ``names`` took; ``is_first``: see ``RoundCost``."""
        costs = [self._costs[name] for name in names]
        lane_s = [cost.first_s if is_first else cost.later_s for cost in costs]
        expected_s = self._start_s + side_by_side(lane_s, self.lanes)
        self._guessed_s = self._guessed_s or expected_s
        self._expected_s += expected_s
        self._measured_s += wall_s

    def seconds(self, models: Mapping[str, Open], *, undecided: float = UNDECIDED_BEFORE) -> float:
        """Return how long the rounds of ``models`` will take; ``undecided``: the share of them that each look leaves
        undecided.
        """
        total_s = 0.0
        for number in range(max((model.looks[-1] - model.rounds for model in models.values()), default=0)):
            nobody, lane_s = 1.0, []
            for name, model in models.items():
                share, cost = _still_open(model, number, undecided), self._costs[name]
                lane_s.append(share * (cost.first_s if model.rounds + number < self._first_rounds else cost.later_s))
                nobody *= 1.0 - share
            total_s += self._start_s * (1.0 - nobody) + side_by_side(lane_s, self.lanes)
        return total_s * self._correction

    def first_looks_s(self, models: Collection[str], rounds: int) -> float:
        first = min(self._first_rounds, rounds)
        first_s, later_s = (
            side_by_side([self.cost_s(name, is_first=is_first) for name in models], self.lanes)
            for is_first in (True, False)
        )
        return rounds * self.start_s + first * first_s + (rounds - first) * later_s

    @property
    def start_s(self) -> float:
        return self._start_s * self._correction

    def cost_s(self, name: str, *, is_first: bool) -> float:
        cost = self._costs[name]
        return (cost.first_s if is_first else cost.later_s) * self._correction

    def mean_cost_s(self, name: str, done: int, rounds: int) -> float:
        costs_s = [self.cost_s(name, is_first=number < self._first_rounds) for number in range(done, done + rounds)]
        return sum(costs_s) / rounds

    @property
    def _correction(self) -> float:
        expected_s = self._guessed_s + self._expected_s
        return (self._guessed_s + self._measured_s) / expected_s if expected_s else 1.0


def undecided_share(undecided: int, looked_at: int) -> float:
    """Return which share of the models a look leaves undecided, by those that were looked at."""
    return (undecided + UNDECIDED_BEFORE * GUESSED_ON) / (looked_at + GUESSED_ON)


def expected_cost(
    results: Sequence[ModelResult],
    budget: LatencyBudget,
    *,
    arms: Collection[str],
    lanes: int = 1,
    control_every: int = 1,
) -> RoundCost:
    """Return what a round of a model will cost its lane, by its runs in the old release."""
    compared = [arm for arm in arms if arm != CONTROL]
    processes = len(compared) + (len(arms) - len(compared)) / control_every
    calls = [call for result in results[:1] for call in result.calls]
    if not calls:
        return RoundCost(first_s=processes * ORDERS_S, later_s=processes * ORDERS_S)
    calls_s = [1e-9 * call.duration_ns for call in calls]
    warm_s, sets = min(calls_s), len({call.input_set for call in calls})
    fewest = FEWEST_FIRST_CALLS - COLD_CALLS
    further_s = min((FIRST_CALLS - COLD_CALLS) * warm_s, max(FIRST_CALLS_S, fewest * warm_s)) - fewest * warm_s
    turns = float(budget.blocks)
    if warm_s > budget.block_s:
        turns = min(turns, max(FEWEST_TURNS, round(turns * budget.block_s / warm_s)))
    blocks_s = (turns + 0.25) * max(budget.block_s, warm_s)
    cold_s = 1e-9 * (results[0].load_ns or 0) + sum(max(call_s - warm_s, 0.0) for call_s in calls_s[:COLD_CALLS])
    loaded_s = COLD_SHARE * cold_s + FEWEST_FIRST_CALLS * warm_s
    later_s = ORDERS_S + loaded_s + blocks_s
    shapes_s = (sets - 1) * min(SHAPE_CALLS * warm_s, max(SHAPE_S, SHAPE_CALLS_LEAST * warm_s))
    # One call of each thread falls before the start, and meanwhile all lanes wait.
    callers_s = lanes * (warm_s + max(budget.together_s, warm_s)) if budget.threads > 1 else 0.0
    first_s = processes * later_s + len(compared) * (shapes_s + further_s + callers_s)
    return RoundCost(first_s=first_s, later_s=processes * later_s)


def _still_open(model: Open, number: int, undecided: float) -> float:
    """Return the probability that a model is timed in the round after ``number`` more ones."""
    done = model.rounds + number
    if done >= model.looks[-1]:
        return 0.0
    return float(undecided ** sum(model.rounds < look <= done for look in model.looks))
