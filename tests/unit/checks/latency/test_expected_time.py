"""How long the benchmark will take."""

from dataclasses import replace

import pytest

from harness.core.plan import LatencyBudget
from harness.core.probe import CallRecord, ModelResult
from harness.checks.latency.model_round import FEWEST_FIRST_CALLS, FIRST_CALLS
from harness.checks.latency.expected_time import Open, RoundCost, TimeLeft, expected_cost, undecided_share
from tests.unit.builders.verdicts import result

BUDGET = LatencyBudget()
ARMS = ("old", "new", "control")
LOOKS = (3, 4, 6)
COST = RoundCost(first_s=2.0, later_s=1.0)


def left(models: dict[str, Open], **more: float) -> float:
    return TimeLeft(dict.fromkeys(models, COST), start_s=10.0, first_rounds=3).seconds(models, **more)


def test_models_that_a_first_look_decides_take_its_rounds() -> None:
    one = {"a": Open(rounds=0, looks=LOOKS)}
    assert left(one, undecided=0.0) == pytest.approx(3 * 12)
    assert left({**one, "b": Open(rounds=0, looks=LOOKS)}, undecided=0.0) == pytest.approx(3 * 14)


def test_first_looks_of_all_models_share_the_starts_and_two_lanes_the_models() -> None:
    costs = dict.fromkeys(("a", "b", "c"), COST)
    assert TimeLeft(costs, start_s=10.0, first_rounds=3).first_looks_s(["a", "b"], 3) == pytest.approx(3 * (10 + 4))
    in_two = TimeLeft(costs, start_s=10.0, first_rounds=3, lanes=2)
    assert in_two.first_looks_s(costs, 3) == pytest.approx(3 * (10 + 3))
    in_two.took(["a", "b", "c"], 2 * 13.0, is_first=True)  # twice as long as expected; both count alike
    assert in_two.first_looks_s(costs, 3) == pytest.approx(1.5 * 3 * (10 + 3))


def test_in_a_large_run_the_third_of_three_first_rounds_costs_as_little_as_the_later_ones() -> None:
    large = TimeLeft({"a": COST}, start_s=10.0, first_rounds=2)
    assert large.first_looks_s(["a"], 3) == pytest.approx(2 * 12 + 11)
    assert large.seconds({"a": Open(rounds=0, looks=LOOKS)}, undecided=0.0) == pytest.approx(2 * 12 + 11)
    assert large.first_looks_s(["a"], 1) == pytest.approx(12)


def test_models_that_no_look_decides_take_all_rounds_and_the_later_ones_cost_less() -> None:
    assert left({"a": Open(rounds=0, looks=LOOKS)}, undecided=1.0) == pytest.approx(3 * 12 + 3 * 11)
    assert left({"a": Open(rounds=4, looks=LOOKS)}, undecided=1.0) == pytest.approx(2 * 11)
    assert left({"a": Open(rounds=6, looks=LOOKS)}, undecided=1.0) == 0.0
    assert left({}) == 0.0


def test_two_lanes_halve_all_but_the_starts() -> None:
    models = {name: Open(rounds=0, looks=LOOKS) for name in "ab"}
    clock = TimeLeft(dict.fromkeys(models, COST), start_s=10.0, first_rounds=3, lanes=2)
    assert clock.seconds(models, undecided=0.0) == pytest.approx(3 * (10 + 2))
    clock.took(["a", "b"], 24.0, is_first=True)
    assert clock.seconds(models, undecided=0.0) == pytest.approx(3 * 18)


def test_of_many_models_one_keeps_the_rounds_going() -> None:
    many = {str(index): Open(rounds=3, looks=LOOKS) for index in range(50)}
    assert left(many, undecided=0.5) == pytest.approx((10 + 50) + 2 * (10 + 25), rel=0.01)


def test_rounds_that_were_measured_correct_what_was_expected() -> None:
    models = {"a": Open(rounds=1, looks=(3,))}
    clock = TimeLeft({"a": COST}, start_s=10.0, first_rounds=3)
    assert clock.seconds(models) == pytest.approx(24)
    clock.took(["a"], 24.0, is_first=True)
    assert clock.seconds(models) == pytest.approx(24 * 1.5)
    for _ in range(7):
        clock.took(["a"], 24.0, is_first=True)
    assert clock.seconds(models) == pytest.approx(24 * 17 / 9)


def test_share_that_stays_undecided_is_guessed_then_learnt() -> None:
    assert undecided_share(0, 0) == 0.25
    assert undecided_share(0, 98) == pytest.approx(0.005)
    assert undecided_share(98, 98) == pytest.approx(0.985)


def of(*calls_s: float, load_s: float = 0.1) -> ModelResult:
    calls = [
        CallRecord(input_set="example", call=index, duration_ns=round(1e9 * call_s))
        for index, call_s in enumerate(calls_s)
    ]
    return result(load_ns=round(load_s * 1e9), calls=tuple(calls))


def test_round_of_a_fast_model_is_its_blocks_and_of_a_slow_one_its_calls() -> None:
    fast, slow = (expected_cost([of(*[call_s] * 4)], BUDGET, arms=ARMS) for call_s in (1e-4, 1.0))
    blocks_s = BUDGET.blocks * BUDGET.block_s
    assert 3 * blocks_s < fast.later_s < 3 * (blocks_s + 0.3)
    assert slow.later_s > 3 * (0.1 + 4 * 1.0 + 3 * 1.0)
    further_s = (FIRST_CALLS - FEWEST_FIRST_CALLS) * 1e-4
    # More than the fewest first calls, and callers at the same time, are asked of both releases; a caller calls once before.
    assert fast.first_s == pytest.approx(fast.later_s + 2 * (further_s + 1e-4 + BUDGET.together_s))
    in_two = expected_cost([of(*[1e-4] * 4)], BUDGET, arms=ARMS, lanes=2)
    assert in_two.later_s == fast.later_s
    assert in_two.first_s - fast.first_s == pytest.approx(2 * (1e-4 + BUDGET.together_s))
    alone = replace(BUDGET, threads=1)
    assert expected_cost([of(*[1e-4] * 4)], alone, arms=ARMS).first_s == pytest.approx(fast.later_s + 2 * further_s)


def test_control_of_every_third_model_is_a_third_of_a_process() -> None:
    every, third = (expected_cost([of(*[1e-4] * 4)], BUDGET, arms=ARMS, control_every=number) for number in (1, 3))
    assert third.later_s == pytest.approx(every.later_s * (2 + 1 / 3) / 3)
    assert every.first_s - third.first_s == pytest.approx(every.later_s - third.later_s)


def test_model_of_which_nothing_is_known_costs_something() -> None:
    assert expected_cost([], BUDGET, arms=ARMS).first_s > 0
    assert expected_cost([of()], BUDGET, arms=ARMS).first_s > 0
