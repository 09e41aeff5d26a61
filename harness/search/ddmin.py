"""Delta debugging: finds the few items of many without which the symptom is gone.

The algorithm is ddmin of A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
IEEE Transactions on Software Engineering 28(2), 2002, figure 7 and section 3.2, with their three answers.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from harness.domain.diagnosis import Said
from harness.search.budget import Budget, BudgetSpent

T = TypeVar("T")
Indices = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetTest:
    """One new answer: which items (key of the table of answers), what was said, how many items still fail."""

    key: str
    said: Said
    items_left: int
    tests: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced(Generic[T]):
    """What is left.

    Attributes:
        items: the smallest subset seen to fail, in the given order; None if the whole was not seen to fail.
        minimal: no removal of one item FAILS ("1-minimal" in the paper), and none was left unasked.
        budget_ended: the search stopped before it was done.
        unjudged: items whose removal was UNTESTABLE; the paper calls that minimal all the same.
        tests: how many tests this call has asked; answers from the table cost nothing.
        answered: the table: ``key_of(indices)`` -> answer. JSON-able; give it to the next call to go on.
    """

    items: tuple[T, ...] | None
    minimal: bool
    budget_ended: bool
    unjudged: tuple[T, ...] = ()
    tests: int = 0
    answered: Mapping[str, Said] = field(default_factory=dict)


def key_of(indices: Sequence[int]) -> str:
    """Return ascending indices as ranges, e.g. ``"0-3,7"``: short for what a search of contiguous chunks asks."""
    parts: list[str] = []
    start = 0
    for end in range(1, len(indices) + 1):
        if end == len(indices) or indices[end] != indices[end - 1] + 1:
            first, last = indices[start], indices[end - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = end
    return ",".join(parts)


def ddmin(
    items: Sequence[T],
    test: Callable[[tuple[T, ...]], Said],
    *,
    budget: int | None = None,
    answered: Mapping[str, str] | None = None,
    progress: Callable[[SubsetTest], None] | None = None,
) -> Reduced[T]:
    """Return a 1-minimal subset of ``items`` for which ``test`` FAILS, or the smallest found within the budget.

    The whole is asked first. The empty subset is never asked and taken to pass, as in the paper. Each subset is
    asked once. The order is a function of the answers alone, so a call with the ``answered`` of an interrupted one
    goes on where that one stopped; collect it from ``progress`` to survive a kill.

    Args:
        items: may contain equal items; they are told apart by position.
        test: gets a non-empty subset in the given order. May raise ``BudgetSpent`` if it has a budget of its own.
        budget: how many tests may be asked, at least 1; None: as many as it takes.
        answered: the table of an earlier call with the same items.
        progress: called after each new answer.
    """
    search = _Search(items, test, Budget(sys.maxsize if budget is None else budget), answered or {}, progress)
    try:
        search.reduce()
    except BudgetSpent:
        return search.result(done=False)
    return search.result(done=True)


class _Search(Generic[T]):
    """The state of one call: what was answered, and the smallest subset that fails."""

    def __init__(
        self,
        items: Sequence[T],
        test: Callable[[tuple[T, ...]], Said],
        budget: Budget,
        answered: Mapping[str, str],
        progress: Callable[[SubsetTest], None] | None,
    ) -> None:
        self.items = tuple(items)
        self.test = test
        self.budget = budget
        self.answered = {key: Said(said) for key, said in answered.items()}
        self.progress = progress
        self.failing: Indices | None = None
        self.tests = 0

    def reduce(self) -> None:
        whole = tuple(range(len(self.items)))
        if not whole or not self.fails(whole):
            return
        parts = 2
        while self.failing is not None and len(self.failing) > 1:
            found = next((then for subset, then in _candidates(self.failing, parts) if self.fails(subset)), None)
            if found is not None:
                parts = found
            elif parts < len(self.failing):
                parts = min(2 * parts, len(self.failing))
            else:
                return

    def fails(self, subset: Indices) -> bool:
        key = key_of(subset)
        said = self.answered.get(key)
        new = said is None
        if said is None:
            self.budget.take()
            said = self.answered[key] = self.test(tuple(self.items[index] for index in subset))
            self.tests += 1
        if said is Said.FAILS:
            self.failing = subset
        if new and self.progress is not None:
            left = len(self.items if self.failing is None else self.failing)
            self.progress(SubsetTest(key=key, said=said, items_left=left, tests=self.tests))
        return said is Said.FAILS

    def result(self, *, done: bool) -> Reduced[T]:
        left = self.failing or ()
        without = {gone: tuple(index for index in left if index != gone) for gone in left if len(left) > 1}
        said = {gone: self.answered.get(key_of(rest)) for gone, rest in without.items()}
        return Reduced(
            items=None if self.failing is None else tuple(self.items[index] for index in left),
            minimal=bool(left) and all(answer in (Said.PASSES, Said.UNTESTABLE) for answer in said.values()),
            budget_ended=not done,
            unjudged=tuple(self.items[gone] for gone, answer in said.items() if answer is Said.UNTESTABLE),
            tests=self.tests,
            answered=self.answered,
        )


def _candidates(indices: Indices, parts: int) -> Iterator[tuple[Indices, int]]:
    """Yield the chunks of ``indices``, then what is left without each, with the number of parts to go on with."""
    bounds = [len(indices) * part // parts for part in range(parts + 1)]
    chunks = list(pairwise(bounds))
    for start, end in chunks:
        yield indices[start:end], 2
    if parts > 2:  # with two parts each chunk is what is left without the other
        for start, end in chunks:
            yield indices[:start] + indices[end:], parts - 1
