"""Answers from an unreliable oracle: the defect shows with an unknown probability p per run, or is not there.

One failure is proof, since a healthy subject never shows this failure. Only "it passes" can be wrong. Wald's
sequential probability ratio test (A. Wald, Annals of Mathematical Statistics 16, 1945) of "p = 0" against "p = p1"
then becomes: stop at the first failure, else after n clean runs, the smallest n with (1 - p1)^n <= miss.

p1 is not known, but k failures in m runs of something that does fail were seen. With a uniform prior, p then follows
Beta(k + 1, m - k + 1), and the probability that a subject of the same p stays clean n times is

    E[(1 - p)^n] = prod over i = 0 .. n - 1 of (m - k + 1 + i) / (m + 2 + i)

``repeats_needed`` is the smallest n for which that is <= miss: 5 after 1 of 1, 3 after 3 of 3, 11 after 3 of 10. What
is missed makes a search return more than was needed, never something that was not seen to fail.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Generic, TypeVar

from harness.core.diagnosis import Said, SearchAnswer, Tally
from harness.core.errors import InternalError
from harness.search.budget import Budget

MISS = 0.05
# Asking on what could not be tested twice (a starved machine, an archive that cannot be built) is waste.
UNTESTABLE_AFTER = 2

K = TypeVar("K", bound=Hashable)


def chance_of_missing(clean: int, *, fails: int, judged: int) -> float:
    """Return how likely ``clean`` runs pass though the subject fails as often as ``fails`` of ``judged`` suggest."""
    chance = 1.0
    for index in range(clean):
        chance *= (judged - fails + 1 + index) / (judged + 2 + index)
    return chance


def repeats_needed(*, fails: int, judged: int, miss: float = MISS) -> int:
    """Return how many clean runs it takes to say "passes" with at most ``miss`` probability of being wrong.

    Raises:
        InternalError: there was no failure: nothing is known about how often it shows.
    """
    if not 0 < fails <= judged:
        raise InternalError(f"{fails} failures in {judged} runs tell no rate")
    clean = 1
    while chance_of_missing(clean, fails=fails, judged=judged) > miss:
        clean += 1
    return clean


def repeats_for_rate(rate: float, *, miss: float = MISS) -> int:
    """Return the smallest n with (1 - rate)^n <= miss; ``rate`` in (0, 1]."""
    return 1 if rate >= 1 else max(1, math.ceil(math.log(miss) / math.log1p(-rate)))


class Repeated(Generic[K]):
    """Asks ``oracle(subject, repeat)`` as often as an answer takes, and remembers every run.

    Args:
        oracle: ``repeat`` counts 0, 1, ... per subject; equal arguments must give an independent run or its record.
        budget: of runs, over all subjects.
        outcomes: those of the failure that is searched for, where they are known; empty: the first ones define it.
    """

    def __init__(self, oracle: Callable[[K, int], SearchAnswer], budget: Budget, outcomes: Iterable[str] = ()) -> None:
        self.oracle = oracle
        self.budget = budget
        self.tallies: dict[K, Tally] = {}
        self.same = frozenset(outcomes)

    def tally(self, subject: K) -> Tally:
        """Return what is known of the subject so far."""
        return self.tallies.get(subject, Tally())

    def only_failures_like(self, subject: K) -> None:
        """From now on, a failure with an outcome that ``subject`` has not shown counts as another failure."""
        shown = frozenset(self.tally(subject).outcomes)
        self.same = self.same & shown or shown

    def settle(self, subject: K, clean: int) -> Said:
        """Return FAILS at the first failure, PASSES after ``clean`` passes, UNTESTABLE after two runs without either.

        Raises:
            BudgetSpent: before any of these; what was run is kept.
        """
        while (said := settled(self.tally(subject), clean)) is None:
            self.run(subject)
        return said

    def measure(self, subject: K, *, fails: int, at_most: int) -> Tally:
        """Return the tally after ``fails`` failures (inverse binomial sampling) or ``at_most`` runs.

        Raises:
            BudgetSpent: before; what was run is kept.
        """
        while self.tally(subject).fails < fails and self.tally(subject).runs < at_most:
            self.run(subject)
        return self.tally(subject)

    def run(self, subject: K) -> None:
        """Spend one run on the subject."""
        self.budget.take()
        tally = self.tally(subject)
        answer = self.oracle(subject, tally.runs)
        same = not self.same or not answer.outcome or answer.outcome in self.same
        self.tallies[subject] = counted_in(tally, answer, same=same)


def settled(tally: Tally, clean: int) -> Said | None:
    """Return the answer that the runs amount to; None if more are needed."""
    if tally.fails:
        return Said.FAILS
    if tally.passes >= clean:
        return Said.PASSES
    return Said.UNTESTABLE if tally.untestable + tally.differently >= UNTESTABLE_AFTER else None


def counted_in(tally: Tally, answer: SearchAnswer, *, same: bool) -> Tally:
    """Return the tally with one more run; ``same``: whether a failure is the one that is searched for."""
    match answer.said:
        case Said.PASSES:
            return replace(tally, passes=tally.passes + 1)
        case Said.UNTESTABLE:
            return replace(tally, untestable=tally.untestable + 1)
        case Said.FAILS:
            seen = answer.outcome in tally.outcomes or not answer.outcome
            tally = replace(tally, outcomes=tally.outcomes if seen else (*tally.outcomes, answer.outcome))
            return replace(tally, fails=tally.fails + 1) if same else replace(tally, differently=tally.differently + 1)
