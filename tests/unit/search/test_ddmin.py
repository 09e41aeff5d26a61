"""Delta debugging with three answers."""

import json
import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.diagnosis import Said
from harness.errors import InternalError
from harness.search.budget import BudgetSpent
from harness.search.ddmin import Reduced, SubsetTest, ddmin, key_of

Test = Callable[[tuple[int, ...]], Said]


class Counting:
    """A test that remembers what it was asked, and refuses to be asked twice."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.asked: dict[tuple[int, ...], Said] = {}

    def __call__(self, subset: tuple[int, ...]) -> Said:
        assert subset not in self.asked, f"{subset} was asked twice"
        self.asked[subset] = self.test(subset)
        return self.asked[subset]


def contains(*culprits: int) -> Test:
    return lambda subset: Said.FAILS if set(culprits) <= set(subset) else Said.PASSES


def arbitrary(seed: int, weights: tuple[int, int, int]) -> Test:
    """Neither monotone nor consistent: each subset has an answer of its own; the whole of 0..n-1 fails."""
    said = (Said.FAILS, Said.PASSES, Said.UNTESTABLE)
    return lambda subset: random.Random(f"{seed} {subset}").choices(said, weights)[0]


def whole_fails(size: int, test: Test) -> Test:
    return lambda subset: Said.FAILS if len(subset) == size else test(subset)


@st.composite
def monotone(draw: st.DrawFn) -> tuple[int, frozenset[int]]:
    size = draw(st.integers(1, 40))
    return size, draw(st.frozensets(st.integers(0, size - 1), min_size=1, max_size=6))


@given(monotone())
def test_monotone_defect_is_reduced_to_exactly_its_culprits(case: tuple[int, frozenset[int]]) -> None:
    size, culprits = case
    found = ddmin(range(size), contains(*culprits))
    assert found.items == tuple(sorted(culprits))
    assert found.minimal
    assert not found.budget_ended
    assert found.unjudged == ()


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)))
def test_result_of_any_oracle_fails_and_is_1_minimal(size: int, seed: int, weights: tuple[int, int, int]) -> None:
    test = whole_fails(size, arbitrary(seed, weights))
    asked = Counting(test)
    found = ddmin(range(size), asked)
    assert found.items is not None and found.minimal and not found.budget_ended
    assert asked.asked[found.items] is Said.FAILS
    if len(found.items) > 1:
        without = {gone: tuple(item for item in found.items if item != gone) for gone in found.items}
        assert all(asked.asked[rest] is not Said.FAILS for rest in without.values())
        assert found.unjudged == tuple(gone for gone, rest in without.items() if test(rest) is Said.UNTESTABLE)
    assert found.tests == len(asked.asked)
    assert () not in asked.asked


@given(
    st.integers(1, 16),
    st.integers(),
    st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)),
    st.integers(1, 30),
)
def test_any_budget_is_kept_and_claims_only_what_was_asked(
    size: int, seed: int, weights: tuple[int, int, int], budget: int
) -> None:
    test = whole_fails(size, arbitrary(seed, weights))
    asked = Counting(test)
    found = ddmin(range(size), asked, budget=budget)
    assert found.tests == len(asked.asked) <= budget
    assert found.items is not None and asked.asked[found.items] is Said.FAILS
    assert found.minimal or found.budget_ended
    if found.minimal and len(found.items) > 1:
        assert all(asked.asked[rest] is not Said.FAILS for rest in combinations(found.items, len(found.items) - 1))


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 5)))
def test_interrupted_search_goes_on_from_its_table_and_asks_nothing_twice(
    size: int, seed: int, weights: tuple[int, int, int]
) -> None:
    asked = Counting(whole_fails(size, arbitrary(seed, weights)))
    straight = ddmin(range(size), Counting(asked.test))
    table: Any = None
    found: Reduced[int] | None = None
    calls = 0
    while found is None or found.budget_ended:
        found = ddmin(range(size), asked, budget=2, answered=table)
        table = json.loads(json.dumps(found.answered))
        calls += 1
    assert found.items == straight.items
    assert found.answered == straight.answered
    assert len(asked.asked) == straight.tests
    assert calls >= straight.tests / 2


def test_untestable_is_never_taken_for_a_failure() -> None:
    """Nothing but the whole can be built."""
    found = ddmin(range(8), whole_fails(8, lambda subset: Said.UNTESTABLE))
    assert found.items == tuple(range(8))
    assert found.minimal
    assert found.unjudged == tuple(range(8))


def test_items_that_only_work_together_are_reduced_around_what_cannot_be_tested() -> None:
    def test(subset: tuple[int, ...]) -> Said:
        if (1 in subset) != (6 in subset):
            return Said.UNTESTABLE  # 1 uses what 6 defines
        return contains(6)(subset)

    found = ddmin(range(8), test)
    assert found.items == (1, 6)
    assert found.unjudged == (1, 6)


@pytest.mark.parametrize("said", [Said.PASSES, Said.UNTESTABLE])
def test_whole_that_does_not_fail_is_not_reduced(said: Said) -> None:
    asked = Counting(lambda subset: said)
    found = ddmin(range(3), asked)
    assert found.items is None
    assert not found.minimal
    assert not found.budget_ended
    assert found.answered == {"0-2": said}
    assert list(asked.asked) == [(0, 1, 2)]


def test_nothing_to_reduce_asks_nothing() -> None:
    asked = Counting(contains())
    assert ddmin((), asked).items is None
    assert asked.asked == {}


def test_equal_items_are_distinguished_by_position() -> None:
    found = ddmin(["a", "b", "a", "c", "a"], lambda subset: Said.FAILS if subset.count("a") >= 2 else Said.PASSES)
    assert found.items == ("a", "a")
    assert found.minimal


def test_single_culprit_of_1000_is_found_by_halving() -> None:
    asked = Counting(contains(777))
    assert ddmin(range(1000), asked).items == (777,)
    assert len(asked.asked) <= 1 + 2 * 10


def test_progress_sees_each_new_answer_and_makes_the_table() -> None:
    seen: list[SubsetTest] = []
    first = ddmin(range(12), contains(3, 9), budget=9, progress=seen.append)
    assert {step.key: step.said for step in seen} == first.answered
    assert [step.tests for step in seen] == list(range(1, 10))
    assert first.items is not None and seen[-1].items_left == len(first.items) < 12
    again: list[SubsetTest] = []
    ddmin(range(12), contains(3, 9), answered=first.answered, progress=again.append)
    assert again and not {step.key for step in again} & set(first.answered)


def test_items_left_is_the_whole_until_something_smaller_fails() -> None:
    seen: list[SubsetTest] = []
    ddmin(range(4), contains(3), progress=seen.append)
    assert [(step.key, step.items_left) for step in seen] == [("0-3", 4), ("0-1", 4), ("2-3", 2), ("2", 2), ("3", 1)]


def test_test_with_a_budget_of_its_own_ends_the_search() -> None:
    def test(subset: tuple[int, ...]) -> Said:
        if len(subset) < 5:
            raise BudgetSpent
        return Said.FAILS

    found = ddmin(range(9), test)
    assert found.items == tuple(range(9))
    assert found.budget_ended and not found.minimal
    assert found.tests == 1
    assert found.answered == {"0-8": Said.FAILS}


def test_table_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        ddmin(range(3), contains(1), answered={"0-2": "perhaps"})
    with pytest.raises(InternalError, match="budget of 0"):
        ddmin(range(3), contains(1), budget=0)


@pytest.mark.parametrize(
    ("indices", "key"), [((), ""), ((4,), "4"), ((0, 1, 2), "0-2"), ((0, 2, 3, 7), "0,2-3,7"), ((1, 3), "1,3")]
)
def test_key_names_ranges(indices: tuple[int, ...], key: str) -> None:
    assert key_of(indices) == key


@given(st.frozensets(st.integers(0, 30)), st.frozensets(st.integers(0, 30)))
def test_key_tells_subsets_apart(one: frozenset[int], other: frozenset[int]) -> None:
    assert (key_of(sorted(one)) == key_of(sorted(other))) == (one == other)
