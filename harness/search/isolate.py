"""Finds the few items that show a symptom on their own: halving for a single one, delta debugging if it takes more.

The shortest beginning of all items that fails ends with a guilty one. A beginning has everything that its items take,
so it can nearly always be tested and does in it what it does in the whole. A single guilty item of n takes at most
ceil(log2 n) + 3 tests: the whole; the lengths, by halving; the last item by itself; all but that item. If the last item
passes by itself, several are needed together: the shortest end of that beginning which fails starts with another one,
and ddmin reduces what lies between the two. Two that are needed together take at most 2 ceil(log2 n) + 5 tests. Nothing
is told that was not seen to fail.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from harness.domain.diagnosis import Said
from harness.search.budget import Budget, BudgetSpent
from harness.search.ddmin import Indices, SubsetTest, ddmin, key_of

MOST_GROUPS = 4
# So many items may be asked one by one where it seems that all are needed; ddmin would ask four times as often.
ONE_BY_ONE = 64
SPENT = "the budget is spent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Items that were seen to fail on their own.

    Attributes:
        items: ascending.
        minimal: all but any one of them was asked, and none of that failed.
        unjudged: those of which all but that one was UNTESTABLE.
    """

    items: Indices
    minimal: bool
    unjudged: Indices = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolated:
    """What was found.

    Attributes:
        whole: what all items together said; nothing else is asked unless they fail.
        culprits: no item is in two of them. A single one may be large, even the whole, where the search ended early; a
            later one that it did not finish is left out, and ``rest`` says FAILS.
        rest: what all items without the culprits said, PASSES if there are none; None: not asked.
        tests: how many this call has asked; answers from the table cost nothing.
        untestable: how many of all answers were UNTESTABLE.
        ended: why the search ended early, empty where it did not.
        answered: the table: ``key_of(indices)`` -> answer. JSON-able; give it to the next call to go on.
    """

    whole: Said
    culprits: tuple[Group, ...] = ()
    rest: Said | None = None
    tests: int = 0
    untestable: int = 0
    ended: str = ""
    answered: Mapping[str, Said] = field(default_factory=dict)


def isolate(
    count: int,
    test: Callable[[Indices], Said],
    *,
    budget: int,
    answered: Mapping[str, str] | None = None,
    progress: Callable[[SubsetTest], None] | None = None,
) -> Isolated:
    """Return the groups of items 0 .. ``count`` - 1 that FAIL on their own, at most ``MOST_GROUPS``.

    Each subset is asked once and the empty one never: it is taken to pass. The order is a function of the answers
    alone, so a call with the ``answered`` of an interrupted one goes on where that one stopped.

    Args:
        count: at least 1.
        test: gets the ascending indices of the items that are kept. May raise ``BudgetSpent`` if it has a budget of
            its own. An oracle that fails now and then belongs into ``Repeated``.
        budget: how many tests may be asked, at least 1.
        answered: the table of an earlier call with the same items.
        progress: called after each new answer.
    """
    search = _Search(count, test, Budget(budget), answered or {}, progress)
    try:
        search.find_all()
    except BudgetSpent:
        search.ended = SPENT
    return search.result()


class _Search:
    """The state of one call: what was answered, the groups so far, and the smallest failing set of the present one."""

    def __init__(
        self,
        count: int,
        test: Callable[[Indices], Said],
        budget: Budget,
        answered: Mapping[str, str],
        progress: Callable[[SubsetTest], None] | None,
    ) -> None:
        self.whole = tuple(range(count))
        self.test = test
        self.budget = budget
        self.answered = {key: Said(said) for key, said in answered.items()}
        self.progress = progress
        self.tests = 0
        self.failing: Indices = ()
        self.groups: list[Group] = []
        self.rest: Said | None = None
        self.ended = ""

    def ask(self, subset: Indices) -> Said:
        """Return the answer; what fails is the smallest so far, since all that is asked lies within what failed."""
        if not subset:
            return Said.PASSES
        key = key_of(subset)
        said = self.answered.get(key)
        new = said is None
        if said is None:
            self.budget.take()
            said = self.answered[key] = self.test(subset)
            self.tests += 1
        if said is Said.FAILS:
            self.failing = subset
        if new and self.progress is not None:
            left = len(self.failing or self.whole)
            self.progress(SubsetTest(key=key, said=said, items_left=left, tests=self.tests))
        return said

    def fails(self, subset: Indices) -> bool:
        return self.ask(subset) is Said.FAILS

    def find_all(self) -> None:
        said = self.ask(self.whole)
        while said is Said.FAILS:
            if len(self.groups) == MOST_GROUPS:
                self.ended = f"{MOST_GROUPS} are found, and it still shows without them"
                self.failing = ()
                return
            self.find_one()
            self.groups.append(self.proven())
            self.failing, self.rest = (), None
            said = self.rest = self.ask(_without(self.whole, (item for group in self.groups for item in group.items)))

    def find_one(self) -> None:
        """Leave in ``failing`` a set that one group alone explains, as small as it got."""
        items = self.failing
        items = items[: self.shortest(len(items), lambda length: items[:length])]
        last = items[-1:]
        if self.fails(last):
            return
        begin = len(items) - self.shortest(len(items), lambda length: items[len(items) - length :])
        first, between = items[begin : begin + 1], items[begin + 1 : -1]
        if not between or self.fails(first + last) or self.all_needed(first, between, last):
            return
        if ddmin(self.failing[1:-1], lambda kept: self.ask(first + kept + last)).budget_ended:
            raise BudgetSpent

    def all_needed(self, first: Indices, between: Indices, last: Indices) -> bool:
        """Whether it seems so: few, and no quarter of them can be left out. Then larger parts are not worth asking."""
        if len(between) > ONE_BY_ONE:
            return False
        bounds = [len(between) * part // 4 for part in range(5)]
        quarters = [between[start:end] for start, end in pairwise(bounds) if end > start]
        return not any(self.fails(first + _without(between, quarter) + last) for quarter in quarters)

    def shortest(self, length: int, part: Callable[[int], Indices]) -> int:
        """Return the least length of a part that fails, by halving; that of ``length`` does, and longer ones do.

        Where a length cannot be tested its neighbours are asked. If neither can be, a longer one is looked for.
        """
        passes, fails = 0, length
        while fails - passes > 1:
            middle = (passes + fails) // 2
            near = (at for at in (middle, middle + 1, middle - 1) if passes < at < fails)
            told = next((at for at in near if self.ask(part(at)) is not Said.UNTESTABLE), middle)
            if self.fails(part(told)):
                fails = told
            else:
                passes = told
        return fails

    def proven(self) -> Group:
        """Return the group that ``failing`` is once nothing fails that has one item less."""
        smaller = True
        while smaller:
            failed = [self.fails(_without(self.failing, (item,))) for item in self.failing]
            smaller = any(failed)
        items = self.failing
        said = {item: self.ask(_without(items, (item,))) for item in items}
        return Group(
            items=items,
            minimal=True,
            unjudged=tuple(item for item in items if said[item] is Said.UNTESTABLE),
        )

    def result(self) -> Isolated:
        if self.failing and not self.groups:
            self.groups.append(Group(items=self.failing, minimal=False))
        return Isolated(
            whole=self.answered.get(key_of(self.whole), Said.UNTESTABLE),
            culprits=tuple(self.groups),
            rest=self.rest,
            tests=self.tests,
            untestable=sum(said is Said.UNTESTABLE for said in self.answered.values()),
            ended=self.ended,
            answered=self.answered,
        )


def _without(items: Indices, gone: Iterable[int]) -> Indices:
    out = frozenset(gone)
    return tuple(item for item in items if item not in out)
