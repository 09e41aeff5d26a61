"""Three-valued opinions on the steady latency, and what the duel does next with them."""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from harness.domain.measurement import LatencyMeasurement, RatioEstimate
from harness.domain.plan import LatencyBudget

REGRESSED = "regressed"
NOT_REGRESSED = "not regressed"
UNDECIDED = "undecided"

# The search leaves this share of a model's time to the confirmation.
SEARCH_SHARE = 2 / 3


class Next(StrEnum):
    """What to do with a model after a round."""

    SEARCH = "search"
    CONFIRM = "confirm"
    DONE = "done"


def classify(estimate: RatioEstimate | None, limit: float) -> str:
    """Return REGRESSED if the interval lies wholly above 1 + ``limit``, NOT_REGRESSED if wholly below."""
    if estimate is None:
        return UNDECIDED
    if estimate.low > 1 + limit:
        return REGRESSED
    if estimate.high < 1 + limit:
        return NOT_REGRESSED
    return UNDECIDED


def confirms(fresh: RatioEstimate | None, bound: float) -> str:
    """Return what fresh rounds say of the suspicion that a ratio is above ``bound``, such as 1.03.

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


def stands(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether a suspicion is confirmed, and the old release against itself does not show as much."""
    confirmed = confirms(measurement.confirmation, 1 + limit) == REGRESSED
    return confirmed and not noise_reaches(measurement, limit)


def noise_reaches(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether two processes of the old release differ by more than the limit, either way, and by as much."""
    same, steady = measurement.same_against_same, measurement.steady
    if same is None or steady is None:
        return False
    if same.low > 1 + limit:
        return steady.low <= same.high
    return same.high < 1 / (1 + limit) and steady.low <= 1 / same.low


def affordable(budget: LatencyBudget, round_s: float) -> LatencyBudget:
    """Return the budget with the looks that a model can afford whose rounds take ``round_s`` seconds of measuring.

    Decided before anything is compared, so that fewer looks may each ask for less. The first one is always made.
    """
    rounds = SEARCH_SHARE * budget.model_s / round_s if round_s > 0 else budget.looks[-1]
    return replace(budget, looks=tuple(look for look in budget.looks if look <= rounds) or budget.looks[:1])


def next_step(
    measurement: LatencyMeasurement,
    budget: LatencyBudget,
    *,
    rounds: int,
    fresh: int,
    gates: Collection[str] = (),
) -> Next:
    """Return how the duel of a model goes on.

    Data are looked at after ``budget.looks`` rounds only: each further look would need a wider interval. What is
    suspected is taken to fresh rounds, and gets its first look there in any case.

    Args:
        budget: with the looks that the model can afford.
        rounds: of the search; ``fresh``: of the confirmation.
        gates: what fresh rounds say of the gated quantities that are suspected.
    """
    if measurement.problem:
        return Next.DONE
    last = budget.looks[-1]
    verdict = classify(measurement.steady, budget.limit)
    if fresh:
        if fresh not in budget.looks:
            return Next.CONFIRM
        open_still = verdict == REGRESSED and confirms(measurement.confirmation, 1 + budget.limit) == UNDECIDED
        return Next.CONFIRM if (open_still or UNDECIDED in gates) and fresh < last else Next.DONE
    if rounds not in budget.looks:
        return Next.SEARCH
    if verdict == UNDECIDED and rounds < last:
        return Next.SEARCH
    return Next.CONFIRM if verdict == REGRESSED or gates else Next.DONE
