"""Ratios, intervals, and what they could have shown."""

import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.measurement import PairSample, Problem, RatioEstimate
from harness.checks.latency.distributions import quantile
from harness.checks.latency.looks import level_per_look
from harness.checks.latency.statistics import between, estimate, log_ratio, measure
from tests.unit.builders.tensors import arm_sample, near, pair_sample


def steady(round_: int, new_s: float, old_s: float = 1.0, turns: int = 4) -> PairSample:
    return pair_sample([{"old": old_s, "new": new_s}] * turns, round_=round_)


def estimated(samples: Sequence[PairSample], looks: int = 1) -> RatioEstimate:
    result = estimate(samples, level=level_per_look(looks))
    assert result is not None
    return result


def test_one_pair_knows_a_ratio_and_no_interval() -> None:
    result = estimated([steady(0, 1.1)])
    assert result.ratio == near(1.1)
    assert (result.low, result.high, result.pairs, result.detectable) == (0.0, math.inf, 1, math.inf)


@pytest.mark.parametrize("looks", [1, 4])
def test_interval_is_students_over_rounds_of_log_ratios(looks: int) -> None:
    result = estimated([steady(0, 1.0), steady(1, 1.1), steady(2, 1.2)], looks)
    logs = [math.log(value) for value in (1.0, 1.1, 1.2)]
    half = quantile(1 - level_per_look(looks) / 2, 2) * statistics.stdev(logs) / math.sqrt(3)
    assert result.pairs == 3
    assert math.log(result.ratio) == near(statistics.fmean(logs))
    assert math.log(result.low) == near(statistics.fmean(logs) - half)
    assert math.log(result.high) == near(statistics.fmean(logs) + half)
    assert math.log(result.detectable) == near(half)


def test_more_looks_widen_the_interval() -> None:
    samples = [steady(0, 1.0), steady(1, 1.1), steady(2, 1.2)]
    assert estimated(samples, 4).high > estimated(samples, 1).high


def test_pairs_that_agree_detect_everything() -> None:
    result = estimated([steady(0, 1.25), steady(1, 1.25)])
    assert (result.low, result.high, result.detectable) == (result.ratio, result.ratio, 1.0)


def test_more_turns_do_not_make_more_pairs() -> None:
    assert estimated([steady(0, 1.0, turns=500), steady(1, 1.1, turns=500)]).pairs == 2


def test_samples_of_one_round_are_one_pair() -> None:
    assert estimated([steady(0, 1.0), steady(0, 1.2)]).pairs == 1


def test_wild_pairs_overflow_to_an_unbounded_interval() -> None:
    result = estimated([steady(0, 1e-300), steady(1, 1e300)])
    assert (result.low, result.high, result.detectable) == (0.0, math.inf, math.inf)


def test_slow_drift_of_the_machine_cancels() -> None:
    sample = pair_sample([{"old": 1.5**turn, "new": 1.02 * 1.5**turn} for turn in range(9)])
    assert estimated([sample]).ratio == near(1.02)


def test_single_disturbed_turn_does_not_move_the_estimate() -> None:
    turns = [{"old": 1.0, "new": 1.05}] * 4
    turns[3] = {"old": 1.0, "new": 30.0}
    assert estimated([pair_sample(turns)]).ratio == near(1.05)


def test_new_stands_against_both_processes_of_the_old_release() -> None:
    sample = pair_sample([{"old": 1.0, "control": 4.0, "new": 4.0}])
    assert log_ratio(sample, "new", ("old", "control")) == near(math.log(2.0))
    assert log_ratio(sample, "control", ("old",)) == near(math.log(4.0))


def test_any_two_arms_can_be_held_against_each_other() -> None:
    turn = {"old": 1.0, "unmitigated": 2.0, "mitigation-0": 4.0, "mitigation-1": 3.0}
    arms = {arm: arm_sample(load_s=time_s) for arm, time_s in turn.items()}
    samples = [pair_sample([turn] * 3, round_=round_, arms=arms) for round_ in range(2)]
    for old, new, ratio in (
        ("old", "mitigation-0", 4.0),
        ("unmitigated", "mitigation-1", 1.5),
        ("unmitigated", "old", 0.5),
    ):
        found = measure("m", between(samples, old, new))
        assert found.steady is not None
        assert found.steady.ratio == near(ratio)
        assert found.quantities["load"].new / found.quantities["load"].old == near(ratio)
    assert measure("m", between(samples, "control", "mitigation-0")).steady is None


def test_turn_that_lacks_an_arm_counts_with_what_it_has() -> None:
    sample = pair_sample([{"old": 1.0, "control": 1.0, "new": 2.0}, {"old": 1.0, "new": 2.0}, {"old": 1.0}])
    assert log_ratio(sample, "new", ("old", "control")) == near(math.log(2.0))


@pytest.mark.parametrize("samples", [[], [pair_sample([])], [pair_sample([{"old": 1.0}, {"new": 1.0}])]])
def test_without_a_turn_of_both_arms_there_is_no_estimate(samples: list[PairSample]) -> None:
    assert estimate(samples) is None


@pytest.mark.parametrize("time_s", [0.0, -1.0, math.nan, math.inf])
def test_impossible_time_is_refused(time_s: float) -> None:
    with pytest.raises(ValueError, match="cannot be part of a ratio"):
        estimate([steady(0, time_s)])


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8))
def test_swapping_arms_inverts_the_estimate(ratios: list[float]) -> None:
    samples = [steady(index, ratio) for index, ratio in enumerate(ratios)]
    one, other = estimate(samples), estimate(samples, "old", ("new",))
    assert one is not None
    assert other is not None
    assert one.ratio * other.ratio == near(1.0)
    assert one.low <= one.ratio <= one.high
    assert one.detectable == near(other.detectable)
    assert one.detectable >= 1.0


def test_measurement_keeps_confirmation_apart_from_what_raised_the_suspicion() -> None:
    turns = [{"old": 1.0, "control": 1.0, "new": 2.0}]
    arms = {"old": arm_sample(), "control": arm_sample(), "new": arm_sample(load_s=3.0)}
    first = [pair_sample(turns, round_=number, arms=arms, spent_s=0.5) for number in range(2)]
    fresh = [pair_sample([{"old": 1.0, "new": 3.0}], round_=2, spent_s=0.25)]
    result = measure("m", first, fresh, problem=Problem(words="noisy"))
    assert (len(result.samples), result.problem, result.spent_s) == (3, "noisy", 1.25)
    assert result.steady is not None
    assert result.same_against_same is not None
    assert result.confirmation is not None
    assert (result.steady.ratio, result.steady.pairs, result.same_against_same.ratio) == (near(2.0), 2, 1.0)
    assert (result.confirmation.ratio, result.confirmation.pairs) == (near(3.0), 1)
    load = result.ratio("load")
    assert load is not None
    assert (load.ratio, load.pairs) == (near(3.0), 2)
    assert result.ratio("replay") is None


def test_callers_that_waited_for_a_core_are_known_by_the_worst_arm() -> None:
    sample = pair_sample([{"old": 1.0, "new": 1.0}] * 2)
    blocks = [
        block.__class__(arm=block.arm, turn=block.turn, p50_s=1.0, calls=1, waited=0.4 if block.arm == "new" else 0.0)
        for block in sample.blocks
    ]
    assert measure("m", [PairSample(model="m", round=0, blocks=tuple(blocks), arms={})]).waited == near(0.4)
    assert measure("m", []).waited == 0.0
