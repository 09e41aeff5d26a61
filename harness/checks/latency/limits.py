"""Estimates against limits: surely above, surely below, or open; and how a benchmark goes on for it. Pure."""

import math
from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from harness.checks.latency.looks import look_from
from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.quantities import QUANTITIES, parts_of
from harness.core.text import MIB

REGRESSED = "regressed"
NOT_REGRESSED = "not regressed"
UNDECIDED = "undecided"
# The search leaves this share of a model's time to the confirmation.
SEARCH_SHARE = 2 / 3
# Memory that grows by as much in every single round while the same call repeats; an allocator's arenas do so once.
GROWTH_BYTES = MIB
# The first calls at another shape cost as many warm ones more: recompiling costs ten and up, an allocation one or two.
RECOMPILES = 10.0
UNLIKE = 3.0


def classify(estimate: RatioEstimate | None, limit: float) -> str:
    """Return REGRESSED if the interval lies wholly above 1 + ``limit``, NOT_REGRESSED if wholly below."""
    if estimate is None:
        return UNDECIDED
    if estimate.low > 1 + limit:
        return REGRESSED
    if estimate.high < 1 + limit:
        return NOT_REGRESSED
    return UNDECIDED


def tolerated(measurement: LatencyMeasurement, budget: LatencyBudget) -> float:
    calls = measurement.call_s
    return max(budget.limit, budget.floor_s / calls[0]) if calls is not None and calls[0] > 0 else budget.limit


def confirms(fresh: RatioEstimate | None, bound: float) -> str:
    """Return what fresh rounds say of the suspicion that a ratio is above ``bound``, such as 1.05.

    REGRESSED, NOT_REGRESSED or UNDECIDED; of the steady latency as of any other quantity.

    They confirm if, by themselves, they show a slowdown at all (their interval lies above 1) and put it above the
    bound. On identical code the chance of that is that of the interval, at most 2.5 %, times that of the suspicion;
    with the whole interval above the bound once more, a slowdown just above it would take four times the rounds.
    """
    if fresh is None:
        return UNDECIDED
    if fresh.low > 1 and fresh.ratio > bound:
        return REGRESSED
    return NOT_REGRESSED if fresh.high < bound else UNDECIDED


def suspected(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether the search says that a call is slower than is tolerated.

    What has fresh rounds was suspected when these began. Later rounds change the variance that models lend each other,
    and with it the interval of the search: so its estimate need only stay above the limit then. On identical code the
    chance of a failure stays below that of the fresh interval, 2.5 %.
    """
    steady = measurement.steady
    above = steady is not None and steady.ratio > 1 + limit
    return classify(steady, limit) == REGRESSED or (measurement.confirmation is not None and above)


def noise_reaches(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether two processes of the old release differ by more than the limit, either way, and by as much."""
    same, steady = measurement.same_against_same, measurement.steady
    if same is None or steady is None:
        return False
    if same.low > 1 + limit:
        return steady.low <= same.high
    return same.high < 1 / (1 + limit) and steady.low <= 1 / same.low


def stands(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether fresh rounds confirm a suspicion, and two processes of the old release do not differ by as much."""
    confirmed = confirms(measurement.confirmation, 1 + limit) == REGRESSED
    return confirmed and not noise_reaches(measurement, limit)


def limit_of(name: str, settings: PolicySettings) -> float | None:
    """Return the ratio from which a quantity is reported, None where there is none."""
    return settings.quantity_limits.get(parts_of(name)[0])


def is_beyond(name: str, measurement: LatencyMeasurement, limit: float | None) -> bool:
    """Whether a quantity of a measurement is worth telling: what fresh rounds put below its limit again is not."""
    quantity, input_set = parts_of(name)
    item = measurement.quantities[name]
    if quantity == "growth":
        return measurement.growth_bytes is not None and measurement.growth_bytes >= GROWTH_BYTES
    if quantity == "recompilation":
        return recompiles(input_set, measurement) and item.old <= item.new / UNLIKE
    if limit is None or item.ratio is None:
        return False
    least = QUANTITIES[quantity].least if quantity in QUANTITIES else 0.0
    is_more = item.ratio.low > limit and item.new - item.old >= least
    return is_more and _in_fresh_rounds(name, measurement, limit) != NOT_REGRESSED


def _in_fresh_rounds(name: str, measurement: LatencyMeasurement, limit: float) -> str:
    fresh = measurement.fresh_quantities.get(name)
    return confirms(fresh.ratio if fresh is not None else None, limit)


def recompiles(input_set: str, measurement: LatencyMeasurement) -> bool:
    """Whether the first calls of an input set cost the new release as much as a compilation does."""
    cost = measurement.quantities.get(f"new_shape:{input_set}")
    dear = cost is not None and cost.new >= QUANTITIES["new_shape"].least
    return dear and measurement.quantities[f"recompilation:{input_set}"].new >= RECOMPILES


def verdicts_beyond(measurement: LatencyMeasurement, settings: PolicySettings) -> dict[str, str]:
    """Return quantity beyond its limit -> REGRESSED where fresh rounds confirm that, UNDECIDED while it is open.

    What they clear is left out.
    """
    limits = {name: limit_of(name, settings) for name in measurement.quantities}
    return {
        name: _in_fresh_rounds(name, measurement, limit)
        for name, limit in limits.items()
        if limit is not None and is_beyond(name, measurement, limit)
    }


def gate_verdicts(measurement: LatencyMeasurement, settings: PolicySettings) -> dict[str, str]:
    beyond = verdicts_beyond(measurement, settings)
    return {name: verdict for name, verdict in beyond.items() if parts_of(name)[0] in settings.gating}


class Next(StrEnum):
    """What to do with a model after a round."""

    SEARCH = "search"
    CONFIRM = "confirm"
    DONE = "done"


def affordable(budget: LatencyBudget, round_s: float) -> LatencyBudget:
    """Return the budget with the looks that a model can afford, at least one; decided before anything is compared."""
    rounds = SEARCH_SHARE * budget.model_s / round_s if round_s > 0 else budget.looks[-1]
    return replace(budget, looks=tuple(look for look in budget.looks if look <= rounds) or budget.looks[:1])


def next_step(
    measurement: LatencyMeasurement,
    budget: LatencyBudget,
    *,
    rounds: int,
    fresh: int,
    gates: Collection[str] = (),
    further: bool = False,
) -> Next:
    """Return how the benchmark of a model goes on.

    Data are looked at after ``budget.looks`` rounds only: each further look would need a wider interval. What is
    suspected is taken to fresh rounds, and gets its first look there in any case. ``further``: whether looks go on
    after those that were planned.
    """
    if measurement.problem:
        return Next.DONE
    last = math.inf if further else budget.looks[-1]
    limit = tolerated(measurement, budget)
    verdict = classify(measurement.steady, limit)
    if fresh:
        if fresh != look_from(fresh, budget.looks):
            return Next.CONFIRM
        open_still = suspected(measurement, limit) and confirms(measurement.confirmation, 1 + limit) == UNDECIDED
        return Next.CONFIRM if (open_still or UNDECIDED in gates) and fresh < last else Next.DONE
    if rounds != look_from(rounds, budget.looks):
        return Next.SEARCH
    if verdict == UNDECIDED and rounds < last:
        return Next.SEARCH
    return Next.CONFIRM if verdict == REGRESSED or gates else Next.DONE


def was_not_asked(measurement: LatencyMeasurement, budget: LatencyBudget, settings: PolicySettings) -> bool:
    """Whether something is beyond a limit that the benchmark did not have: it would have run fresh rounds for it."""
    if classify(measurement.steady, tolerated(measurement, budget)) == REGRESSED and measurement.confirmation is None:
        return True
    gates = gate_verdicts(measurement, settings)
    return any(verdict == UNDECIDED and name not in measurement.fresh_quantities for name, verdict in gates.items())
