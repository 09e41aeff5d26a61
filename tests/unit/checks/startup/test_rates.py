"""What repeats without a failure, or with some, say about the probability of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.startup.rates import (
    LEVEL,
    RUNS_AT_MOST,
    Change,
    change,
    interval,
    more_often,
    next_side,
    rates_words,
    upper_bound,
)
from tests.unit.builders.tensors import near


@pytest.mark.parametrize(
    ("failures", "repeats", "bound"),
    [
        # One-sided 95 % bounds of Clopper and Pearson: the 0.95 quantile of Beta(k + 1, n - k).
        (0, 1, 0.95),
        (0, 2, 0.7763932023),
        (0, 5, 0.4507197283),
        (0, 10, 0.2588655509),
        (0, 59, 0.0495076099),
        (0, 300, 0.0099360819),
        (1, 2, 0.9746794345),
        (1, 10, 0.3941633024),
        (2, 10, 0.5069013011),
        (5, 10, 0.7775588989),
        (9, 10, 0.9948838031),
        (3, 100, 0.0757107938),
    ],
)
def test_bound_is_that_of_clopper_and_pearson(failures: int, repeats: int, bound: float) -> None:
    assert upper_bound(failures, repeats) == pytest.approx(bound, rel=1e-8)


def test_rule_of_three() -> None:
    assert upper_bound(0, 1000) == pytest.approx(3 / 1000, rel=0.01)


@pytest.mark.parametrize("repeats", [0, 1, 7])
def test_nothing_is_excluded_where_every_repeat_failed_or_none_was_made(repeats: int) -> None:
    assert upper_bound(repeats, repeats) == 1.0


def test_more_confidence_excludes_less() -> None:
    assert upper_bound(0, 1, confidence=0.5) == near(0.5)
    assert upper_bound(1, 10, confidence=0.5) < upper_bound(1, 10) < upper_bound(1, 10, confidence=0.99)


@pytest.mark.parametrize(
    ("successes", "repeats", "low", "high"),
    [
        # Two-sided 95 % intervals of Clopper and Pearson: quantiles 0.025 of Beta(k, n - k + 1), 0.975 of Beta(k + 1, n - k).
        (0, 10, 0.0, 0.3084971078),
        (1, 10, 0.0025285785, 0.4450161170),
        (5, 10, 0.1870860284, 0.8129139716),
        (10, 10, 0.6915028922, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_interval_is_that_of_clopper_and_pearson(successes: int, repeats: int, low: float, high: float) -> None:
    assert interval(successes, repeats) == pytest.approx((low, high), rel=1e-7)


COUNTS = st.integers(1, 200).flatmap(lambda repeats: st.tuples(st.integers(0, repeats - 1), st.just(repeats)))


@given(counts=COUNTS)
def test_bound_lies_between_the_observed_rate_and_one(counts: tuple[int, int]) -> None:
    failures, repeats = counts
    assert failures / repeats < upper_bound(failures, repeats) < 1.0


@given(counts=COUNTS)
def test_bound_rises_with_failures_and_falls_with_repeats(counts: tuple[int, int]) -> None:
    failures, repeats = counts
    assert upper_bound(failures + 1, repeats) > upper_bound(failures, repeats) > upper_bound(failures, repeats + 1)


@pytest.mark.parametrize(
    ("now", "before", "more"),
    [
        ((1, 1), (0, 1), False),  # one coin each
        ((3, 3), (0, 3), False),  # p = 0.05, and that is not less
        ((4, 4), (0, 4), True),
        ((9, 10), (1, 10), True),
        ((2, 5), (3, 5), False),
        ((0, 50), (5, 50), False),
        ((5, 5), (0, 0), False),
    ],
)
def test_clearly_more_failures_than_before(now: tuple[int, int], before: tuple[int, int], *, more: bool) -> None:
    assert more_often(*now, *before) is more


@pytest.mark.parametrize(("failures", "repeats"), [(0, 10**6), (1, 10**5), (600, 1200), (200, 6000)])
def test_many_repeats_are_no_trouble(failures: int, repeats: int) -> None:
    assert failures / repeats < upper_bound(failures, repeats) < failures / repeats + 0.05


@given(counts=COUNTS)
def test_interval_holds_the_observed_rate_and_turns_around_with_success_and_failure(counts: tuple[int, int]) -> None:
    successes, repeats = counts
    low, high = interval(successes, repeats)
    assert low <= successes / repeats <= high
    assert interval(repeats - successes, repeats) == pytest.approx((1 - high, 1 - low), abs=1e-12)


# the rates of two releases


def shares(new: float, old: float) -> dict[Change, float]:
    """Return how probable each answer is for these true rates: exactly, over all courses that the runs can take."""
    open_courses = {(0, 0, 0, 0): 1.0}
    found = dict.fromkeys(Change, 0.0)
    while open_courses:
        further: dict[tuple[int, int, int, int], float] = {}
        for counts, weight in open_courses.items():
            side = next_side(*counts)
            if side is None:
                found[change(*counts)] += weight
                continue
            failures, repeats, before, repeats_before = counts
            for fails, probability in ((1, new if side == "new" else old), (0, 1 - (new if side == "new" else old))):
                after = (
                    (failures + fails, repeats + 1, before, repeats_before)
                    if side == "new"
                    else (failures, repeats, before + fails, repeats_before + 1)
                )
                if probability:
                    further[after] = further.get(after, 0.0) + weight * probability
        open_courses = further
    return found


@pytest.mark.parametrize("rate", [0.02, 0.05, *(tenth / 20 for tenth in range(2, 21))])
def test_failure_that_is_as_frequent_in_both_releases_is_hardly_ever_called_a_regression(rate: float) -> None:
    assert shares(rate, rate)[Change.MORE_OFTEN] < LEVEL


@pytest.mark.parametrize("rate", [0.1, 0.3, 1.0])
def test_failure_of_the_new_release_only_is_never_said_to_be_in_both(rate: float) -> None:
    assert shares(rate, 0.0)[Change.IN_BOTH] == 0


@pytest.mark.parametrize(("rate", "share"), [(0.1, 0.5), (0.2, 0.95), (0.3, 0.99), (0.5, 0.999), (1.0, 0.999)])
def test_failure_of_the_new_release_only_is_seen_to_be_that(rate: float, share: float) -> None:
    assert shares(rate, 0.0)[Change.MORE_OFTEN] > share


@pytest.mark.parametrize(("old", "share"), [(0.02, 0.98), (0.1, 0.9), (0.2, 0.8)])
def test_failure_that_has_become_certain_is_seen_to_be_more_frequent(old: float, share: float) -> None:
    assert shares(1.0, old)[Change.MORE_OFTEN] > share


def runs_of(new: str, old: str) -> tuple[str, tuple[int, int, int, int]]:
    """Return in which release each run was, where these are the failures (F) and passes of each, and the counts."""
    sides, counts = "", [0, 0, 0, 0]
    while (side := next_side(*counts)) is not None:
        course, at = (new, 0) if side == "new" else (old, 2)
        counts[at] += course[counts[at + 1] % len(course)] == "F"
        counts[at + 1] += 1
        sides += side[0]
    failures, repeats, before, repeats_before = counts
    return sides, (failures, repeats, before, repeats_before)


@pytest.mark.parametrize(
    ("new", "old", "sides", "counts"),
    [
        ("F", "F", "ooo", (0, 0, 3, 3)),  # what fails in both every time costs three waits
        ("F", "P", "onononoooo", (3, 3, 0, 7)),  # and what is new three, and runs that pass
        ("FP", "P", "onononononoooooooooo", (3, 5, 0, 15)),
    ],
)
def test_few_runs_settle_what_fails_every_time(
    new: str, old: str, sides: str, counts: tuple[int, int, int, int]
) -> None:
    assert runs_of(new, old) == (sides, counts)


def test_what_does_not_show_again_is_given_up_and_nothing_is_asked_for_ever() -> None:
    assert runs_of("P", "P")[1] == (0, 30, 0, 30)
    assert sum(runs_of("F" + 60 * "P", "P")[1][1::2]) == RUNS_AT_MOST


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((1, 1, 0, 1), Change.UNDECIDED),
        ((0, 30, 0, 30), Change.UNDECIDED),
        ((1, 1, 1, 1), Change.IN_BOTH),
        ((0, 0, 1, 1), Change.IN_BOTH),
        ((3, 3, 0, 6), Change.UNDECIDED),
        ((3, 3, 0, 7), Change.MORE_OFTEN),
        ((9, 9, 1, 10), Change.MORE_OFTEN),
    ],
)
def test_what_the_rates_of_two_releases_amount_to(counts: tuple[int, int, int, int], said: Change) -> None:
    assert change(*counts) is said


def test_rates_are_said_with_their_intervals() -> None:
    words = "in 3 of 9 runs (7 to 70 %), in the old release in 0 of 9 (0 to 34 %), 95 % intervals"
    assert rates_words(3, 9, 0, 9) == words
