"""Which few of many items make a test fail: delta debugging, and the groups of items that fail on their own.

``ddmin`` is that of A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions
on Software Engineering 28(2), 2002, figure 7 and section 3.2, with their three answers.

``isolate`` halves for a single item and uses ddmin only if it takes more. The shortest beginning of all items that
fails ends with a guilty one. A beginning has everything that its items take, so it can nearly always be tested and does
in it what it does in the whole. A single guilty item of n takes at most ceil(log2 n) + 3 tests: the whole; the lengths,
by halving; the last item by itself; all but that item. If the last item passes by itself, several are needed together:
the shortest end of that beginning which fails starts with another one, and ddmin reduces what lies between the two. Two
that are needed together take at most 2 ceil(log2 n) + 5 tests. Nothing is returned that was not seen to fail.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from harness.core.diagnosis import Said
from harness.search.budget import Budget, BudgetSpent

T = TypeVar("T")
Indices = tuple[int, ...]

MOST_GROUPS = 4
# So many items may be asked one by one where it seems that all are needed; ddmin would ask four times as often.
ONE_BY_ONE = 64
SPENT = "the budget is spent"


class _Answers:
    """Asks about each subset once; ``failing`` is the smallest that fails, since all that is asked lies within one."""

    def __init__(self, test: Callable[[Indices], Said], budget: Budget) -> None:
        self.test = test
        self.budget = budget
        self.known: dict[Indices, Said] = {}
        self.failing: Indices = ()

    def ask(self, subset: Indices) -> Said:
        if not subset:
            return Said.PASSES
        if subset not in self.known:
            self.budget.take()
            self.known[subset] = self.test(subset)
        if self.known[subset] is Said.FAILS:
            self.failing = subset
        return self.known[subset]

    def fails(self, subset: Indices) -> bool:
        return self.ask(subset) is Said.FAILS


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced(Generic[T]):
    """What is left.

    Attributes:
        items: the smallest subset seen to fail, in the given order; None if the whole was not seen to fail.
        minimal: no removal of one item FAILS ("1-minimal" in the paper), and none was left unasked.
        budget_ended: the search stopped before it was done.
        unjudged: items whose removal was UNTESTABLE; the paper calls that minimal all the same.
        tests: how many were asked.
    """

    items: tuple[T, ...] | None
    minimal: bool
    budget_ended: bool
    unjudged: tuple[T, ...]
    tests: int


def ddmin(items: Sequence[T], test: Callable[[tuple[T, ...]], Said]) -> Reduced[T]:
    """Return a 1-minimal subset of ``items`` for which ``test`` FAILS, or the smallest found when its budget ended.

    The whole is asked first, the empty subset never, and each subset once.

    Args:
        items: may contain equal items; they are told apart by position.
        test: gets a non-empty subset in the given order. May raise ``BudgetSpent``.
    """
    answers = _Answers(lambda subset: test(tuple(items[index] for index in subset)), Budget(sys.maxsize))
    budget_ended = False
    try:
        _reduce(tuple(range(len(items))), answers)
    except BudgetSpent:
        budget_ended = True
    left = answers.failing
    said = {gone: answers.known.get(_without(left, (gone,))) for gone in left if len(left) > 1}
    return Reduced(
        items=tuple(items[index] for index in left) if left else None,
        minimal=bool(left) and all(answer in (Said.PASSES, Said.UNTESTABLE) for answer in said.values()),
        budget_ended=budget_ended,
        unjudged=tuple(items[gone] for gone, answer in said.items() if answer is Said.UNTESTABLE),
        tests=len(answers.known),
    )


def _reduce(whole: Indices, answers: _Answers) -> None:
    if not answers.fails(whole):
        return
    parts = 2
    while len(answers.failing) > 1:
        found = next((then for subset, then in _candidates(answers.failing, parts) if answers.fails(subset)), None)
        if found is not None:
            parts = found
        elif parts < len(answers.failing):
            parts = min(2 * parts, len(answers.failing))
        else:
            return


def _candidates(indices: Indices, parts: int) -> Iterator[tuple[Indices, int]]:
    """Yield the chunks of ``indices``, then what is left without each, with the number of parts to go on with."""
    bounds = [len(indices) * part // parts for part in range(parts + 1)]
    chunks = list(pairwise(bounds))
    for start, end in chunks:
        yield indices[start:end], 2
    if parts > 2:  # with two parts each chunk is what is left without the other
        for start, end in chunks:
            yield indices[:start] + indices[end:], parts - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Items, ascending, that were seen to fail on their own; ``minimal``: none of them can be left out."""

    items: Indices
    minimal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolated:
    """What was found.

    Attributes:
        culprits: no item is in two of them. A single one may be large, even the whole, where the search ended early; a
            later one that it did not finish is left out, and ``rest`` says FAILS.
        rest: what all items without the culprits said, PASSES if there are none; None: not asked.
        tests: how many were asked; ``untestable``: how many of them were UNTESTABLE.
        ended: why the search ended early, empty where it did not.
    """

    culprits: tuple[Group, ...] = ()
    rest: Said | None = None
    tests: int = 0
    untestable: int = 0
    ended: str = ""


def isolate(
    count: int,
    test: Callable[[Indices], Said],
    *,
    budget: int,
    progress: Callable[[Said, int], None] = lambda _said, _left: None,
) -> Isolated:
    """Return the groups of items 0 .. ``count`` - 1 that FAIL on their own, at most ``MOST_GROUPS``.

    Each subset is asked once and the empty one never: it is taken to pass.

    Args:
        count: at least 1.
        test: gets the ascending indices of the items that are kept. May raise ``BudgetSpent`` if it has a budget of
            its own. An oracle that fails now and then belongs into ``Repeated``.
        budget: how many tests may be asked, at least 1.
        progress: told each new answer, and how many items still fail.
    """
    search = _Search(count, test, Budget(budget), progress)
    try:
        search.find_all()
    except BudgetSpent:
        search.ended = SPENT
    return search.result()


class _Search:
    """The groups found so far; ``answers.failing`` is the smallest failing set of the present one."""

    def __init__(
        self, count: int, test: Callable[[Indices], Said], budget: Budget, progress: Callable[[Said, int], None]
    ) -> None:
        def shown(subset: Indices) -> Said:
            said = test(subset)
            progress(said, len(subset if said is Said.FAILS else self.answers.failing or self.whole))
            return said

        self.whole = tuple(range(count))
        self.answers = _Answers(shown, budget)
        self.groups: list[Group] = []
        self.rest: Said | None = None
        self.ended = ""

    def find_all(self) -> None:
        said = self.answers.ask(self.whole)
        while said is Said.FAILS:
            if len(self.groups) == MOST_GROUPS:
                self.ended = f"{MOST_GROUPS} are found, and it still shows without them"
                return
            self.find_one()
            self.groups.append(self.proven())
            self.answers.failing, self.rest = (), None
            items = (item for group in self.groups for item in group.items)
            said = self.rest = self.answers.ask(_without(self.whole, items))

    def find_one(self) -> None:
        """Leave in ``failing`` a set that one group alone explains, as small as it got."""
        items, fails = self.answers.failing, self.answers.fails
        items = items[: self.shortest(len(items), lambda length: items[:length])]
        last = items[-1:]
        if fails(last):
            return
        begin = len(items) - self.shortest(len(items), lambda length: items[len(items) - length :])
        first, between = items[begin : begin + 1], items[begin + 1 : -1]
        if not between or fails(first + last) or self.all_needed(first, between, last):
            return
        if ddmin(self.answers.failing[1:-1], lambda kept: self.answers.ask(first + kept + last)).budget_ended:
            raise BudgetSpent

    def all_needed(self, first: Indices, between: Indices, last: Indices) -> bool:
        """Whether it seems so: few, and no quarter of them can be left out. Then larger parts are not worth asking."""
        if len(between) > ONE_BY_ONE:
            return False
        bounds = [len(between) * part // 4 for part in range(5)]
        quarters = [between[start:end] for start, end in pairwise(bounds) if end > start]
        return not any(self.answers.fails(first + _without(between, quarter) + last) for quarter in quarters)

    def shortest(self, length: int, part: Callable[[int], Indices]) -> int:
        """Return the least length of a part that fails, by halving; that of ``length`` does, and longer ones do.

        Where a length cannot be tested its neighbours are asked. If neither can be, a longer one is looked for.
        """
        passes, fails = 0, length
        while fails - passes > 1:
            middle = (passes + fails) // 2
            near = (at for at in (middle, middle + 1, middle - 1) if passes < at < fails)
            tested = next((at for at in near if self.answers.ask(part(at)) is not Said.UNTESTABLE), middle)
            if self.answers.fails(part(tested)):
                fails = tested
            else:
                passes = tested
        return fails

    def proven(self) -> Group:
        """Return the group that ``failing`` is once nothing fails that has one item less."""
        smaller = True
        while smaller:
            failed = [self.answers.fails(_without(self.answers.failing, (item,))) for item in self.answers.failing]
            smaller = any(failed)
        return Group(items=self.answers.failing, minimal=True)

    def result(self) -> Isolated:
        if self.answers.failing and not self.groups:
            self.groups.append(Group(items=self.answers.failing, minimal=False))
        said = self.answers.known.values()
        return Isolated(
            culprits=tuple(self.groups),
            rest=self.rest,
            tests=len(said),
            untestable=sum(answer is Said.UNTESTABLE for answer in said),
            ended=self.ended,
        )


def _without(items: Indices, gone: Iterable[int]) -> Indices:
    out = frozenset(gone)
    return tuple(item for item in items if item not in out)
