"""What repeats without a failure, or with some, say about the probability of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.startup.rates import interval, more_often, upper_bound
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
