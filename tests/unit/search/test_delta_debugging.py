"""Delta debugging: exact numbers of tests, no answer that was not seen, and symptoms that show only sometimes."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.diagnosis import UNRESOLVED_AFTER
from harness.core.diagnosis import Answer, SearchAnswer, Tally
from harness.core.errors import InternalError
from harness.search.delta_debugging import (
    MOST_GROUPS,
    SPENT,
    Budget,
    BudgetSpent,
    Group,
    Indices,
    Isolated,
    MinimalSets,
    Repeated,
    chance_of_missing,
    ddmin,
    isolate,
    least_failing,
    minimal_sets,
    repeats_for_rate,
    repeats_needed,
    settled,
)
from tests.unit.builders.oracles import FAILS, PASSES, UNTESTABLE

Test = Callable[[Indices], Answer]
AMPLE = 100_000


class Counting:
    """A test that remembers what it was asked, and refuses to be asked twice or for nothing."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.asked: dict[Indices, Answer] = {}

    def __call__(self, subset: Indices) -> Answer:
        assert subset not in self.asked, f"{subset} was asked twice"
        assert subset and all(one < other for one, other in pairwise(subset))
        self.asked[subset] = self.test(subset)
        return self.asked[subset]


def guilty(*groups: Iterable[int]) -> Test:
    """Fails where all of one group are kept."""
    sets = [frozenset(group) for group in groups]
    return lambda kept: Answer.FAIL if any(group <= frozenset(kept) for group in sets) else Answer.PASS


def arbitrary(size: int, seed: int, weights: tuple[int, int, int]) -> Test:
    """Neither monotone nor consistent: each subset has an answer of its own; the whole fails."""
    answer = (Answer.FAIL, Answer.PASS, Answer.UNRESOLVED)
    return lambda kept: (
        Answer.FAIL if len(kept) == size else random.Random(f"{seed} {kept}").choices(answer, weights)[0]
    )


def unresolved_where(test: Test, refused: Callable[[Indices], bool]) -> Test:
    return lambda kept: Answer.UNRESOLVED if refused(kept) else test(kept)


def culprits_of(result: Isolated) -> list[Indices]:
    return [group.items for group in result.culprits]


def log2(size: int) -> int:
    return math.ceil(math.log2(size))


@pytest.mark.parametrize("size", [*range(1, 34), 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 400])
def test_single_culprit_at_any_place_takes_log2_and_three_more(size: int) -> None:
    for culprit in range(size):
        asked = Counting(guilty([culprit]))
        result = isolate(size, asked, budget=AMPLE)
        assert result.culprits == (Group(items=(culprit,), minimal=True),)
        assert (result.rest, result.ended) == (Answer.PASS, "")
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
            assert sorted(culprits_of(result)) == [(one,), (other,)]
            assert result.tests <= 2 * (log2(size) + 2) + 1
            assert (result.rest, result.ended) == (Answer.PASS, "")


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
    assert sorted(culprits_of(result)) == sorted(groups)
    assert all(group.minimal for group in result.culprits)
    assert (result.rest, result.ended, result.unresolved) == (Answer.PASS, "", 0)
    assert result.tests == len(asked.asked)


@given(planted(), st.integers(), st.integers(1, 60))
def test_unresolved_subsets_neither_hide_a_culprit_nor_make_one(
    case: tuple[int, list[tuple[int, ...]]], seed: int, percent: int
) -> None:
    size, groups = case
    test = unresolved_where(
        guilty(*groups), lambda kept: len(kept) < size and random.Random(f"{seed} {kept}").randrange(100) < percent
    )
    asked = Counting(test)
    result = isolate(size, asked, budget=AMPLE)
    assert result.ended == ""
    told = [set(group.items) for group in result.culprits]
    assert told and all(any(set(group) <= items for group in groups) for items in told)
    assert result.rest is Answer.UNRESOLVED or all(any(items & set(group) for items in told) for group in groups)
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


def assert_is_as_told(result: Isolated, asked: dict[Indices, Answer]) -> None:
    """Each group failed by itself, none shares an item, and minimal is what was asked and did not fail."""
    items = [item for group in result.culprits for item in group.items]
    assert len(items) == len(set(items))
    for group in result.culprits:
        assert asked[group.items] is Answer.FAIL
        without = {gone: tuple(item for item in group.items if item != gone) for gone in group.items}
        if group.minimal and len(group.items) > 1:
            assert all(asked[rest] is not Answer.FAIL for rest in without.values())
    assert result.unresolved == sum(answer is Answer.UNRESOLVED for answer in asked.values())
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
        return SearchAnswer(answer=Answer.FAIL if shows else Answer.PASS)

    repeated = Repeated(run, Budget(AMPLE))
    clean = repeats_for_rate(0.3, miss=1e-4)
    result = isolate(size, lambda kept: repeated.settle(kept, clean), budget=AMPLE)
    assert culprits_of(result) == [group]


@given(st.integers(2, 120), st.integers(), st.floats(0, 0.4))
def test_failures_that_are_missed_make_the_answer_larger_never_wrong(size: int, seed: int, missed: float) -> None:
    culprit = random.Random(seed).randrange(size)

    def test(kept: Indices) -> Answer:
        shows = culprit in kept and (len(kept) == size or random.Random(f"{seed} {kept}").random() >= missed)
        return Answer.FAIL if shows else Answer.PASS

    result = isolate(size, test, budget=AMPLE)
    assert len(result.culprits) == 1
    assert culprit in result.culprits[0].items


def test_chain_that_must_stay_whole_is_found_with_few_tests() -> None:
    """A future cannot go into an archive: what lies between fork and wait is testable only as a whole."""

    def cuts(kept: Indices) -> bool:
        inside = sum(300 <= item <= 304 for item in kept)
        return inside not in (0, 5)

    result = isolate(1000, unresolved_where(guilty([302]), cuts), budget=AMPLE)
    (group,) = result.culprits
    assert group == Group(items=(300, 301, 302, 303, 304), minimal=True)
    assert result.tests <= 60


def test_beginnings_that_cannot_be_tested_are_asked_one_longer_or_shorter() -> None:
    asked = Counting(unresolved_where(guilty([5]), lambda kept: kept == tuple(range(32))))
    result = isolate(64, asked, budget=AMPLE)
    assert culprits_of(result) == [(5,)]
    assert asked.asked[5,] is Answer.FAIL
    assert (result.unresolved, result.tests) == (1, log2(64) + 4)


def test_where_no_beginning_can_be_tested_its_ends_and_parts_are() -> None:
    test = unresolved_where(guilty([20]), lambda kept: kept[0] == 0 and len(kept) < 63)
    result = isolate(64, test, budget=AMPLE)
    assert result.culprits == (Group(items=(20,), minimal=True),)


@pytest.mark.parametrize("answer", [Answer.PASS, Answer.UNRESOLVED])
def test_whole_that_does_not_fail_is_not_searched(answer: Answer) -> None:
    asked = Counting(lambda kept: answer)
    result = isolate(30, asked, budget=AMPLE)
    assert (result.culprits, result.rest, result.ended) == ((), None, "")
    assert list(asked.asked) == [tuple(range(30))]


def test_more_culprits_than_a_few_end_the_search_and_it_says_so() -> None:
    result = isolate(100, guilty(*([at] for at in range(0, 100, 10))), budget=AMPLE)
    assert culprits_of(result) == [(at,) for at in range(0, 10 * MOST_GROUPS, 10)]
    assert result.rest is Answer.FAIL
    assert "still shows" in result.ended


def test_rest_that_cannot_be_tested_leaves_that_open() -> None:
    result = isolate(8, unresolved_where(guilty([2], [6]), lambda kept: len(kept) == 7), budget=AMPLE)
    assert culprits_of(result) == [(2,)]
    assert (result.rest, result.ended) == (Answer.UNRESOLVED, "")


def test_test_with_a_budget_of_its_own_ends_the_search_with_what_is_known() -> None:
    def test(kept: Indices) -> Answer:
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
    seen: list[tuple[Answer, int]] = []
    asked = Counting(guilty([33]))
    isolate(100, asked, budget=AMPLE, progress=lambda answer, left: seen.append((answer, left)))
    assert [answer for answer, _ in seen] == list(asked.asked.values())
    assert seen[0] == (Answer.FAIL, 100)
    assert [left for answer, left in seen if answer is Answer.FAIL] == [
        len(kept) for kept, answer in asked.asked.items() if answer is Answer.FAIL
    ]


@pytest.mark.parametrize("chain", [3, 10, 30, 45])
def test_long_chain_of_which_all_are_needed_takes_about_one_test_for_each(chain: int) -> None:
    result = isolate(91, guilty(range(20, 20 + chain)), budget=AMPLE)
    assert result.culprits == (Group(items=tuple(range(20, 20 + chain)), minimal=True),)
    assert result.tests <= 2 * log2(91) + 7 + chain


def test_few_needed_together_far_apart_are_not_asked_one_by_one() -> None:
    group = (3, 211, 402, 601, 830, 977)
    result = isolate(1000, guilty(group), budget=AMPLE)
    assert culprits_of(result) == [group]
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
    assert reduced.unresolved == ()


@given(st.integers(1, 16), st.integers(), st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)))
def test_result_of_any_oracle_fails_and_is_1_minimal(size: int, seed: int, weights: tuple[int, int, int]) -> None:
    test = arbitrary(size, seed, weights)
    asked = Counting(test)
    reduced = ddmin(range(size), asked)
    assert reduced.items is not None and reduced.minimal and not reduced.budget_ended
    assert asked.asked[reduced.items] is Answer.FAIL
    if len(reduced.items) > 1:
        without = {gone: tuple(item for item in reduced.items if item != gone) for gone in reduced.items}
        assert all(asked.asked[rest] is not Answer.FAIL for rest in without.values())
        assert reduced.unresolved == tuple(gone for gone, rest in without.items() if test(rest) is Answer.UNRESOLVED)
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

    def within(subset: Indices) -> Answer:
        own.take()
        return asked(subset)

    reduced = ddmin(range(size), within)
    assert reduced.tests == len(asked.asked) <= budget
    assert reduced.items is not None and asked.asked[reduced.items] is Answer.FAIL
    assert reduced.minimal or reduced.budget_ended
    if reduced.minimal and len(reduced.items) > 1:
        assert all(asked.asked[rest] is not Answer.FAIL for rest in combinations(reduced.items, len(reduced.items) - 1))


def test_unresolved_is_never_taken_for_a_failure() -> None:
    """Nothing but the whole can be built."""
    reduced = ddmin(range(8), lambda kept: Answer.FAIL if len(kept) == 8 else Answer.UNRESOLVED)
    assert reduced.items == tuple(range(8))
    assert reduced.minimal
    assert reduced.unresolved == tuple(range(8))


def test_items_that_only_work_together_are_reduced_around_what_cannot_be_tested() -> None:
    def test(subset: Indices) -> Answer:
        if (1 in subset) != (6 in subset):
            return Answer.UNRESOLVED  # 1 uses what 6 defines
        return guilty([6])(subset)

    reduced = ddmin(range(8), test)
    assert reduced.items == (1, 6)
    assert reduced.unresolved == (1, 6)


@pytest.mark.parametrize("answer", [Answer.PASS, Answer.UNRESOLVED])
def test_ddmin_does_not_reduce_a_whole_that_does_not_fail(answer: Answer) -> None:
    asked = Counting(lambda subset: answer)
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
    reduced = ddmin(["a", "b", "a", "c", "a"], lambda subset: Answer.FAIL if subset.count("a") >= 2 else Answer.PASS)
    assert reduced.items == ("a", "a")
    assert reduced.minimal


def test_single_culprit_of_1000_is_found_by_halving() -> None:
    asked = Counting(guilty([777]))
    assert ddmin(range(1000), asked).items == (777,)
    assert len(asked.asked) <= 1 + 2 * 10


def test_ddmin_ends_with_the_budget_of_its_test() -> None:
    def test(subset: Indices) -> Answer:
        if len(subset) < 5:
            raise BudgetSpent
        return Answer.FAIL

    reduced = ddmin(range(9), test)
    assert reduced.items == tuple(range(9))
    assert reduced.budget_ended and not reduced.minimal
    assert reduced.tests == 1


CRASH = SearchAnswer(answer=Answer.FAIL, outcome="crash")


def scripted(*answers: SearchAnswer, budget: int = 100) -> Repeated[str]:
    """Every subject answers these in turn, by repeat."""
    return Repeated(lambda subject, repeat: answers[repeat], Budget(budget))


@pytest.mark.parametrize(("fails", "judged", "clean"), [(1, 1, 5), (3, 3, 3), (3, 10, 11), (1, 12, 44), (20, 20, 1)])
def test_repeats_follow_the_observed_rate(fails: int, judged: int, clean: int) -> None:
    assert repeats_needed(fails=fails, judged=judged) == clean


def test_chance_of_missing_is_the_mean_over_what_the_runs_leave_open() -> None:
    """Against the integral of (1 - p)^n over Beta(4, 8), the rate's distribution after 3 failures in 10 runs."""
    steps = 200_000
    grid = [(index + 0.5) / steps for index in range(steps)]
    density = [p**3 * (1 - p) ** 7 for p in grid]
    missed = sum(weight * (1 - p) ** 6 for p, weight in zip(grid, density, strict=True)) / sum(density)
    assert chance_of_missing(6, fails=3, judged=10) == pytest.approx(missed, rel=1e-6)


@given(st.integers(1, 30), st.integers(0, 30), st.sampled_from([0.01, 0.05, 0.2]))
def test_repeats_are_the_fewest_that_keep_the_promise(fails: int, passes: int, miss: float) -> None:
    judged = fails + passes
    clean = repeats_needed(fails=fails, judged=judged, miss=miss)
    assert chance_of_missing(clean, fails=fails, judged=judged) <= miss
    assert clean == 1 or chance_of_missing(clean - 1, fails=fails, judged=judged) > miss


@pytest.mark.parametrize(("fails", "judged"), [(0, 0), (0, 9), (4, 3)])
def test_no_failure_tells_no_rate(fails: int, judged: int) -> None:
    with pytest.raises(InternalError, match="no rate"):
        repeats_needed(fails=fails, judged=judged)


@pytest.mark.parametrize(("rate", "clean"), [(0.3, 9), (0.5, 5), (0.96, 1), (1.0, 1), (0.01, 299)])
def test_repeats_for_a_known_rate(rate: float, clean: int) -> None:
    assert repeats_for_rate(rate) == clean


def test_promised_miss_is_kept_in_a_simulation() -> None:
    """Rates drawn uniformly, measured as attribution does, then asked again: the miss is 5 % or less of all."""
    chance = random.Random(7)
    missed = tried = 0
    for _ in range(4000):
        rate = chance.random()
        repeated: Repeated[str] = Repeated(
            lambda subject, repeat, rate=rate: FAILS if chance.random() < rate else PASSES,  # type: ignore[misc]
            Budget(10_000),
        )
        tally = repeated.measure("whole", fails=3, at_most=12)
        if tally.fails:
            tried += 1
            clean = repeats_needed(fails=tally.fails, judged=tally.judged)
            missed += repeated.settle("part", clean) is Answer.PASS
    assert tried > 3500
    assert 0.01 < missed / tried < 0.06


def test_first_failure_is_proof() -> None:
    repeated = scripted(PASSES, FAILS, PASSES)
    assert repeated.settle("m", 9) is Answer.FAIL
    assert repeated.tally("m") == Tally(fails=1, passes=1, outcomes=("hang",))
    assert repeated.budget.spent == 2


def test_enough_clean_runs_pass() -> None:
    repeated = scripted(PASSES, UNTESTABLE, PASSES, PASSES)
    assert repeated.settle("m", 3) is Answer.PASS
    assert repeated.tally("m") == Tally(passes=3, untestable=1)


def test_what_cannot_be_tested_twice_is_untestable() -> None:
    repeated = scripted(PASSES, UNTESTABLE, PASSES, UNTESTABLE, FAILS)
    assert repeated.settle("m", 9) is Answer.UNRESOLVED
    assert repeated.budget.spent == 4


def test_settled_subject_is_not_asked_again_and_a_stricter_question_goes_on() -> None:
    repeated = scripted(PASSES, PASSES, PASSES, FAILS)
    assert repeated.settle("m", 2) is Answer.PASS
    assert repeated.settle("m", 2) is Answer.PASS
    assert repeated.budget.spent == 2
    assert repeated.settle("m", 4) is Answer.FAIL
    assert repeated.budget.spent == 4


def test_another_outcome_is_another_failure() -> None:
    answers: Callable[[str, int], SearchAnswer] = lambda subject, repeat: FAILS if subject == "whole" else CRASH
    repeated = Repeated(answers, Budget(10))
    assert repeated.settle("before", 3) is Answer.FAIL
    repeated.settle("whole", 3)
    repeated.only_failures_like("whole")
    assert repeated.settle("part", 3) is Answer.UNRESOLVED
    assert repeated.tally("part") == Tally(differently=UNRESOLVED_AFTER, outcomes=("crash",))


def test_outcomes_that_are_known_tell_the_first_failures_apart() -> None:
    repeated: Repeated[str] = Repeated(
        lambda subject, repeat: CRASH if repeat % 2 else FAILS, Budget(9), outcomes=["crash"]
    )
    assert repeated.measure("whole", fails=2, at_most=9) == Tally(fails=2, differently=2, outcomes=("hang", "crash"))
    repeated.only_failures_like("whole")
    assert repeated.same == {"crash"}


@pytest.mark.parametrize(("first", "then"), [("", "crash"), ("hang", "")])
def test_outcome_that_nobody_can_tell_is_the_same_failure(first: str, then: str) -> None:
    answer = {"whole": first, "part": then}
    repeated: Repeated[str] = Repeated(
        lambda subject, repeat: SearchAnswer(answer=Answer.FAIL, outcome=answer[subject]), Budget(5)
    )
    repeated.settle("whole", 3)
    repeated.only_failures_like("whole")
    assert repeated.settle("part", 3) is Answer.FAIL


def test_outcomes_are_kept_once_in_the_order_of_their_coming() -> None:
    repeated = scripted(CRASH, FAILS, CRASH, PASSES)
    assert repeated.measure("m", fails=9, at_most=4) == Tally(fails=3, passes=1, outcomes=("crash", "hang"))


@pytest.mark.parametrize(("fails", "at_most", "runs"), [(2, 9, 4), (9, 3, 3), (1, 9, 2)])
def test_measuring_ends_with_the_failures_or_the_runs(fails: int, at_most: int, runs: int) -> None:
    assert scripted(PASSES, FAILS, PASSES, FAILS, PASSES).measure("m", fails=fails, at_most=at_most).runs == runs


def test_runs_before_the_end_of_the_budget_are_kept() -> None:
    repeated = scripted(*[PASSES] * 9, budget=4)
    with pytest.raises(BudgetSpent):
        repeated.settle("m", 9)
    assert repeated.tally("m") == Tally(passes=4)
    assert repeated.budget.spent == 4


@pytest.mark.parametrize(
    ("tally", "answer"),
    [
        (Tally(), None),
        (Tally(passes=2), None),
        (Tally(passes=3, untestable=5), Answer.PASS),
        (Tally(fails=1, passes=3, untestable=5), Answer.FAIL),
        (Tally(untestable=1, differently=1), Answer.UNRESOLVED),
        (Tally(untestable=1), None),
    ],
)
def test_runs_settle_three_answers(tally: Tally, answer: Answer | None) -> None:
    assert settled(tally, 3) is answer


class Mitigating:
    """Passes where one of ``mitigations`` is in the set and ``spoils`` has nothing of it; remembers what was asked."""

    def __init__(self, mitigations: Sequence[Indices], unresolved: Sequence[int] = ()) -> None:
        self.mitigations = mitigations
        self.unresolved = unresolved
        self.sets: list[Indices] = []
        self.batches: list[int] = []

    def __call__(self, sets: Sequence[Indices]) -> list[Answer]:
        self.sets += sets
        self.batches.append(len(sets))
        return [self.answer(found) for found in sets]

    def answer(self, found: Indices) -> Answer:
        if set(found) & set(self.unresolved):
            return Answer.UNRESOLVED
        return Answer.PASS if any(set(mitigation) <= set(found) for mitigation in self.mitigations) else Answer.FAIL


def mitigations_of(found: MinimalSets) -> tuple[Indices, ...]:
    return tuple(items for items, answer in found.answers.items() if answer is Answer.PASS)


def test_a_setting_that_mitigates_ends_the_search_with_the_singles() -> None:
    ask = Mitigating([(1,), (2, 3)])
    found = minimal_sets(4, ask, budget=100)
    assert mitigations_of(found) == ((1,),)
    assert ask.sets == [(0,), (1,), (2,), (3,)]


def test_pairs_are_asked_of_those_that_do_not_mitigate_alone() -> None:
    ask = Mitigating([(1,), (2, 3)])
    found = minimal_sets(4, ask, budget=100, all_sizes=True)
    assert mitigations_of(found) == ((1,), (2, 3))
    assert [items for items in ask.sets if len(items) == 2] == [(0, 2), (0, 3), (2, 3)]
    assert all(found.is_minimal(items) for items in mitigations_of(found))


def test_what_cannot_be_tested_is_no_part_of_a_pair_and_no_mitigation() -> None:
    ask = Mitigating([(0, 2)], unresolved=[0])
    found = minimal_sets(3, ask, budget=100)
    assert mitigations_of(found) == ()
    assert found.answers == {(0,): Answer.UNRESOLVED, (1,): Answer.FAIL, (2,): Answer.FAIL, (1, 2): Answer.FAIL}


def test_sets_that_make_no_sense_are_not_asked() -> None:
    ask = Mitigating([(0, 1)])
    assert mitigations_of(minimal_sets(2, ask, budget=100, together=lambda found: len(found) == 1)) == ()
    assert (0, 1) not in ask.sets


def test_budget_ends_the_search_and_says_what_is_left() -> None:
    ask = Mitigating([(2, 3)])
    found = minimal_sets(4, ask, budget=6)
    assert len(ask.sets) == 6
    assert found.ended == "4 of 6 sets of 2 settings were not asked"
    assert mitigations_of(found) == ()


def test_stop_is_heard_between_batches_of_larger_sets_only() -> None:
    ask = Mitigating([])
    found = minimal_sets(4, ask, budget=100, stop=lambda asked: asked >= 4, at_once=2)
    assert ask.batches == [4, 2, 2]
    assert found.ended == "2 of 6 sets of 2 settings were not asked"


def test_nothing_to_choose_from_finds_nothing() -> None:
    found = minimal_sets(0, Mitigating([]), budget=100)
    assert (mitigations_of(found), found.answers, found.ended) == ((), {}, "")


SETS = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3).map(lambda found: tuple(sorted(found))), max_size=4)


@given(mitigations=SETS, unresolved=st.sets(st.integers(0, 5), max_size=2), all_sizes=st.booleans())
def test_minimal_sets_are_those_that_a_search_of_all_finds(
    mitigations: list[Indices], unresolved: set[int], all_sizes: bool
) -> None:
    ask = Mitigating(mitigations, tuple(unresolved))
    found = minimal_sets(6, ask, budget=1000, size=3, all_sizes=all_sizes)
    every = [items for size in (1, 2, 3) for items in combinations(range(6), size)]
    mitigating = [items for items in every if ask.answer(items) is Answer.PASS]
    minimal = [items for items in mitigating if not any(set(other) < set(items) for other in mitigating)]
    smallest = min(map(len, minimal), default=0)
    assert set(mitigations_of(found)) == {items for items in minimal if all_sizes or len(items) == smallest}
    assert all(found.is_minimal(items) for items in mitigations_of(found))
    assert len(ask.sets) == len(set(ask.sets))
    assert not [items for items in ask.sets for mitigation in mitigations_of(found) if set(mitigation) < set(items)]
    assert not [items for items in ask.sets if len(items) > 1 and set(items) & unresolved]


@given(mitigations=SETS, budget=st.integers(1, 12))
def test_the_budget_is_never_exceeded_and_no_mitigation_is_invented(mitigations: list[Indices], budget: int) -> None:
    ask = Mitigating(mitigations)
    found = minimal_sets(6, ask, budget=budget, size=3, all_sizes=True)
    assert len(ask.sets) <= budget
    assert all(ask.answer(items) is Answer.PASS for items in mitigations_of(found))
    assert bool(found.ended) == (
        len(ask.sets) < len(minimal_sets(6, Mitigating(mitigations), budget=99, size=3, all_sizes=True).answers)
    )


@pytest.mark.parametrize("unresolved", [(), (5, 6), (2, 3, 4, 5, 6, 7)])
def test_least_number_that_fails_is_found_around_what_cannot_be_tested(unresolved: tuple[int, ...]) -> None:
    def ask(number: int) -> Answer:
        return Answer.UNRESOLVED if number in unresolved else Answer.FAIL if number >= 5 else Answer.PASS

    least = least_failing(0, 9, ask)
    assert ask(least) in (Answer.FAIL, Answer.UNRESOLVED) and least == (
        8 if len(unresolved) > 2 else 7 if unresolved else 5
    )
