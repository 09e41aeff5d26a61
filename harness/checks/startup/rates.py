"""Bounds of a probability from a number of repeats, and whether a failure is more frequent than before."""

import math
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum

from harness.core.diagnosis import UNRESOLVED_AFTER, FailureRates, SearchAnswer, Tally
from harness.core.probe import FailurePlace

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
# The first run by which the releases are compared: far from those of the search, which chose what is run.
FIRST_COMPARED = 1000
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
    """Return the exact 95 % interval of a rate (Clopper and Pearson); (0, 1) after no repeat."""
    one_sided = (1 + CONFIDENCE) / 2
    return (
        1.0 - upper_bound(repeats - successes, repeats, one_sided),
        upper_bound(successes, repeats, one_sided),
    )


def more_often(failures: int, repeats: int, before: int, repeats_before: int, level: float = 0.05) -> bool:
    """Whether something clearly fails more often than before: Fisher's exact test (1934), one-sided."""
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

    After ``clean_enough`` runs without any failure in either release, the failure counts as not shown again.
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


def change_of(rates: FailureRates) -> Change:
    """Return what both releases' rates amount to; an old run that failed in another way did not show this failure."""
    return change(*counts_of(rates))


def counts_of(rates: FailureRates) -> tuple[int, int, int, int]:
    new, old = rates.new, rates.old
    return new.fails, new.judged + new.differently, old.fails, old.judged + old.differently


def rates_of(
    ask: Callable[[str, int], SearchAnswer],
    outcomes: Collection[str],
    places: Collection[FailurePlace],
    *,
    late: Callable[[], bool],
    clean_enough: int = CLEAN_ENOUGH,
    known: Sequence[SearchAnswer] = (),
) -> FailureRates:
    """Return how often a failure shows in either release, run in turn until that tells whether it is a regression.

    Args:
        ask: makes one run, of side ``"old"`` or ``"new"``, with its repeat.
        outcomes: those of the failure; ``places``: where it was seen in the new release, to which its runs add.
        late: whether there is no time for more runs than those that tell a failure of every run from one of none: on a
            loud machine each takes longer, and says as much.
        known: what runs of the old release have said that nobody chose.
    """
    answers: dict[str, list[SearchAnswer]] = {"new": [], "old": list(known)}
    while True:
        seen = {*places, *(answer.place for answer in answers["new"] if answer.outcome in outcomes)}
        new, old = _tally(answers["new"], outcomes), _tally(answers["old"], outcomes, seen)
        rates = FailureRates(outcomes=tuple(sorted(outcomes)), new=new, old=old)
        side = next_side(*counts_of(rates), clean_enough=clean_enough)
        spent = new.runs + old.runs - len(known)
        if side is None or _untestable(new) or _untestable(old) or (spent >= RUNS_TO_TELL and late()):
            return rates
        answers[side].append(ask(side, FIRST_COMPARED + len(answers[side])))


def _tally(answers: Sequence[SearchAnswer], outcomes: Collection[str], places: Collection[FailurePlace] = ()) -> Tally:
    """Count runs; failures of another outcome or outside ``places`` are others. Of several places the phase counts."""
    phases = {phase for phase, _, _ in places} if len(places) > 1 else set()
    tally = Tally()
    for answer in answers:
        there = not places or answer.place in places or answer.place[0] in phases
        tally = tally.with_run(answer, same=answer.outcome in outcomes and there)
    return tally


def _untestable(tally: Tally) -> bool:
    return tally.untestable >= UNRESOLVED_AFTER and tally.untestable > tally.judged + tally.differently


def summed(first: Tally, second: Tally) -> Tally:
    return Tally(
        fails=first.fails + second.fails,
        passes=first.passes + second.passes,
        untestable=first.untestable + second.untestable,
        differently=first.differently + second.differently,
        outcomes=tuple(dict.fromkeys((*first.outcomes, *second.outcomes))),
    )
