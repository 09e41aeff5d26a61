"""How long a server group takes to get ready, and each of its models."""

import math

import pytest

from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult, Span
from harness.checks.startup.readiness import init_logs, init_s, own_s
from tests.unit.builders.stages import group_run, probed, result


def took(seconds: float, model: str = "a") -> Span:
    return Span(phase="load", begin_ns=0, end_ns=round(seconds * 1e9), model=model)


def hung() -> ProbeResult:
    return probed(result("a", Outcome.HANG), outcome=Outcome.HANG, spans=(took(3.0),))


def test_a_group_takes_the_median_of_its_rounds_and_a_model_what_all_its_copies_took() -> None:
    run = group_run(
        *([probed(result("a"), spans=(took(each), took(1.0, "a#1"), took(9.0, "b")))] for each in (10.0, 30.0, 20.0))
    )
    assert init_s(run) == 20.0
    assert own_s(run, "a") == 21.0
    assert own_s(run, "c") == 0.0


@pytest.mark.parametrize("scenario", ["reinit", "rolling"])
def test_cycles_of_a_server_that_lives_on_are_no_time_of_its_start(scenario: str) -> None:
    assert init_s(group_run([probed(result("a"), spans=(took(9.0),))], scenario=scenario)) is None


def test_a_round_that_something_ended_early_has_no_time() -> None:
    assert init_s(group_run([hung()])) is None
    assert init_s(group_run([hung()], [probed(result("a"), spans=(took(5.0),))])) == 5.0


def test_the_last_rounds_of_both_releases_are_pairs_and_one_that_was_ended_early_is_none() -> None:
    old = group_run([probed(result("a"), spans=(took(2.0),))], [probed(result("a"), spans=(took(4.0),))])
    new = group_run([hung()], [probed(result("a"), spans=(took(3.0),))], [probed(result("a"), spans=(took(8.0),))])
    assert init_logs(old, new) == pytest.approx([math.log(1.5), math.log(2.0)])
    assert init_logs(old, group_run([hung()], [hung()])) == init_logs(old, group_run()) == []
