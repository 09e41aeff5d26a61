"""Three-valued opinions on the steady latency, and how a benchmark goes on."""

import math

import pytest

from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.plan import LatencyBudget
from harness.verdict.latency import (
    NOT_REGRESSED,
    REGRESSED,
    UNDECIDED,
    Next,
    affordable,
    classify,
    confirms,
    next_step,
    noise_reaches,
)
from tests.unit.builders.verdicts import measured, ratio

SLOWER, QUIET, OPEN = ratio(1.08, 1.12), ratio(0.99, 1.01), ratio(0.99, 1.06)
BUDGET = LatencyBudget(looks=(3, 4, 6, 8), model_s=10.0)


@pytest.mark.parametrize(
    ("low", "high", "opinion"),
    [
        (1.031, 1.2, REGRESSED),
        (1.03, 1.2, UNDECIDED),
        (1.0, 1.2, UNDECIDED),
        (1.0, 1.03, UNDECIDED),
        (1.0, 1.029, NOT_REGRESSED),
        (0.5, 0.6, NOT_REGRESSED),
        (0.0, math.inf, UNDECIDED),
    ],
)
def test_interval_wholly_on_one_side_of_the_limit_decides(low: float, high: float, opinion: str) -> None:
    assert classify(ratio(low, high), 0.03) == opinion


def test_no_estimate_decides_nothing() -> None:
    assert classify(None, 0.03) == UNDECIDED
    assert confirms(None, 1.03) == UNDECIDED


def test_limit_moves_the_opinion() -> None:
    assert classify(ratio(1.04, 1.06), 0.03) == REGRESSED
    assert classify(ratio(1.04, 1.06), 0.10) == NOT_REGRESSED


@pytest.mark.parametrize(
    ("low", "high", "centre", "opinion"),
    [
        (1.001, 1.2, 1.04, REGRESSED),
        (1.0, 1.2, 1.04, UNDECIDED),
        (1.001, 1.2, 1.03, UNDECIDED),
        (0.99, 1.029, 1.01, NOT_REGRESSED),
        (1.001, 1.029, 1.02, NOT_REGRESSED),
    ],
)
def test_fresh_rounds_confirm_a_slowdown_that_they_see_by_themselves(
    low: float, high: float, centre: float, opinion: str
) -> None:
    assert confirms(ratio(low, high, centre), 1.03) == opinion


@pytest.mark.parametrize(
    ("same", "reaches"),
    [
        (None, False),
        (ratio(0.9, 1.3), False),
        (ratio(1.05, 1.079), False),
        (ratio(1.05, 1.08), True),
        (ratio(1 / 1.5, 1 / 1.05), True),
        (ratio(1 / 1.079, 1 / 1.05), False),
    ],
)
def test_old_release_that_differs_from_itself_by_as_much_reaches_the_effect(
    same: RatioEstimate | None, *, reaches: bool
) -> None:
    assert noise_reaches(measured(SLOWER, same_against_same=same), 0.03) is reaches


def step(measurement: LatencyMeasurement, rounds: int, fresh: int = 0, budget: LatencyBudget = BUDGET) -> Next:
    return next_step(measurement, budget, rounds=rounds, fresh=fresh)


@pytest.mark.parametrize(
    ("steady", "rounds", "expected"),
    [
        (QUIET, 2, Next.SEARCH),  # no look yet, however clear
        (QUIET, 3, Next.DONE),
        (SLOWER, 3, Next.CONFIRM),
        (OPEN, 3, Next.SEARCH),
        (QUIET, 5, Next.SEARCH),  # between two looks
        (OPEN, 6, Next.SEARCH),
        (OPEN, 8, Next.DONE),
        (SLOWER, 8, Next.CONFIRM),
    ],
)
def test_search_ends_at_a_look_that_decides_or_at_the_last_one(
    steady: RatioEstimate, rounds: int, expected: Next
) -> None:
    assert step(measured(steady), rounds) is expected


@pytest.mark.parametrize(
    ("fresh", "rounds", "expected"),
    [
        (SLOWER, 2, Next.CONFIRM),
        (SLOWER, 3, Next.DONE),
        (QUIET, 3, Next.DONE),
        (OPEN, 3, Next.CONFIRM),
        (OPEN, 8, Next.DONE),
    ],
)
def test_confirmation_ends_at_a_look_that_decides_or_at_the_last_one(
    fresh: RatioEstimate, rounds: int, expected: Next
) -> None:
    assert step(measured(SLOWER, confirmation=fresh), 3, rounds) is expected


def test_gated_quantity_that_is_suspected_is_taken_to_fresh_rounds_until_it_is_settled() -> None:
    assert next_step(measured(QUIET), BUDGET, rounds=3, fresh=0, gates=(UNDECIDED,)) is Next.CONFIRM
    assert next_step(measured(QUIET), BUDGET, rounds=3, fresh=3, gates=(UNDECIDED,)) is Next.CONFIRM
    assert next_step(measured(QUIET), BUDGET, rounds=3, fresh=3, gates=(REGRESSED,)) is Next.DONE
    assert next_step(measured(QUIET), BUDGET, rounds=3, fresh=8, gates=(UNDECIDED,)) is Next.DONE
    assert next_step(measured(OPEN), BUDGET, rounds=3, fresh=0, gates=(UNDECIDED,)) is Next.SEARCH


@pytest.mark.parametrize(
    ("round_s", "looks"),
    [(0.0, (3, 4, 6, 8)), (0.5, (3, 4, 6, 8)), (0.84, (3, 4, 6)), (1.2, (3, 4)), (2.3, (3,)), (60.0, (3,))],
)
def test_model_whose_rounds_are_dear_has_fewer_looks_and_always_the_first(
    round_s: float, looks: tuple[int, ...]
) -> None:
    assert affordable(BUDGET, round_s).looks == looks


def test_benchmark_that_broke_off_does_not_go_on() -> None:
    assert step(measured(OPEN, problem="the new process died"), 1) is Next.DONE
