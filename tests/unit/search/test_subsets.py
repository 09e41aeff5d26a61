"""The few of many items that fail: exact numbers of tests, and no answer that was not seen."""

import math
import random
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.diagnosis import Said, SearchAnswer
from harness.core.errors import InternalError
from harness.search.budget import Budget, BudgetSpent
from harness.search.repeated import Repeated, repeats_for_rate
from harness.search.subsets import MOST_GROUPS, SPENT, Group, Isolated, ddmin, isolate

Indices = tuple[int, ...]
Test = Callable[[Indices], Said]
AMPLE = 100_000


class Counting:
    """A test that remembers what it was asked, and refuses to be asked twice or for nothing."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.asked: dict[Indices, Said] = {}

    def __call__(self, subset: Indices) -> Said:
        assert subset not in self.asked, f"{subset} was asked twice"
        assert subset and all(one < other for one, other in pairwise(subset))
        self.asked[subset] = self.test(subset)
        return self.asked[subset]


def guilty(*groups: Iterable[int]) -> Test:
    """Fails where all of one group are kept."""
    sets = [frozenset(group) for group in groups]
    return lambda kept: Said.FAILS if any(group <= frozenset(kept) for group in sets) else Said.PASSES


def arbitrary(size: int, seed: int, weights: tuple[int, int, int]) -> Test:
    """Neither monotone nor consistent: each subset has an answer of its own; the whole fails."""
    said = (Said.FAILS, Said.PASSES, Said.UNTESTABLE)
    return lambda kept: Said.FAILS if len(kept) == size else random.Random(f"{seed} {kept}").choices(said, weights)[0]


def untestable_where(test: Test, refused: Callable[[Indices], bool]) -> Test:
    return lambda kept: Said.UNTESTABLE if refused(kept) else test(kept)


def found(result: Isolated) -> list[Indices]:
    return [group.items for group in result.culprits]


def log2(size: int) -> int:
    return math.ceil(math.log2(size))


@pytest.mark.parametrize("size", [*range(1, 34), 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 400])
def test_single_culprit_at_any_place_takes_log2_and_three_more(size: int) -> None:
    for culprit in range(size):
        asked = Counting(guilty([culprit]))
        result = isolate(size, asked, budget=AMPLE)
        assert result.culprits == (Group(items=(culprit,), minimal=True),)
        assert (result.rest, result.ended) == (Said.PASSES, "")
        assert result.tests == len(asked.asked) <= log2(size) + 3


@pytest.mark.parametrize("size", [1000, 1300])
def test_single_culprit_of_1000_too(size: int) -> None:
    most = max(isolate(size, guilty([at]), budget=AMPLE).tests for at in range(0, size, 7))
    assert most == log2(size) + 3


@pytest.mark.parametrize("size", [2, 3, 7, 16, 33])
def test_any_two_culprits_are_both_found(size: int) -> None:
    for one in range(size):
        for other in range(one + 1, size):
            result = isolate(size, Counting(guilty([one], [other])), budget=AMPLE)
            assert sorted(found(result)) == [(one,), (other,)]
            assert result.tests <= 2 * (log2(size) + 2) + 1
            assert (result.rest, result.ended) == (Said.PASSES, "")


@pytest.mark.parametrize("size", [2, 3, 7, 16, 33, 100])
def test_any_two_that_are_needed_together_are_found_together(size: int) -> None:
    for one in range(size):
        for other in range(one + 1, size, 1 + size // 20):
            result = isolate(size, Counting(guilty([one, other])), budget=AMPLE)
            assert result.culprits == (Group(items=(one, other), minimal=True),)
            assert result.tests <= 2 * log2(size) + 5


@st.composite
def planted(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]]]:
    """A size, and one to three groups without a common item, of one to four items; or a chain of neighbours."""
    size = draw(st.integers(1, 60))
    if draw(st.booleans()):
        begin = draw(st.integers(0, size - 1))
        return size, [tuple(range(begin, min(size, begin + draw(st.integers(1, 5)))))]
    items = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12, unique=True))
    groups: list[tuple[int, ...]] = []
    while items and len(groups) < 3:
        many = draw(st.integers(1, min(4, len(items))))
        groups.append(tuple(sorted(items[:many])))
        items = items[many:]
    return size, groups


@given(planted())
def test_every_planted_group_is_found_and_nothing_else(case: tuple[int, list[tuple[int, ...]]]) -> None:
    size, groups = case
    asked = Counting(guilty(*groups))
    result = isolate(size, asked, budget=AMPLE)
    assert sorted(found(result)) == sorted(groups)
    assert all(group.minimal for group in result.culprits)
    assert (result.rest, result.ended, result.untestable) == (Said.PASSES, "", 0)
    assert result.tests == len(asked.asked)


@given(planted(), st.integers(), st.integers(1, 60))
def test_untestable_subsets_neither_hide_a_culprit_nor_make_one(
    case: tuple[int, list[tuple[int, ...]]], seed: int, percent: int
) -> None:
    size, groups = case
    test = untestable_where(
        guilty(*groups), lambda kept: len(kept) < size and random.Random(f"{seed} {kept}").randrange(100) < percent
    )
    asked = Counting(test)
    result = isolate(size, asked, budget=AMPLE)
    assert result.ended == ""
    told = [set(group.items) for group in result.culprits]
    assert told and all(any(set(group) <= items for group in groups) for items in told)
    assert result.rest is Said.UNTESTABLE or all(any(items & set(group) for items in told) for group in groups)
    assert_is_as_told(result, asked.asked)


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)))
def test_what_any_oracle_says_every_group_was_seen_to_fail_and_is_minimal(
    size: int, seed: int, weights: tuple[int, int, int]
) -> None:
    asked = Counting(arbitrary(size, seed, weights))
    result = isolate(size, asked, budget=AMPLE)
    assert result.culprits
    assert all(group.minimal for group in result.culprits)
    assert_is_as_told(result, asked.asked)


def assert_is_as_told(result: Isolated, asked: dict[Indices, Said]) -> None:
    """Each group failed by itself, none shares an item, and minimal is what was asked and did not fail."""
    items = [item for group in result.culprits for item in group.items]
    assert len(items) == len(set(items))
    for group in result.culprits:
        assert asked[group.items] is Said.FAILS
        without = {gone: tuple(item for item in group.items if item != gone) for gone in group.items}
        if group.minimal and len(group.items) > 1:
            assert all(asked[rest] is not Said.FAILS for rest in without.values())
    assert result.untestable == sum(said is Said.UNTESTABLE for said in asked.values())
    assert result.tests == len(asked)


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)))
def test_any_budget_is_kept_and_only_what_was_seen_is_reported(
    size: int, seed: int, weights: tuple[int, int, int]
) -> None:
    test = arbitrary(size, seed, weights)
    straight = isolate(size, test, budget=AMPLE)
    for budget in range(1, straight.tests):
        asked = Counting(test)
        result = isolate(size, asked, budget=budget)
        assert result.tests == len(asked.asked) == budget
        assert result.ended == SPENT
        assert_is_as_told(result, asked.asked)
        assert result.culprits
    assert isolate(size, test, budget=straight.tests) == straight


@settings(max_examples=30)
@given(st.integers(2, 200), st.integers(), st.booleans())
def test_flaky_at_30_percent_is_found_with_repeats(size: int, seed: int, joint: bool) -> None:
    """Each test is settled by a first failure or by as many clean runs as make a mistake one in ten thousand."""
    draw = random.Random(seed)
    group = tuple(sorted(draw.sample(range(size), 2 if joint else 1)))

    def run(kept: Indices, repeat: int) -> SearchAnswer:
        shows = set(group) <= set(kept) and draw.random() < 0.3
        return SearchAnswer(said=Said.FAILS if shows else Said.PASSES)

    repeated = Repeated(run, Budget(AMPLE))
    clean = repeats_for_rate(0.3, miss=1e-4)
    result = isolate(size, lambda kept: repeated.settle(kept, clean), budget=AMPLE)
    assert found(result) == [group]


@given(st.integers(2, 120), st.integers(), st.floats(0, 0.4))
def test_failures_that_are_missed_make_the_answer_larger_never_wrong(size: int, seed: int, missed: float) -> None:
    culprit = random.Random(seed).randrange(size)

    def test(kept: Indices) -> Said:
        shows = culprit in kept and (len(kept) == size or random.Random(f"{seed} {kept}").random() >= missed)
        return Said.FAILS if shows else Said.PASSES

    result = isolate(size, test, budget=AMPLE)
    assert len(result.culprits) == 1
    assert culprit in result.culprits[0].items


def test_removed_producer_that_heals_what_comes_after_does_not_hide_the_pair() -> None:
    """Node 41 fails only on what node 7 makes; extracted alone it gets a recorded value and passes."""
    result = isolate(64, guilty([7, 41]), budget=AMPLE)
    assert found(result) == [(7, 41)]


def test_chain_that_must_stay_whole_is_found_with_few_tests() -> None:
    """A future cannot go into an archive: what lies between fork and wait is testable only as a whole."""

    def cuts(kept: Indices) -> bool:
        inside = sum(300 <= item <= 304 for item in kept)
        return inside not in (0, 5)

    result = isolate(1000, untestable_where(guilty([302]), cuts), budget=AMPLE)
    (group,) = result.culprits
    assert group == Group(items=(300, 301, 302, 303, 304), minimal=True)
    assert result.tests <= 60


def test_beginnings_that_cannot_be_tested_are_asked_one_longer_or_shorter() -> None:
    asked = Counting(untestable_where(guilty([5]), lambda kept: kept == tuple(range(32))))
    result = isolate(64, asked, budget=AMPLE)
    assert found(result) == [(5,)]
    assert asked.asked[5,] is Said.FAILS
    assert (result.untestable, result.tests) == (1, log2(64) + 4)


def test_where_no_beginning_can_be_tested_its_ends_and_parts_are() -> None:
    test = untestable_where(guilty([20]), lambda kept: kept[0] == 0 and len(kept) < 63)
    result = isolate(64, test, budget=AMPLE)
    assert result.culprits == (Group(items=(20,), minimal=True),)


@pytest.mark.parametrize("said", [Said.PASSES, Said.UNTESTABLE])
def test_whole_that_does_not_fail_is_not_searched(said: Said) -> None:
    asked = Counting(lambda kept: said)
    result = isolate(30, asked, budget=AMPLE)
    assert (result.culprits, result.rest, result.ended) == ((), None, "")
    assert list(asked.asked) == [tuple(range(30))]


def test_more_culprits_than_a_few_end_the_search_and_it_says_so() -> None:
    result = isolate(100, guilty(*([at] for at in range(0, 100, 10))), budget=AMPLE)
    assert found(result) == [(at,) for at in range(0, 10 * MOST_GROUPS, 10)]
    assert result.rest is Said.FAILS
    assert "still shows" in result.ended


def test_rest_that_cannot_be_tested_leaves_that_open() -> None:
    result = isolate(8, untestable_where(guilty([2], [6]), lambda kept: len(kept) == 7), budget=AMPLE)
    assert found(result) == [(2,)]
    assert (result.rest, result.ended) == (Said.UNTESTABLE, "")


def test_test_with_a_budget_of_its_own_ends_the_search_with_what_is_known() -> None:
    def test(kept: Indices) -> Said:
        if len(kept) < 5:
            raise BudgetSpent
        return guilty([3])(kept)

    result = isolate(16, test, budget=AMPLE)
    assert result.culprits == (Group(items=tuple(range(8)), minimal=False),)
    assert (result.tests, result.ended) == (2, SPENT)


def test_budget_that_ends_while_needed_together_keeps_what_was_seen_to_fail() -> None:
    test = guilty([10, 40, 80])
    straight = isolate(100, test, budget=AMPLE)
    smaller = [isolate(100, test, budget=budget).culprits[0] for budget in range(1, straight.tests - 1)]
    sizes = [len(group.items) for group in smaller]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 100 and sizes[-1] == 3


def test_progress_gets_each_new_answer_and_what_still_fails() -> None:
    seen: list[tuple[Said, int]] = []
    asked = Counting(guilty([33]))
    isolate(100, asked, budget=AMPLE, progress=lambda said, left: seen.append((said, left)))
    assert [said for said, _ in seen] == list(asked.asked.values())
    assert seen[0] == (Said.FAILS, 100)
    assert [left for said, left in seen if said is Said.FAILS] == [
        len(kept) for kept, said in asked.asked.items() if said is Said.FAILS
    ]


def test_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InternalError, match="budget of 0"):
        isolate(3, guilty([1]), budget=0)


@pytest.mark.parametrize("chain", [3, 10, 30, 45])
def test_long_chain_of_which_all_are_needed_takes_about_one_test_for_each(chain: int) -> None:
    result = isolate(91, guilty(range(20, 20 + chain)), budget=AMPLE)
    assert result.culprits == (Group(items=tuple(range(20, 20 + chain)), minimal=True),)
    assert result.tests <= 2 * log2(91) + 7 + chain


def test_few_needed_together_far_apart_are_not_asked_one_by_one() -> None:
    group = (3, 211, 402, 601, 830, 977)
    result = isolate(1000, guilty(group), budget=AMPLE)
    assert found(result) == [group]
    assert result.tests <= 250


@st.composite
def monotone(draw: st.DrawFn) -> tuple[int, frozenset[int]]:
    size = draw(st.integers(1, 40))
    return size, draw(st.frozensets(st.integers(0, size - 1), min_size=1, max_size=6))


@given(monotone())
def test_monotone_defect_is_reduced_to_exactly_its_culprits(case: tuple[int, frozenset[int]]) -> None:
    size, culprits = case
    reduced = ddmin(range(size), guilty(culprits))
    assert reduced.items == tuple(sorted(culprits))
    assert reduced.minimal
    assert not reduced.budget_ended
    assert reduced.unjudged == ()


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)))
def test_result_of_any_oracle_fails_and_is_1_minimal(size: int, seed: int, weights: tuple[int, int, int]) -> None:
    test = arbitrary(size, seed, weights)
    asked = Counting(test)
    reduced = ddmin(range(size), asked)
    assert reduced.items is not None and reduced.minimal and not reduced.budget_ended
    assert asked.asked[reduced.items] is Said.FAILS
    if len(reduced.items) > 1:
        without = {gone: tuple(item for item in reduced.items if item != gone) for gone in reduced.items}
        assert all(asked.asked[rest] is not Said.FAILS for rest in without.values())
        assert reduced.unjudged == tuple(gone for gone, rest in without.items() if test(rest) is Said.UNTESTABLE)
    assert reduced.tests == len(asked.asked)
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
    test = arbitrary(size, seed, weights)
    asked, own = Counting(test), Budget(budget)

    def within(subset: Indices) -> Said:
        own.take()
        return asked(subset)

    reduced = ddmin(range(size), within)
    assert reduced.tests == len(asked.asked) <= budget
    assert reduced.items is not None and asked.asked[reduced.items] is Said.FAILS
    assert reduced.minimal or reduced.budget_ended
    if reduced.minimal and len(reduced.items) > 1:
        assert all(asked.asked[rest] is not Said.FAILS for rest in combinations(reduced.items, len(reduced.items) - 1))


def test_untestable_is_never_taken_for_a_failure() -> None:
    """Nothing but the whole can be built."""
    reduced = ddmin(range(8), lambda kept: Said.FAILS if len(kept) == 8 else Said.UNTESTABLE)
    assert reduced.items == tuple(range(8))
    assert reduced.minimal
    assert reduced.unjudged == tuple(range(8))


def test_items_that_only_work_together_are_reduced_around_what_cannot_be_tested() -> None:
    def test(subset: Indices) -> Said:
        if (1 in subset) != (6 in subset):
            return Said.UNTESTABLE  # 1 uses what 6 defines
        return guilty([6])(subset)

    reduced = ddmin(range(8), test)
    assert reduced.items == (1, 6)
    assert reduced.unjudged == (1, 6)


@pytest.mark.parametrize("said", [Said.PASSES, Said.UNTESTABLE])
def test_ddmin_does_not_reduce_a_whole_that_does_not_fail(said: Said) -> None:
    asked = Counting(lambda subset: said)
    reduced = ddmin(range(3), asked)
    assert reduced.items is None
    assert not reduced.minimal
    assert not reduced.budget_ended
    assert list(asked.asked) == [(0, 1, 2)]


def test_nothing_to_reduce_asks_nothing() -> None:
    asked = Counting(guilty())
    assert ddmin((), asked).items is None
    assert asked.asked == {}


def test_equal_items_are_distinguished_by_position() -> None:
    reduced = ddmin(["a", "b", "a", "c", "a"], lambda subset: Said.FAILS if subset.count("a") >= 2 else Said.PASSES)
    assert reduced.items == ("a", "a")
    assert reduced.minimal


def test_single_culprit_of_1000_is_found_by_halving() -> None:
    asked = Counting(guilty([777]))
    assert ddmin(range(1000), asked).items == (777,)
    assert len(asked.asked) <= 1 + 2 * 10


def test_ddmin_ends_with_the_budget_of_its_test() -> None:
    def test(subset: Indices) -> Said:
        if len(subset) < 5:
            raise BudgetSpent
        return Said.FAILS

    reduced = ddmin(range(9), test)
    assert reduced.items == tuple(range(9))
    assert reduced.budget_ended and not reduced.minimal
    assert reduced.tests == 1
