"""Finds the smallest sets of settings that remove a symptom: singles first, then pairs of those that do not.

A set that has a curing one in it is never asked: it cures, or would only say that the others spoil the cure. What
cannot be tested alone is no part of a larger set, as that could not be verified either. Where one size cures, a larger
one is dearer to keep and is asked only on demand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.core.diagnosis import Said
from harness.search.budget import Stop

Indices = tuple[int, ...]
# What is asked at once, and what it says: PASSES is "the symptom is gone".
Ask = Callable[[Sequence[Indices]], Sequence[Said]]


@dataclass(frozen=True, kw_only=True)
class Sets:
    """What was asked, in that order.

    Attributes:
        answers: a set of indices -> what it said; UNTESTABLE is neither a cure nor none.
        ended: why the search ended early, empty where it did not.
    """

    answers: dict[Indices, Said]
    ended: str = ""

    def is_minimal(self, found: Indices) -> bool:
        """Whether every smaller set of these has been asked and does not cure."""
        smaller = [part for size in range(1, len(found)) for part in combinations(found, size)]
        return all(self.answers.get(part) is Said.FAILS for part in smaller)


def minimal_sets(
    count: int,
    ask: Ask,
    *,
    budget: int,
    size: int = 2,
    all_sizes: bool = False,
    together: Callable[[Indices], bool] = lambda _: True,
    stop: Stop | None = None,
    at_once: int = 8,
) -> Sets:
    """Return the minimal curing sets among ``count`` settings.

    Args:
        ask: told sets of one size, in the order in which they are wanted; answers one for one.
        budget: of sets that are asked.
        size: of the largest set.
        all_sizes: whether larger sets are asked also where a smaller one cures.
        together: whether a set makes sense at all; those that do not are not asked.
        stop: told how many larger sets were asked, says whether to end; single settings are all asked.
        at_once: how many sets are asked before that is heard.
    """
    answers: dict[Indices, Said] = {}
    for members in range(1, size + 1):
        if any(said is Said.PASSES for said in answers.values()) and not all_sizes:
            break
        usable = [index for index in range(count) if answers.get((index,), Said.FAILS) is Said.FAILS]
        wanted = [
            found for found in combinations(usable, members) if together(found) and not _holds_cure(found, answers)
        ]
        allowed = wanted[: max(0, budget - len(answers))]
        size_of_ask = len(allowed) if members == 1 else at_once
        before = len(answers)
        for start in range(0, len(allowed), max(1, size_of_ask)):
            if members > 1 and stop is not None and stop(len(answers) - before):
                break
            batch = allowed[start : start + size_of_ask]
            answers.update(zip(batch, ask(batch), strict=True))
        left = len(wanted) - (len(answers) - before)
        if left:
            return Sets(answers=answers, ended=f"{left} of {len(wanted)} sets of {members} settings were not asked")
    return Sets(answers=answers)


def _holds_cure(found: Indices, answers: dict[Indices, Said]) -> bool:
    return any(answers.get(part) is Said.PASSES for size in range(1, len(found)) for part in combinations(found, size))
