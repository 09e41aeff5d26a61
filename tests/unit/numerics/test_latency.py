"""Ratios, intervals, and what they could have shown."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.measurement import PairSample
from harness.numerics.latency import (
    T_975,
    block_log_ratios,
    estimate,
    estimate_first_calls,
    estimate_load,
    measure,
    steady_median_s,
    student_t,
)
from tests.unit.numerics.builders import near, pair_sample, unhurried


def steady(round_: int, new_s: float, old_s: float = 1.0, blocks: int = 4) -> PairSample:
    return pair_sample([("old", old_s), ("new", new_s)] * blocks, round_=round_)


def test_one_pair_knows_a_ratio_and_no_interval() -> None:
    result = estimate([steady(0, 1.1)])
    assert result is not None
    assert result.ratio == near(1.1)
    assert (result.low, result.high, result.pairs, result.detectable) == (0.0, math.inf, 1, math.inf)


def test_interval_is_students_over_rounds_of_log_ratios() -> None:
    result = estimate([steady(0, 1.0), steady(1, 1.1), steady(2, 1.2)])
    assert result is not None
    logs = [math.log(value) for value in (1.0, 1.1, 1.2)]
    half = 4.303 * statistics.stdev(logs) / math.sqrt(3)
    assert result.pairs == 3
    assert math.log(result.ratio) == near(statistics.fmean(logs))
    assert math.log(result.low) == near(statistics.fmean(logs) - half)
    assert math.log(result.high) == near(statistics.fmean(logs) + half)
    assert math.log(result.detectable) == near(half)


def test_pairs_that_agree_detect_everything() -> None:
    result = estimate([steady(0, 1.25), steady(1, 1.25)])
    assert result is not None
    assert (result.low, result.high, result.detectable) == (result.ratio, result.ratio, 1.0)


def test_more_blocks_do_not_make_more_pairs() -> None:
    result = estimate([steady(0, 1.0, blocks=500), steady(1, 1.1, blocks=500)])
    assert result is not None
    assert result.pairs == 2


def test_samples_of_one_round_are_one_pair() -> None:
    result = estimate([steady(0, 1.0), steady(0, 1.2)])
    assert result is not None
    assert result.pairs == 1


def test_wild_pairs_overflow_to_an_unbounded_interval() -> None:
    result = estimate([steady(0, 1e-300), steady(1, 1e300)])
    assert result is not None
    assert (result.low, result.high, result.detectable) == (0.0, math.inf, math.inf)


def test_steady_drift_of_the_machine_cancels() -> None:
    arms = ["old", "new"] * 8 + ["old"]
    sample = pair_sample([(arm, 1.01**step) for step, arm in enumerate(arms)])
    result = estimate([sample])
    assert result is not None
    assert result.ratio == near(1.0, abs=1e-12)


def test_single_disturbed_block_does_not_move_the_estimate() -> None:
    blocks = [("old", 1.0), ("new", 1.05)] * 4
    blocks[3] = ("new", 30.0)
    result = estimate([pair_sample(blocks)])
    assert result is not None
    assert result.ratio == near(1.05)


def test_blocks_of_one_arm_in_a_row_are_no_pair_and_other_arms_are_skipped() -> None:
    sample = pair_sample([("old", 1.0), ("twin", 9.0), ("new", 2.0), ("new", 4.0), ("old", 1.0)])
    assert block_log_ratios(sample, "new", "old") == near([math.log(2), math.log(4)])
    assert block_log_ratios(sample, "twin", "old") == near([math.log(9)] * 2)


@pytest.mark.parametrize("samples", [[], [pair_sample([])], [pair_sample([("old", 1.0), ("old", 1.0)])]])
def test_without_both_arms_there_is_no_estimate(samples: list[PairSample]) -> None:
    assert estimate(samples) is None
    assert estimate_load(samples) is None
    assert estimate_first_calls(samples) is None


@pytest.mark.parametrize("time_s", [0.0, -1.0, math.nan, math.inf])
def test_impossible_time_is_refused(time_s: float) -> None:
    with pytest.raises(ValueError, match="cannot be part of a ratio"):
        estimate([steady(0, time_s)])


@unhurried
@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8))
def test_swapping_arms_inverts_the_estimate(ratios: list[float]) -> None:
    samples = [steady(index, ratio) for index, ratio in enumerate(ratios)]
    one, other = estimate(samples), estimate(samples, "old", "new")
    assert one is not None
    assert other is not None
    assert one.ratio * other.ratio == near(1.0)
    assert one.low <= one.ratio <= one.high
    assert one.detectable == near(other.detectable)
    assert one.detectable >= 1.0


def test_load_ratio_is_of_rounds_that_have_both() -> None:
    samples = [
        pair_sample([], round_=0, load_s={"old": 1.0, "new": 2.0}),
        pair_sample([], round_=1, load_s={"old": 1.0}),
    ]
    result = estimate_load(samples)
    assert result is not None
    assert (result.ratio, result.pairs) == (near(2.0), 1)


def test_first_calls_are_summed() -> None:
    result = estimate_first_calls([pair_sample([], first_calls_s={"old": (1.0, 1.0), "new": (1.0, 2.0)})])
    assert result is not None
    assert result.ratio == near(1.5)


def test_unlike_numbers_of_first_calls_are_not_compared() -> None:
    assert estimate_first_calls([pair_sample([], first_calls_s={"old": (1.0, 1.0), "new": (1.0,)})]) is None


def test_steady_median_weighs_rounds_equally() -> None:
    samples = [steady(0, 1.0, blocks=50), steady(1, 3.0, blocks=1), steady(2, 9.0, blocks=1)]
    assert steady_median_s(samples, "new") == 3.0
    assert steady_median_s(samples, "twin") is None


def test_measurement_takes_its_own_model_and_keeps_confirmation_apart() -> None:
    blocks = [("old", 1.0), ("twin", 1.0), ("new", 2.0)]
    own = [pair_sample(blocks, round_=index, load_s={"old": 1.0, "new": 1.0}) for index in range(2)]
    again = [pair_sample([("old", 1.0), ("new", 3.0)])]
    result = measure("m", [*own, pair_sample(blocks, model="other")], again, problem="noisy")
    assert (len(result.samples), result.problem, result.first_calls) == (2, "noisy", None)
    assert (result.steady_old_s, result.steady_new_s) == (1.0, 2.0)
    assert result.steady is not None
    assert result.same_against_same is not None
    assert result.confirmation is not None
    assert (result.steady.ratio, result.same_against_same.ratio) == (near(2.0), 1.0)
    assert (result.confirmation.ratio, result.confirmation.pairs) == (near(3.0), 1)


def test_quantiles_fall_and_gaps_take_the_wider_one() -> None:
    assert list(T_975.values()) == sorted(T_975.values(), reverse=True)
    assert student_t(35) == T_975[30]
    assert student_t(5000) == T_975[100]
