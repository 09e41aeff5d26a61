"""Which few of many things make a symptom show, or take it away: delta debugging over an oracle that may be flaky.

The oracle answers PASS, FAIL or UNRESOLVED. ``ddmin`` is that of A. Zeller and R. Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering 28(2), 2002, figure 7 and section 3.2.

``isolate`` finds every group that fails on its own. It halves for a single item and uses ddmin only if it takes more.
The shortest beginning of all items that fails ends with a guilty one. A beginning has everything that its items take,
so it can nearly always be tested and does in it what it does in the whole. A single guilty item of n takes at most
ceil(log2 n) + 3 tests: the whole; the lengths, by halving; the last item by itself; all but that item. If the last item
passes by itself, several are needed together: the shortest end of that beginning which fails starts with another one,
and ddmin reduces what lies between the two. Two that are needed together take at most 2 ceil(log2 n) + 5 tests.

``minimal_sets`` is the other direction: the smallest sets that make the whole pass, singles first, then pairs.

``Repeated`` asks a flaky oracle: the symptom shows with an unknown probability p per run, or is not there. One failure
is proof, since a healthy subject never shows it. Only PASS can be wrong. Wald's sequential probability ratio test
(A. Wald, Annals of Mathematical Statistics 16, 1945) of "p = 0" against "p = p1" then becomes: stop at the first
failure, else after n clean runs, the smallest n with (1 - p1)^n <= miss. p1 is not known, but k failures in m runs of
something that does fail were seen. With a uniform prior, p then follows Beta(k + 1, m - k + 1), and the probability
that a subject of the same p stays clean n times is

    E[(1 - p)^n] = prod over i = 0 .. n - 1 of (m - k + 1 + i) / (m + 2 + i)

``repeats_needed`` is the smallest n for which that is <= miss: 5 after 1 of 1, 3 after 3 of 3, 11 after 3 of 10. What
is missed makes a search return more than was needed, never something that was not seen to fail.
"""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Generic, TypeVar

from harness.core.diagnosis import UNRESOLVED_AFTER, Answer, SearchAnswer, Tally
from harness.core.errors import InternalError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Indices = tuple[int, ...]
Stop = Callable[[int], bool]
"""Whether a search should end after so many runs, though its budget has more: whoever knows the time says so."""
BatchOracle = Callable[[Sequence[Indices]], Sequence[Answer]]
"""Answers several sets at once, in their order."""

MISS = 0.05
MOST_GROUPS = 4
# So many items may be asked one by one where it seems that all are needed; ddmin would ask four times as often.
ONE_BY_ONE = 64
SPENT = "the budget is spent"


class BudgetSpent(Exception):
    """Raised instead of running more tests than the budget allows; a search catches it and returns what it knows."""


class Budget:
    def __init__(self, total: int, stop: Stop | None = None) -> None:
        if total < 1:
            raise InternalError(f"a search with a budget of {total} can ask nothing")
        self.total = total
        self.spent = 0
        self.stop = stop
        self.stopped = False

    def take(self) -> None:
        if self.spent >= self.total:
            raise BudgetSpent
        if self.stop is not None and self.stop(self.spent):
            self.stopped = True
            raise BudgetSpent
        self.spent += 1


def chance_of_missing(clean: int, *, fails: int, judged: int) -> float:
    """Return how likely ``clean`` runs pass though the subject fails as often as ``fails`` of ``judged`` suggest."""
    return math.prod((judged - fails + 1 + index) / (judged + 2 + index) for index in range(clean))


def repeats_needed(*, fails: int, judged: int, miss: float = MISS) -> int:
    """Return the clean runs that PASS takes, wrong with ``miss`` at most. Raises ``InternalError``: no failure."""
    if not 0 < fails <= judged:
        raise InternalError(f"{fails} failures in {judged} runs tell no rate")
    clean = 1
    while chance_of_missing(clean, fails=fails, judged=judged) > miss:
        clean += 1
    return clean


def repeats_for_rate(rate: float, *, miss: float = MISS) -> int:
    return 1 if rate >= 1 else max(1, math.ceil(math.log(miss) / math.log1p(-rate)))


class Repeated(Generic[K]):
    """Asks ``oracle(subject, repeat)`` as often as an answer takes, and remembers every run.

    ``repeat`` counts 0, 1, ... per subject; equal arguments must give an independent run or its record. The ``budget``
    of runs is for all subjects. ``outcomes`` are those of the failure that is searched for; if empty, the first ones
    define it.
    """

    def __init__(self, oracle: Callable[[K, int], SearchAnswer], budget: Budget, outcomes: Iterable[str] = ()) -> None:
        self.oracle = oracle
        self.budget = budget
        self.tallies: dict[K, Tally] = {}
        self.same = frozenset(outcomes)

    def tally(self, subject: K) -> Tally:
        return self.tallies.get(subject, Tally())

    def only_failures_like(self, subject: K) -> None:
        """From now on, a failure with an outcome that ``subject`` has not shown counts as another failure."""
        shown = frozenset(self.tally(subject).outcomes)
        self.same = self.same & shown or shown

    def settle(self, subject: K, clean: int) -> Answer:
        """Return FAIL at the first failure, PASS after ``clean`` passes, UNRESOLVED after two runs without either.

        Raises ``BudgetSpent`` before any of these; what was run is kept.
        """
        while (answer := settled(self.tally(subject), clean)) is None:
            self.run(subject)
        return answer

    def measure(self, subject: K, *, fails: int, at_most: int) -> Tally:
        """Return the tally after ``fails`` failures (inverse binomial sampling) or ``at_most`` runs.

        Raises ``BudgetSpent`` before; what was run is kept.
        """
        while self.tally(subject).fails < fails and self.tally(subject).runs < at_most:
            self.run(subject)
        return self.tally(subject)

    def clean_runs(self, subject: K, miss: float = MISS) -> int:
        """Return how many clean runs say PASS of what would fail as often as ``subject`` does."""
        tally = self.tally(subject)
        return repeats_needed(fails=tally.fails, judged=tally.judged, miss=miss)

    def run(self, subject: K) -> None:
        self.budget.take()
        tally = self.tally(subject)
        answer = self.oracle(subject, tally.runs)
        same = not self.same or not answer.outcome or answer.outcome in self.same
        self.tallies[subject] = tally.with_run(answer, same=same)


def settled(tally: Tally, clean: int) -> Answer | None:
    """Return the answer that the runs amount to; None if more are needed."""
    if tally.fails:
        return Answer.FAIL
    if tally.passes >= clean:
        return Answer.PASS
    return Answer.UNRESOLVED if tally.untestable + tally.differently >= UNRESOLVED_AFTER else None


class _Subsets:
    """Asks about each subset once; ``failing`` is the smallest that fails, since all that is asked lies within one."""

    def __init__(self, test: Callable[[Indices], Answer], budget: Budget) -> None:
        self.test = test
        self.budget = budget
        self.answers: dict[Indices, Answer] = {}
        self.failing: Indices = ()

    def ask(self, subset: Indices) -> Answer:
        if not subset:
            return Answer.PASS
        if subset not in self.answers:
            self.budget.take()
            self.answers[subset] = self.test(subset)
        if self.answers[subset] is Answer.FAIL:
            self.failing = subset
        return self.answers[subset]

    def fails(self, subset: Indices) -> bool:
        return self.ask(subset) is Answer.FAIL


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced(Generic[T]):
    """What is left.

    Attributes:
        items: the smallest subset seen to fail, in the given order; None if the whole was not seen to fail.
        minimal: no removal of one item FAILs ("1-minimal" in the paper), and none was left unasked.
        unresolved: items whose removal is UNRESOLVED; the paper calls that minimal all the same.
    """

    items: tuple[T, ...] | None
    minimal: bool
    budget_ended: bool
    unresolved: tuple[T, ...]
    tests: int


def ddmin(items: Sequence[T], test: Callable[[tuple[T, ...]], Answer]) -> Reduced[T]:
    """Return a 1-minimal subset of ``items`` for which ``test`` FAILs, or the smallest found when its budget ended.

    The whole is asked first, the empty subset never, and each subset once, in the given order. Equal items are told
    apart by position. ``test`` may raise ``BudgetSpent``.
    """
    subsets = _Subsets(lambda subset: test(tuple(items[index] for index in subset)), Budget(sys.maxsize))
    budget_ended = False
    try:
        _reduce(tuple(range(len(items))), subsets)
    except BudgetSpent:
        budget_ended = True
    left = subsets.failing
    removals = {gone: subsets.answers.get(_without(left, (gone,))) for gone in left if len(left) > 1}
    return Reduced(
        items=tuple(items[index] for index in left) if left else None,
        minimal=bool(left) and all(answer in (Answer.PASS, Answer.UNRESOLVED) for answer in removals.values()),
        budget_ended=budget_ended,
        unresolved=tuple(items[gone] for gone, answer in removals.items() if answer is Answer.UNRESOLVED),
        tests=len(subsets.answers),
    )


def _reduce(whole: Indices, subsets: _Subsets) -> None:
    if not subsets.fails(whole):
        return
    parts = 2
    while len(subsets.failing) > 1:
        smaller = next((then for subset, then in _candidates(subsets.failing, parts) if subsets.fails(subset)), None)
        if smaller is not None:
            parts = smaller
        elif parts < len(subsets.failing):
            parts = min(2 * parts, len(subsets.failing))
        else:
            return


def _candidates(indices: Indices, parts: int) -> Iterator[tuple[Indices, int]]:
    """Yield the chunks of ``indices``, then what is left without each, with the number of parts to go on with."""
    chunks = _chunks(indices, parts)
    for chunk in chunks:
        yield chunk, 2
    if parts > 2:  # with two parts each chunk is what is left without the other
        for chunk in chunks:
            yield _without(indices, chunk), parts - 1


def _chunks(indices: Indices, parts: int) -> list[Indices]:
    bounds = [len(indices) * part // parts for part in range(parts + 1)]
    return [indices[start:end] for start, end in pairwise(bounds) if end > start]


def _without(items: Indices, gone: Iterable[int]) -> Indices:
    out = frozenset(gone)
    return tuple(item for item in items if item not in out)


def least_failing(passes: int, fails: int, ask: Callable[[int], Answer]) -> int:
    """Return the least number that FAILs, by halving; UNRESOLVED asks neighbours, then looks for a larger one."""
    while fails - passes > 1:
        middle = (passes + fails) // 2
        near = (number for number in (middle, middle + 1, middle - 1) if passes < number < fails)
        tested = next((number for number in near if ask(number) is not Answer.UNRESOLVED), middle)
        if ask(tested) is Answer.FAIL:
            fails = tested
        else:
            passes = tested
    return fails


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
            later one that it did not finish is left out, and ``rest`` is FAIL.
        rest: the answer of all items without the culprits, PASS if there are none; None: not asked.
    """

    culprits: tuple[Group, ...] = ()
    rest: Answer | None = None
    tests: int = 0
    unresolved: int = 0
    ended: str = ""


def isolate(
    count: int,
    test: Callable[[Indices], Answer],
    *,
    budget: int,
    progress: Callable[[Answer, int], None] = lambda _answer, _left: None,
) -> Isolated:
    """Return the groups of items 0 .. ``count`` - 1 that FAIL on their own, at most ``MOST_GROUPS``.

    Each subset is asked once and the empty one never: it is taken to pass. ``test``: gets the ascending indices of the
    items that are kept. May raise ``BudgetSpent`` if it has a budget of its own. An oracle that fails now and then
    belongs into ``Repeated``; ``progress``: gets each new answer, and how many items still fail.
    """
    search = _Isolating(count, test, Budget(budget), progress)
    try:
        search.find_all()
    except BudgetSpent:
        search.ended = SPENT
    return search.result()


class _Isolating:
    """The groups found so far; ``subsets.failing`` is the smallest failing set of the present one."""

    def __init__(
        self, count: int, test: Callable[[Indices], Answer], budget: Budget, progress: Callable[[Answer, int], None]
    ) -> None:
        def shown(subset: Indices) -> Answer:
            answer = test(subset)
            progress(answer, len(subset if answer is Answer.FAIL else self.subsets.failing or self.whole))
            return answer

        self.whole = tuple(range(count))
        self.subsets = _Subsets(shown, budget)
        self.groups: list[Group] = []
        self.rest: Answer | None = None
        self.ended = ""

    def find_all(self) -> None:
        answer = self.subsets.ask(self.whole)
        while answer is Answer.FAIL:
            if len(self.groups) == MOST_GROUPS:
                self.ended = f"{MOST_GROUPS} are found, and it still shows without them"
                return
            self.find_one()
            self.groups.append(self.proven())
            self.subsets.failing, self.rest = (), None
            items = (item for group in self.groups for item in group.items)
            answer = self.rest = self.subsets.ask(_without(self.whole, items))

    def find_one(self) -> None:
        """Leave in ``failing`` a set that one group alone explains, as small as it got."""
        items, ask, fails = self.subsets.failing, self.subsets.ask, self.subsets.fails
        items = items[: least_failing(0, len(items), lambda length: ask(items[:length]))]
        last = items[-1:]
        if fails(last):
            return
        begin = len(items) - least_failing(0, len(items), lambda length: ask(items[len(items) - length :]))
        first, between = items[begin : begin + 1], items[begin + 1 : -1]
        if not between or fails(first + last) or self.all_needed(first, between, last):
            return
        if ddmin(self.subsets.failing[1:-1], lambda kept: ask(first + kept + last)).budget_ended:
            raise BudgetSpent

    def all_needed(self, first: Indices, between: Indices, last: Indices) -> bool:
        """Whether it seems so: few, and no quarter of them can be left out. Then larger parts are not worth asking."""
        if len(between) > ONE_BY_ONE:
            return False
        return not any(self.subsets.fails(first + _without(between, quarter) + last) for quarter in _chunks(between, 4))

    def proven(self) -> Group:
        """Return the group that ``failing`` is once nothing fails that has one item less."""
        smaller = True
        while smaller:
            failed = [self.subsets.fails(_without(self.subsets.failing, (item,))) for item in self.subsets.failing]
            smaller = any(failed)
        return Group(items=self.subsets.failing, minimal=True)

    def result(self) -> Isolated:
        if self.subsets.failing and not self.groups:
            self.groups.append(Group(items=self.subsets.failing, minimal=False))
        answers = self.subsets.answers.values()
        return Isolated(
            culprits=tuple(self.groups),
            rest=self.rest,
            tests=len(answers),
            unresolved=sum(answer is Answer.UNRESOLVED for answer in answers),
            ended=self.ended,
        )


@dataclass(frozen=True, kw_only=True)
class MinimalSets:
    """What was asked, in that order.

    ``answers``: PASS where the symptom is gone with the set, FAIL where it shows all the same; ``ended``: why the
    search ended early, empty where it did not.
    """

    answers: dict[Indices, Answer]
    ended: str = ""

    def is_minimal(self, items: Indices) -> bool:
        return all(self.answers.get(part) is Answer.FAIL for part in _parts(items))


def minimal_sets(
    count: int,
    ask: BatchOracle,
    *,
    budget: int,
    size: int = 2,
    all_sizes: bool = False,
    together: Callable[[Indices], bool] = lambda _: True,
    stop: Stop | None = None,
    at_once: int = 8,
) -> MinimalSets:
    """Return the minimal sets of items 0 .. ``count`` - 1 that PASS, such as settings under which a symptom is gone.

    A set that has a passing one in it is never asked: it passes, or would only say that the others spoil that. What is
    UNRESOLVED by itself is in no larger set, which could not be verified either. Where one size passes, a larger one
    is dearer to keep and is asked only on demand.

    Args:
        all_sizes: whether larger sets are asked also where a smaller one passes.
        together: whether a set makes sense at all; those that do not are not asked.
        stop: gets how many larger sets were asked, says whether to end; single items are all asked.
        at_once: how many sets are asked before that is heard.
    """
    answers: dict[Indices, Answer] = {}
    for members in range(1, size + 1):
        if Answer.PASS in answers.values() and not all_sizes:
            break
        usable = [index for index in range(count) if answers.get((index,), Answer.FAIL) is Answer.FAIL]
        wanted = [
            items
            for items in combinations(usable, members)
            if together(items) and not any(answers.get(part) is Answer.PASS for part in _parts(items))
        ]
        allowed = wanted[: max(0, budget - len(answers))]
        batch_size = max(1, len(allowed)) if members == 1 else at_once
        before = len(answers)
        for start in range(0, len(allowed), batch_size):
            if members > 1 and stop is not None and stop(len(answers) - before):
                break
            batch = allowed[start : start + batch_size]
            answers.update(zip(batch, ask(batch), strict=True))
        left = len(wanted) - (len(answers) - before)
        if left:
            return MinimalSets(
                answers=answers, ended=f"{left} of {len(wanted)} sets of {members} settings were not asked"
            )
    return MinimalSets(answers=answers)


def _parts(items: Indices) -> Iterator[Indices]:
    return (part for size in range(1, len(items)) for part in combinations(items, size))
