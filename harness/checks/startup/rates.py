"""Bounds of a probability from a number of repeats, and whether a failure is more frequent than before."""

import math
from enum import StrEnum

CONFIDENCE = 0.95
# How often a failure that is as frequent in both releases may be called a regression; the looks after every run
# included, that is 0.9 % at most (tests/unit/checks/startup/test_rates.py computes it for every rate).
LEVEL = 0.01
# The old release fails too after so many failures, or after one where both have so many runs.
FAILURES_ENOUGH, RUNS_ENOUGH = 3, 12
# After so many failures the new release waits until the old one has so many times its runs: a clean run costs less.
FAILURES_TO_WAIT, RUNS_OF_OLD = 3, 3
# Three failures of three beside none of nine are clearly more often, as is found out first.
RUNS_TO_TELL = FAILURES_TO_WAIT * (1 + RUNS_OF_OLD)
# A failure rate of 10 % that is new is seen to be so with 58 %, one of 20 % with 97 %.
RUNS_AT_MOST = 160
# What fails in a tenth of the runs stays away in so many with 4 %.
CLEAN_ENOUGH = 30


class Change(StrEnum):
    """What the rates of a failure in two releases amount to."""

    MORE_OFTEN = "more often"
    IN_BOTH = "in both"
    UNDECIDED = "undecided"


def upper_bound(failures: int, repeats: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest probability of failure that ``failures`` in ``repeats`` do not exclude.

    The exact one-sided bound of Clopper and Pearson (1934): the p at which so few failures or fewer have probability
    1 - ``confidence``. For no failure at all that is ``1 - (1 - confidence) ** (1 / repeats)``, about 3 / repeats.

    Args:
        failures: 0 to ``repeats``.
        repeats: at least 0; nothing is known after 0 of them.
        confidence: above 0 and below 1.
    """
    if failures >= repeats:
        return 1.0
    if failures == 0:
        return float(-math.expm1(math.log1p(-confidence) / repeats))
    low, high = failures / repeats, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(failures, repeats, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def interval(successes: int, repeats: int) -> tuple[float, float]:
    """Return the probabilities between which ``successes`` in ``repeats`` put the true one, with 95 % confidence.

    The exact two-sided interval of Clopper and Pearson: each bound is a one-sided one that errs half as often.

    Args:
        successes: 0 to ``repeats``.
        repeats: at least 0; (0, 1) after 0 of them.
    """
    one_sided = (1 + CONFIDENCE) / 2
    return (
        1.0 - upper_bound(repeats - successes, repeats, one_sided),
        upper_bound(successes, repeats, one_sided),
    )


def more_often(failures: int, repeats: int, before: int, repeats_before: int, level: float = 0.05) -> bool:
    """Whether something clearly fails more often than it did before: Fisher's exact test (1934), one-sided.

    At 5 %, one failure in one run of each is no difference; five of five after one of ten is.
    """
    total, failed = repeats + repeats_before, failures + before
    if not repeats or not repeats_before:
        return False
    ways = math.comb(total, failed)
    at_least = sum(
        math.comb(repeats, count) * math.comb(repeats_before, failed - count)
        for count in range(failures, min(repeats, failed) + 1)
    )
    return at_least / ways < level


def change(failures: int, repeats: int, before: int, repeats_before: int) -> Change:
    """Return whether a failure of the new release is a regression: its runs first, then those of the old one.

    A single failure proves that the old release has it too, and no number of clean runs that it has not: so a failure
    is a regression where Fisher's exact test at ``LEVEL`` says that it is more frequent, and of both releases only
    where it was seen in both.
    """
    if more_often(failures, repeats, before, repeats_before, LEVEL):
        return Change.MORE_OFTEN
    return Change.IN_BOTH if before else Change.UNDECIDED


def next_side(
    failures: int, repeats: int, before: int, repeats_before: int, *, clean_enough: int = CLEAN_ENOUGH
) -> str | None:
    """Return in which release the next run tells most, ``"new"`` or ``"old"``; None where another one is not worth it.

    Args:
        clean_enough: after so many runs without any failure in either release the failure does not show again.
    """
    if more_often(failures, repeats, before, repeats_before, LEVEL):
        return None
    if before >= FAILURES_ENOUGH or (before and min(repeats, repeats_before) >= RUNS_ENOUGH):
        return None
    if not failures + before and min(repeats, repeats_before) >= clean_enough:
        return None
    if repeats + repeats_before >= RUNS_AT_MOST:
        return None
    if before and before == repeats_before:  # it has only failed so far, and needs no run of the new release to say so
        return "old"
    waits = failures >= FAILURES_TO_WAIT and not before
    return "old" if repeats_before < (RUNS_OF_OLD * repeats if waits else repeats + 1) else "new"


def rates_words(failures: int, repeats: int, before: int, repeats_before: int) -> str:
    """Return both rates with their 95 % intervals: ``in 3 of 9 runs (7 to 70 %), in the old release in 0 of 9 ...``."""
    new, old = _rate(failures, repeats, "runs"), _rate(before, repeats_before)
    return f"in {new}, in the old release in {old}, 95 % intervals"


def _rate(failures: int, repeats: int, noun: str = "") -> str:
    low, high = interval(failures, repeats)
    return f"{failures} of {repeats}{f' {noun}' if noun else ''} ({100 * low:.0f} to {100 * high:.0f} %)"


def _at_most(failures: int, repeats: int, probability: float) -> float:
    """Return the binomial tail, by logarithms: binomial coefficients of large numbers overflow floats."""
    once, never = math.log(probability), math.log1p(-probability)
    return math.fsum(
        math.exp(_log_ways(count, repeats) + count * once + (repeats - count) * never) for count in range(failures + 1)
    )


def _log_ways(count: int, of: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
