"""What plain searches would take where ``bisect`` has searched, and how many releases a search builds; simulated."""

import math
from dataclasses import dataclass

from harness.domain.diagnosis import Said
from harness.domain.first_bad import ReleaseAnswer
from harness.releases.first_bad_search import Line, conclude, most_builds, next_likely, next_question
from harness.search.subsets import ddmin
from tests.integration.culprits.programs import Planting

RELEASES = 20
NODES_PER_STATEMENT = 2.5


@dataclass(frozen=True)
class Beside:
    """How many tests two plain searches take until all groups are known."""

    linear: int
    ddmin: int


def most_tests(nodes: int) -> int:
    """Return the bar of the issue for a single culprit."""
    return math.ceil(math.log2(max(1, nodes))) + 4


def compared(planting: Planting, nodes: int) -> Beside:
    """Return what plain searches take for the planted groups among so many nodes.

    Linear: the whole, then its beginning of one node, of two, and so on, until it fails; the second group is looked for
    where the first one ended. ddmin: of all nodes, and for each further group of those that are left.
    """
    groups = _items(planting, nodes)
    items = tuple(range(nodes))
    tests = 0
    for _ in groups:
        left = set(items)
        reduced = ddmin(items, lambda kept: _said(groups, frozenset(kept)))
        tests += reduced.tests
        items = tuple(sorted(left - set(reduced.items or ())))
    return Beside(linear=1 + max(max(group) for group in groups) + 1, ddmin=tests)


def _items(planting: Planting, nodes: int) -> list[frozenset[int]]:
    """Return about where the nodes of each group are; within a block there is one, that of the block."""
    if planting.where != "flat":
        return [frozenset({int(planting.places[0] * nodes)})]
    step = round(planting.apart * NODES_PER_STATEMENT)
    return [
        frozenset(min(nodes - 1, int(share * nodes) + step * index) for index in range(len(group)))
        for group, share in zip(planting.groups, planting.places, strict=True)
    ]


def _said(groups: list[frozenset[int]], kept: frozenset[int]) -> Said:
    return Said.FAILS if any(group <= kept for group in groups) else Said.PASSES


def builds_for_20() -> int:
    """Return how many environments are built at worst, over every first bad release among 20; built ahead included."""
    return max(_builds(first_bad) for first_bad in range(1, RELEASES))


def _builds(first_bad: int) -> int:
    names = tuple(map(str, range(RELEASES)))
    ends, built = {names[0], names[-1]}, set[str]()
    answers: dict[str, ReleaseAnswer] = {}

    def line() -> Line:
        left = most_builds(RELEASES) - len(built)
        return Line(releases=names, answers=answers, ready=ends | built, builds_left=left)

    while (name := next_question(line())) is not None:
        likely = next_likely(line(), name)
        built |= {name, *likely} - ends
        answers[name] = ReleaseAnswer.BAD if int(name) >= first_bad else ReleaseAnswer.GOOD
    assert conclude(line()).first_bad == str(first_bad)
    return len(built)
