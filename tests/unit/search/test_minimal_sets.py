"""The smallest curing sets are found, whatever they are, and nothing is asked that need not be."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from harness.core.diagnosis import Said
from harness.search.minimal_sets import Indices, Sets, minimal_sets


class Oracle:
    """Cures where one of ``cures`` is in the set and ``spoils`` has nothing of it; remembers what was asked."""

    def __init__(self, cures: Sequence[Indices], untestable: Sequence[int] = ()) -> None:
        self.cures = cures
        self.untestable = untestable
        self.sets: list[Indices] = []
        self.batches: list[int] = []

    def __call__(self, sets: Sequence[Indices]) -> list[Said]:
        self.sets += sets
        self.batches.append(len(sets))
        return [self.said(found) for found in sets]

    def said(self, found: Indices) -> Said:
        if set(found) & set(self.untestable):
            return Said.UNTESTABLE
        return Said.PASSES if any(set(cure) <= set(found) for cure in self.cures) else Said.FAILS


def cures_of(found: Sets) -> tuple[Indices, ...]:
    return tuple(one for one, said in found.answers.items() if said is Said.PASSES)


def test_a_setting_that_cures_ends_the_search_with_the_singles() -> None:
    ask = Oracle([(1,), (2, 3)])
    found = minimal_sets(4, ask, budget=100)
    assert cures_of(found) == ((1,),)
    assert ask.sets == [(0,), (1,), (2,), (3,)]


def test_pairs_are_asked_of_those_that_do_not_cure_alone() -> None:
    ask = Oracle([(1,), (2, 3)])
    found = minimal_sets(4, ask, budget=100, all_sizes=True)
    assert cures_of(found) == ((1,), (2, 3))
    assert [one for one in ask.sets if len(one) == 2] == [(0, 2), (0, 3), (2, 3)]
    assert all(found.is_minimal(one) for one in cures_of(found))


def test_what_cannot_be_tested_is_no_part_of_a_pair_and_no_cure() -> None:
    ask = Oracle([(0, 2)], untestable=[0])
    found = minimal_sets(3, ask, budget=100)
    assert cures_of(found) == ()
    assert found.answers == {(0,): Said.UNTESTABLE, (1,): Said.FAILS, (2,): Said.FAILS, (1, 2): Said.FAILS}


def test_sets_that_make_no_sense_are_not_asked() -> None:
    ask = Oracle([(0, 1)])
    assert cures_of(minimal_sets(2, ask, budget=100, together=lambda found: len(found) == 1)) == ()
    assert (0, 1) not in ask.sets


def test_budget_ends_the_search_and_says_what_is_left() -> None:
    ask = Oracle([(2, 3)])
    found = minimal_sets(4, ask, budget=6)
    assert len(ask.sets) == 6
    assert found.ended == "4 of 6 sets of 2 settings were not asked"
    assert cures_of(found) == ()


def test_stop_is_heard_between_batches_of_larger_sets_only() -> None:
    ask = Oracle([])
    found = minimal_sets(4, ask, budget=100, stop=lambda asked: asked >= 4, at_once=2)
    assert ask.batches == [4, 2, 2]
    assert found.ended == "2 of 6 sets of 2 settings were not asked"


def test_nothing_to_choose_from_finds_nothing() -> None:
    found = minimal_sets(0, Oracle([]), budget=100)
    assert (cures_of(found), found.answers, found.ended) == ((), {}, "")


SETS = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3).map(lambda found: tuple(sorted(found))), max_size=4)


@given(cures=SETS, untestable=st.sets(st.integers(0, 5), max_size=2), all_sizes=st.booleans())
def test_minimal_sets_are_those_that_a_search_of_all_finds(
    cures: list[Indices], untestable: set[int], all_sizes: bool
) -> None:
    ask = Oracle(cures, tuple(untestable))
    found = minimal_sets(6, ask, budget=1000, size=3, all_sizes=all_sizes)
    every = [one for size in (1, 2, 3) for one in combinations(range(6), size)]
    curing = [one for one in every if ask.said(one) is Said.PASSES]
    minimal = [one for one in curing if not any(set(other) < set(one) for other in curing)]
    smallest = min(map(len, minimal), default=0)
    assert set(cures_of(found)) == {one for one in minimal if all_sizes or len(one) == smallest}
    assert all(found.is_minimal(one) for one in cures_of(found))
    assert len(ask.sets) == len(set(ask.sets))
    assert not [one for one in ask.sets for cure in cures_of(found) if set(cure) < set(one)]
    assert not [one for one in ask.sets if len(one) > 1 and set(one) & untestable]


@given(cures=SETS, budget=st.integers(1, 12))
def test_the_budget_is_never_exceeded_and_no_cure_is_invented(cures: list[Indices], budget: int) -> None:
    ask = Oracle(cures)
    found = minimal_sets(6, ask, budget=budget, size=3, all_sizes=True)
    assert len(ask.sets) <= budget
    assert all(ask.said(one) is Said.PASSES for one in cures_of(found))
    assert bool(found.ended) == (
        len(ask.sets) < len(minimal_sets(6, Oracle(cures), budget=99, size=3, all_sizes=True).answers)
    )
