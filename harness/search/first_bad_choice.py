"""Chooses which release to test next for the first bad one, and what the results amount to; pure.

Releases stand in order from the old end to the new one. One switch from good to bad is assumed, and checked wherever
answers contradict it. An environment costs far more than a probe, so plain halving is not best where some are built
already. The rule: ask the release with which the worst case takes least time (a build counts as ``BUILD_COST`` probes),
among the ways that need no more questions than plain halving of the whole line; of equal ones that nearest to the
middle. Without any environment that is plain halving. A neighbour of releases that could not be tested is dearer by one
probe for each of them in a row: what cannot be tested comes in runs.
"""

import functools
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.core.releases import Conclusion, Ending, ReleaseAnswer

BUILD_COST = 4
"""Probes that an environment is worth: about 40 s to build it, 10 s to start it and ask."""

Answers = Mapping[str, ReleaseAnswer]
GOOD, BAD, UNTESTABLE = ReleaseAnswer.GOOD, ReleaseAnswer.BAD, ReleaseAnswer.UNTESTABLE


def most_questions(releases: int) -> int:
    """Return how many questions find the first bad one of so many releases, both ends included and asked."""
    return _halvings(releases - 1) + 2


def most_builds(releases: int) -> int:
    """Return how many environments plain halving builds between the ends of so many releases."""
    return _halvings(releases - 1)


def _halvings(possibilities: int) -> int:
    return math.ceil(math.log2(max(1, possibilities)))


@dataclass(frozen=True, kw_only=True)
class Line:
    """At least two distinct releases from old to new end, and the ``answers`` of those that were asked."""

    releases: Sequence[str]
    answers: Answers
    ready: Collection[str] = ()
    builds_left: int = 1000

    @property
    def old(self) -> str:
        return self.releases[0]

    @property
    def new(self) -> str:
        return self.releases[-1]

    def between(self) -> tuple[int, int] | None:
        """Return the last good and the next bad place, None without; of contradicting switches the last one counts."""
        if self.answers.get(self.old) is not GOOD or self.answers.get(self.new) is not BAD:
            return None
        good = max(self._places(GOOD))
        return good, min(place for place in self._places(BAD) if place > good)

    def _places(self, answer: ReleaseAnswer) -> list[int]:
        return [place for place, name in enumerate(self.releases) if self.answers.get(name) is answer]


def next_question(line: Line) -> str | None:
    """Return what to ask next, the ends first; None where no answer would tell more or may be had."""
    if line.old not in line.answers:
        return line.old
    if line.answers[line.old] is GOOD and line.new not in line.answers:
        return line.new
    best = _best(line)
    return None if best is None else line.releases[best.place]


def next_likely(line: Line, current: str) -> tuple[str, ...]:
    """Return the releases that the answer of ``current`` may lead to and that are not built: what to build meanwhile.

    First the one on the side with more releases, which is the likelier one. Only so many are named as may be built for
    nothing without a worst case that needs more builds than ``builds_left``.
    """
    span = line.between()
    if span is None:
        return ()
    here = line.releases.index(current)
    left = max(0, line.builds_left - (current not in line.ready))
    ready = {*line.ready, current}
    ways: list[tuple[int, str]] = []
    needed = 0
    for answer, size in ((GOOD, span[1] - here), (BAD, here - span[0])):
        answers = {**line.answers, current: answer}
        best = _best(Line(releases=line.releases, answers=answers, ready=ready, builds_left=left))
        if best is not None:
            needed = max(needed, int(best.worst // (1 + BUILD_COST)))
            if line.releases[best.place] not in ready:
                ways.append((size, line.releases[best.place]))
    ways.sort(key=lambda way: -way[0])
    return tuple(name for _, name in ways)[: max(0, left - needed)]


class _Best(NamedTuple):
    """The best place to ask; ``worst``: the cost of the worst case from here on, that question included."""

    worst: float
    off_middle: int
    place: int


def _best(line: Line) -> _Best | None:
    """Return what to ask between the ends, None where nothing is left, or all is untestable or may not be built."""
    span = line.between()
    if span is None:
        return None
    good, bad = span
    places = [place for place in range(good + 1, bad) if _may_be_asked(line, place)]
    if not places:
        return None
    answered = sum(answer is not UNTESTABLE for answer in line.answers.values())
    questions = max(most_questions(len(line.releases)) - answered, _halvings(len(places) + 1))
    costs = [_cost(line, place) for place in places]
    worst = _worst_case(costs)
    return min(
        _Best(
            costs[index] + max(worst(0, index, questions - 1), worst(index + 1, len(places), questions - 1)),
            abs(2 * place - good - bad),
            place,
        )
        for index, place in enumerate(places)
    )


def _worst_case(costs: Sequence[float]) -> Callable[[int, int, int], float]:
    """Return a function: (first, end, questions left) -> the least cost of the worst case over ``costs[first:end]``."""

    @functools.cache
    def worst(first: int, end: int, questions: int) -> float:
        if first == end:
            return 0.0
        if end - first >= 1 << questions:
            return math.inf
        return min(
            costs[at] + max(worst(first, at, questions - 1), worst(at + 1, end, questions - 1))
            for at in range(first, end)
        )

    return worst


def _may_be_asked(line: Line, place: int) -> bool:
    name = line.releases[place]
    return line.answers.get(name) is not UNTESTABLE and (name in line.ready or line.builds_left > 0)


def _cost(line: Line, place: int) -> float:
    built = line.releases[place] in line.ready
    return 1.0 + (0 if built else BUILD_COST) + _untestable_beside(line, place)


def _untestable_beside(line: Line, place: int) -> int:
    count = 0
    for step in (-1, 1):
        other = place + step
        while 0 <= other < len(line.releases) and line.answers.get(line.releases[other]) is UNTESTABLE:
            count += 1
            other += step
    return count


def conclude(line: Line) -> Conclusion:
    again = good_again(line)
    if line.answers.get(line.old) is BAD:
        return Conclusion(ending=Ending.OLD_NOT_GOOD, good_again=again)
    if line.answers.get(line.old) is not GOOD:
        return Conclusion(ending=Ending.END_UNTESTABLE, untestable=(line.old,), good_again=again)
    if line.answers.get(line.new) is GOOD:
        return Conclusion(ending=Ending.NOT_BAD, last_good=line.new, good_again=again)
    span = line.between()
    if span is None:
        return Conclusion(ending=Ending.END_UNTESTABLE, last_good=line.old, untestable=(line.new,), good_again=again)
    good, bad = span
    inside = line.releases[good + 1 : bad]
    return Conclusion(
        ending=Ending.ONE_OF if inside else Ending.FOUND,
        last_good=line.releases[good],
        first_bad=line.releases[bad],
        one_of=(*inside, line.releases[bad]) if inside else (),
        untestable=tuple(name for name in inside if line.answers.get(name) is UNTESTABLE),
        not_asked=tuple(name for name in inside if name not in line.answers),
        good_again=again,
    )


def good_again(line: Line) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a bad release and the next answer after it that is good: more than one switch."""
    decided = [name for name in line.releases if line.answers.get(name) in (GOOD, BAD)]
    return tuple(
        (before, after)
        for before, after in itertools.pairwise(decided)
        if line.answers[before] is BAD and line.answers[after] is GOOD
    )
