import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.checks.load.measure import within
from harness.checks.load.tail import Times, jackknife, quantile, ratio, resolved

Side = list[Times]
DRAWS = 200


def rounds(drawn: np.random.Generator, slow: Callable[[Times], Times] = lambda times: times, count: int = 6) -> Side:
    """Served requests: a process that is up to some percent faster or slower, its requests, and pauses that meet several."""
    made = []
    for _ in range(count):
        times = 3e-3 * math.exp(drawn.normal(0, 0.01)) * np.exp(drawn.normal(0, 0.15, 1800)) + drawn.exponential(
            5e-4, 1800
        )
        for start in drawn.integers(0, 1790, drawn.poisson(3)):
            times[start : start + 5] += drawn.exponential(6e-3)
        made.append(slow(times))
    return made


def test_a_quantile_counts_what_had_no_answer() -> None:
    times = np.array([0.1] * 98 + [math.inf] * 2)
    assert quantile([times], 0.98) == 0.1
    assert quantile([times], 0.99) == math.inf
    assert ratio([times], [times], 0.99) is None


def test_quantiles_are_told_that_enough_requests_lie_beyond() -> None:
    assert resolved([np.ones(100)]) == (0.5,)
    assert resolved([np.ones(1000), np.ones(1000)]) == (0.5, 0.9, 0.99)
    assert resolved([np.ones(20_000)]) == (0.5, 0.9, 0.99, 0.999)


def test_the_interval_holds_the_true_ratio_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(1)
    missed = {share: 0 for share in (0.5, 0.99)}
    for _ in range(DRAWS):
        old, new = rounds(drawn), rounds(drawn, lambda times: times * 1.1)
        for share in missed:
            estimate = ratio(old, new, share)
            assert estimate is not None
            missed[share] += not estimate.low < 1.1 < estimate.high
    assert all(missed[share] <= 0.1 * DRAWS for share in missed), missed


def test_a_tail_alone_moves_its_quantile_and_not_the_median() -> None:
    drawn = np.random.default_rng(2)

    def one_in_fifty(times: Times) -> Times:
        return times + np.where(drawn.random(len(times)) < 0.02, 5e-3, 0.0)

    old, new = rounds(drawn), rounds(drawn, one_in_fifty)
    median, tail = ratio(old, new, 0.5), ratio(old, new, 0.99)
    assert median is not None
    assert tail is not None
    assert median.low < 1 < median.high
    assert tail.low > 1.1


def test_one_round_has_a_ratio_and_no_interval() -> None:
    estimate = ratio([np.full(10, 1.0)], [np.full(10, 2.0)], 0.5)
    assert estimate is not None
    assert (estimate.ratio, estimate.low, estimate.high) == (2.0, 0.0, math.inf)
    with pytest.raises(ValueError, match="no rounds"):
        jackknife(0, lambda _: 1.0, lambda _: 1.0)


def test_the_rate_within_a_limit_is_interpolated_and_never_beyond_what_was_measured() -> None:
    def answered(share: float) -> Times:
        return np.array([1e-3] * round(1000 * share) + [1.0] * round(1000 * (1 - share)))

    swept = [{100.0: answered(1.0), 200.0: answered(0.98), 300.0: answered(0.5)}]
    assert within(0.01, swept) == pytest.approx(150)
    assert within(2.0, swept) == 300
    assert within(1e-4, swept) == 0
