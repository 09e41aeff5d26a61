"""Answers from a symptom that shows only sometimes."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.diagnosis import Said, SearchAnswer, Tally
from harness.core.errors import InternalError
from harness.search.budget import Budget, BudgetSpent
from harness.search.repeated import (
    UNTESTABLE_AFTER,
    Repeated,
    chance_of_missing,
    repeats_for_rate,
    repeats_needed,
    settled,
)
from tests.unit.builders.oracles import FAILS, PASSES, UNTESTABLE

CRASH = SearchAnswer(said=Said.FAILS, outcome="crash")


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
            missed += repeated.settle("part", clean) is Said.PASSES
    assert tried > 3500
    assert 0.01 < missed / tried < 0.06


def test_first_failure_is_proof() -> None:
    repeated = scripted(PASSES, FAILS, PASSES)
    assert repeated.settle("m", 9) is Said.FAILS
    assert repeated.tally("m") == Tally(fails=1, passes=1, outcomes=("hang",))
    assert repeated.budget.spent == 2


def test_enough_clean_runs_pass() -> None:
    repeated = scripted(PASSES, UNTESTABLE, PASSES, PASSES)
    assert repeated.settle("m", 3) is Said.PASSES
    assert repeated.tally("m") == Tally(passes=3, untestable=1)


def test_what_cannot_be_tested_twice_is_untestable() -> None:
    repeated = scripted(PASSES, UNTESTABLE, PASSES, UNTESTABLE, FAILS)
    assert repeated.settle("m", 9) is Said.UNTESTABLE
    assert repeated.budget.spent == 4


def test_settled_subject_is_not_asked_again_and_a_stricter_question_goes_on() -> None:
    repeated = scripted(PASSES, PASSES, PASSES, FAILS)
    assert repeated.settle("m", 2) is Said.PASSES
    assert repeated.settle("m", 2) is Said.PASSES
    assert repeated.budget.spent == 2
    assert repeated.settle("m", 4) is Said.FAILS
    assert repeated.budget.spent == 4


def test_another_outcome_is_another_failure() -> None:
    answers: Callable[[str, int], SearchAnswer] = lambda subject, repeat: FAILS if subject == "whole" else CRASH
    repeated = Repeated(answers, Budget(10))
    assert repeated.settle("before", 3) is Said.FAILS
    repeated.settle("whole", 3)
    repeated.only_failures_like("whole")
    assert repeated.settle("part", 3) is Said.UNTESTABLE
    assert repeated.tally("part") == Tally(differently=UNTESTABLE_AFTER, outcomes=("crash",))


def test_outcomes_that_are_known_tell_the_first_failures_apart() -> None:
    repeated: Repeated[str] = Repeated(
        lambda subject, repeat: CRASH if repeat % 2 else FAILS, Budget(9), outcomes=["crash"]
    )
    assert repeated.measure("whole", fails=2, at_most=9) == Tally(fails=2, differently=2, outcomes=("hang", "crash"))
    repeated.only_failures_like("whole")
    assert repeated.same == {"crash"}


@pytest.mark.parametrize(("first", "then"), [("", "crash"), ("hang", "")])
def test_outcome_that_nobody_can_tell_is_the_same_failure(first: str, then: str) -> None:
    said = {"whole": first, "part": then}
    repeated: Repeated[str] = Repeated(
        lambda subject, repeat: SearchAnswer(said=Said.FAILS, outcome=said[subject]), Budget(5)
    )
    repeated.settle("whole", 3)
    repeated.only_failures_like("whole")
    assert repeated.settle("part", 3) is Said.FAILS


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
    ("tally", "said"),
    [
        (Tally(), None),
        (Tally(passes=2), None),
        (Tally(passes=3, untestable=5), Said.PASSES),
        (Tally(fails=1, passes=3, untestable=5), Said.FAILS),
        (Tally(untestable=1, differently=1), Said.UNTESTABLE),
        (Tally(untestable=1), None),
    ],
)
def test_runs_settle_three_answers(tally: Tally, said: Said | None) -> None:
    assert settled(tally, 3) is said
