"""Three-valued opinions on latency."""

import math
from typing import Any

import pytest

from harness.domain.measurement import LatencyMeasurement, RatioEstimate
from harness.domain.outcome import Status
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.domain.verdict import CellVerdict
from harness.policy.latency import NOT_REGRESSED, REGRESSED, UNDECIDED, classify, judge_latency
from tests.unit.policy.builders import cell_id, measured, ratio

SLOWER, AGAIN = ratio(1.08, 1.12), ratio(1.07, 1.13)
QUIET = ratio(0.99, 1.01)


def judge(measurement: LatencyMeasurement | None, limit: float = 0.03) -> CellVerdict:
    cell = cell_id("bert", "latency")
    return judge_latency(cell, measurement, LatencyBudget(limit=limit), PolicySettings())


def kinds(verdict: CellVerdict) -> list[str]:
    return [finding.kind for finding in verdict.findings]


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


def test_limit_moves_the_opinion() -> None:
    assert classify(ratio(1.04, 1.06), 0.03) == REGRESSED
    assert classify(ratio(1.04, 1.06), 0.10) == NOT_REGRESSED


def test_ratio_is_told_in_percent_with_its_interval() -> None:
    assert ratio(0.997, 1.045, 1.021).words == "+2.1 % [-0.3, +4.5]"


def test_interval_below_the_limit_passes() -> None:
    verdict = judge(measured(QUIET))
    assert (verdict.status, verdict.findings, verdict.decides) == (Status.PASS, (), True)
    assert (verdict.model, verdict.scenario) == ("bert", "latency")


def test_confirmed_slowdown_fails() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=QUIET))
    assert (verdict.status, kinds(verdict), verdict.decides) == (Status.FAIL, ["latency"], True)
    assert "+10.0 % [+8.0, +12.0] over 3 process pairs, limit +3%" in verdict.findings[0].message


def test_confirmed_slowdown_fails_without_a_same_against_same_arm() -> None:
    assert judge(measured(SLOWER, confirmation=AGAIN)).status is Status.FAIL


@pytest.mark.parametrize(
    ("confirmation", "why"),
    [(None, "it was not confirmed by fresh process pairs"), (ratio(0.98, 1.2), "fresh process pairs say +9.0 %")],
)
def test_slowdown_that_fresh_pairs_do_not_confirm_is_not_decided(confirmation: RatioEstimate | None, why: str) -> None:
    verdict = judge(measured(SLOWER, confirmation=confirmation, same_against_same=QUIET))
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["latency_undecided"])
    assert why in verdict.findings[0].message


@pytest.mark.parametrize("high", [1.08, 1.09, 1.5])
def test_same_against_same_that_is_as_slow_vetoes_the_regression(high: float) -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(1.05, high, 1.06)))
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["latency_undecided"])
    assert "two processes of the old release differ by +6.0 %" in verdict.findings[0].message


def test_same_against_same_that_is_slower_by_less_than_the_effect_vetoes_nothing() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(1.05, 1.079)))
    assert (verdict.status, kinds(verdict)) == (Status.FAIL, ["latency"])


def test_same_against_same_that_is_merely_noisy_vetoes_nothing() -> None:
    assert judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(0.9, 1.3))).status is Status.FAIL


@pytest.mark.parametrize(("high", "decides"), [(1.249, False), (1.25, True), (1.4, True), (math.inf, True)])
def test_undecided_interval_decides_the_run_from_its_upper_bound_of_1_25_on(high: float, *, decides: bool) -> None:
    verdict = judge(measured(ratio(0.99, high, 1.02)))
    assert (verdict.status, verdict.decides) == (Status.INCONCLUSIVE, decides)
    assert "this run could have shown +2%" in verdict.findings[0].message


@pytest.mark.parametrize(("high", "decides"), [(1.12, False), (1.5, True)])
def test_unconfirmed_slowdown_decides_the_run_by_the_same_bound(high: float, *, decides: bool) -> None:
    assert judge(measured(ratio(1.08, high))).decides is decides


@pytest.mark.parametrize("measurement", [None, measured(None), measured(None, problem="the new process died")])
def test_unmeasured_latency_is_never_a_pass(measurement: LatencyMeasurement | None) -> None:
    verdict = judge(measurement)
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["not_measured"])


@pytest.mark.parametrize("steady", [QUIET, SLOWER, ratio(0.99, 1.1)], ids=["fast", "slow", "undecided"])
def test_duel_that_was_lost_midway_decides_nothing_but_the_run(steady: RatioEstimate) -> None:
    verdict = judge(measured(steady, confirmation=AGAIN, problem="the new process died"))
    assert (verdict.status, kinds(verdict), verdict.decides) == (Status.INCONCLUSIVE, ["not_measured"], True)
    assert verdict.findings[0].message == "the duel was lost after 3 rounds: the new process died"


def test_duel_that_broke_decides_and_one_that_was_not_fought_does_not() -> None:
    broken = judge(measured(None, problem="the new process died"))
    assert broken.decides
    assert broken.findings[0].message.endswith("the new process died")
    assert not judge(measured(None)).decides
    assert not judge(None).decides


@pytest.mark.parametrize(("field", "kind"), [("load", "load_time"), ("first_calls", "first_calls")])
def test_grown_load_and_first_calls_warn_only_when_the_whole_interval_is_beyond(field: str, kind: str) -> None:
    def growth(low: float) -> CellVerdict:
        changes: dict[str, Any] = {field: ratio(low, 2.0)}
        return judge(measured(QUIET, **changes))

    assert (growth(1.51).status, kinds(growth(1.51))) == (Status.PASS, [kind])
    assert kinds(growth(1.5)) == []


def test_slowdown_is_told_before_grown_load_time() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, load=ratio(2.0, 3.0)))
    assert kinds(verdict) == ["latency", "load_time"]
