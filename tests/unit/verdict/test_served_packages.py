"""How packages come through C++ beside others: what fails, what mitigates it for all, what cannot be told, what it costs."""

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.core.measurement import LatencyMeasurement, Quantity, RatioEstimate
from harness.core.migration import Migrated
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult
from harness.checks.migration.facts import Served, Tried
from harness.verdict.migration import causes_of, judge
from harness.checks.migration.serving import FIRST_CALLS, LOADS, mitigations_of
from harness.verdict.served_packages import (
    costs_of,
    failure_when_served,
    price_words,
    serving_steps,
    unclear_when_served,
)
from tests.unit.builders.migrations import blocked, priced
from tests.unit.verdict.test_migration import READY, answers, probe, result

PACKAGED = replace(READY, package=probe(result(), packaged={"bytes": 5}), packaged=answers(), in_cpp=answers())


def served(outcome: Outcome = Outcome.COMPLETED, said: str = "", **changes: Any) -> Served:
    kind, _, message = said.partition(": ")
    failure = Failure(type=kind, message=message, phase="load") if said else None
    found = ModelResult(model="ranker", outcome=outcome, phase="load", failure=failure)
    return Served(**{"scenario": "same_file", "runners": 1, "result": found, "rounds": 5, **changes})


CRASHED = served(Outcome.CRASH, failed_rounds=2, exit_detail="signal SIGABRT")


def judged(*ways: Served) -> Any:
    return judge(replace(PACKAGED, served=ways))


def test_package_that_comes_through_every_way_is_ready() -> None:
    found = judged(served(), served(scenario="shared"), served(scenario="shared", runners=4))
    assert found.outcome is Migrated.READY
    assert [step.name for step in found.steps][-2:] == ["serve: shared module", "serve: shared module, 4 runners"]


def test_crash_beside_others_is_told_with_its_rounds() -> None:
    found = judged(served(), CRASHED)
    assert (found.outcome, found.kind) == (Migrated.FAILS_SERVED, "crash in same file N times")
    assert found.reason == "same file N times: crash in load signal SIGABRT in 2 of 5 rounds"


def test_what_serializing_mitigates_is_one_cause_for_all_that_the_process_serves() -> None:
    mine = judged(replace(CRASHED, mitigation=("serialized loading",)))
    other = judged(served(mitigation=("serialized loading",), beside="ranker"))
    assert mine.outcome is other.outcome is Migrated.FAILS_SERVED
    assert mine.kind == other.kind == "without serialized loading"
    assert mine.advice == other.advice == "verified: serialized loading (a mutex around loading)"
    assert "ranker fails beside it" in other.reason


def test_a_way_of_serving_without_a_mitigation_is_told_before_one_that_has_one() -> None:
    hung = served(Outcome.HANG, scenario="shared", failed_rounds=1)
    found = judged(replace(CRASHED, mitigation=("serialized loading",)), hung)
    assert (found.kind, found.advice) == ("hang in shared module", "")


def test_a_server_needs_what_mitigates_all_ways() -> None:
    first_calls = served(Outcome.HANG, scenario="shared", failed_rounds=1, mitigation=("serialized first calls",))
    found = judged(replace(CRASHED, mitigation=("serialized loading",)), first_calls)
    assert found.kind == "without serialized loading and serialized first calls"
    assert found.advice.startswith("verified: serialized loading and serialized first calls (a mutex around loading; ")


def test_what_fits_the_failure_is_tried_first() -> None:
    assert mitigations_of(CRASHED) == ((LOADS,), (FIRST_CALLS,), (LOADS, FIRST_CALLS))
    called = replace(CRASHED, result=replace(CRASHED.result, phase="call", call=1))
    assert mitigations_of(called) == ((FIRST_CALLS,), (LOADS,), (LOADS, FIRST_CALLS))
    assert mitigations_of(served(served_otherwise={"calls": 40, "different": 2}))[0] == (LOADS,)


@pytest.mark.parametrize("outcome", [Outcome.STARVED, Outcome.PROTOCOL_ERROR, Outcome.NOT_RUN, Outcome.CRASH])
def test_only_what_has_completed_comes_through(outcome: Outcome) -> None:
    assert served().comes_through
    assert not served(outcome).comes_through
    assert not served(served_otherwise={"calls": 40, "different": 2}).comes_through


def test_its_own_failure_is_told_before_that_of_a_neighbour() -> None:
    held = served(scenario="concurrent", mitigation=("serialized loading",), beside="encoder")
    found = judged(held, replace(CRASHED, mitigation=("serialized loading",)))
    assert found.reason == "same file N times: crash in load signal SIGABRT in 2 of 5 rounds"


def test_who_fails_stands_in_a_cause_before_whom_it_holds_back() -> None:
    held = replace(judged(served(mitigation=("serialized loading",), beside="ranker")), model="bystander")
    (cause,) = causes_of(
        [held, judged(replace(CRASHED, mitigation=("serialized loading",), evidence="probes/0c94cbef"))]
    )
    assert cause.models == ("ranker", "bystander")
    assert dict(cause.evidence)["what"] == "same file N times: crash in load signal SIGABRT in 2 of 5 rounds"
    assert dict(cause.evidence)["evidence"] == "probes/0c94cbef"


def test_answers_that_change_under_load_fail() -> None:
    found = judged(served(scenario="while_serving", served_otherwise={"calls": 40, "first": 3, "different": 2}))
    assert found.outcome is Migrated.FAILS_SERVED
    assert "2 of 40 answers under load" in found.reason


def test_loader_without_a_number_of_runners_is_no_failure_and_no_step() -> None:
    way = served(Outcome.LOAD_ERROR, "Unsupported: one runner for each package", scenario="shared", runners=4)
    tried = replace(PACKAGED, served=(way,))
    assert failure_when_served(tried) is None
    assert list(serving_steps(tried)) == []
    assert failure_when_served(replace(PACKAGED, served=(replace(way, runners=1),))) is not None


def test_busy_machine_leaves_it_undecided() -> None:
    tried: Tried = replace(PACKAGED, served=(served(Outcome.STARVED),))
    assert unclear_when_served(tried) == "same file N times: starved"
    assert judge(tried).outcome is Migrated.UNDECIDED


def test_package_that_differs_or_fails_in_cpp_alone_is_not_packageable() -> None:
    refused = answers(load=result(Outcome.LOAD_ERROR, "RuntimeError: no libtorch.so", phase="load"))
    found = judge(replace(PACKAGED, in_cpp=refused))
    assert (found.outcome, found.kind) == (Migrated.NOT_PACKAGEABLE, "in C++")
    assert found.reason == "in C++ the package does not load: RuntimeError: no libtorch.so"


def measured(low: float, ratio: float, high: float) -> LatencyMeasurement:
    estimate = RatioEstimate(ratio=ratio, low=low, high=high, pairs=4, detectable=1.1)
    calls = {"p50": Quantity(old=1e-3, new=ratio * 1e-3), "load": Quantity(old=2e-3, new=1e-3)}
    return LatencyMeasurement(
        model="ranker", samples=(), steady=estimate, confirmation=estimate, quantities=calls, fresh_quantities=calls
    )


def test_slower_package_is_told_with_both_times_and_a_faster_one_is_ready() -> None:
    slow = judge(replace(PACKAGED, timed=measured(1.2, 1.3, 1.4), slower_by=0.05))
    assert slow.outcome is Migrated.SLOWER
    assert "+30.0 % [+20.0, +40.0]" in slow.reason and "1 ms -> 1.3 ms" in slow.reason
    assert judge(replace(PACKAGED, timed=measured(0.5, 0.6, 0.7), slower_by=0.05)).outcome is Migrated.READY
    assert judge(replace(PACKAGED, timed=measured(0.9, 1.3, 1.9), slower_by=0.05)).outcome is Migrated.READY


def test_costs_hold_the_steady_call_with_its_interval_and_what_has_none_without() -> None:
    steady, load = costs_of(measured(0.5, 0.6, 0.7))
    assert (steady.quantity, steady.torchscript, steady.low, steady.high) == ("steady", 1e-3, 0.5, 0.7)
    assert (load.quantity, load.package, load.ratio) == ("load", 1e-3, None)
    assert costs_of(None) == ()


def test_price_is_that_of_a_warm_call_and_of_several_those_are_named_that_certainly_differ() -> None:
    cheap, dear, like = priced("a", 0.88), priced("b", 1.3), priced("c", 1.01)
    assert price_words([cheap]) == "a warm call takes -12.0 % [-17.0, -7.0] beside TorchScript"
    both = "a warm call takes beside TorchScript: b +30.0 % [+25.0, +35.0], a -12.0 % [-17.0, -7.0]"
    assert price_words([dear, cheap]) == both
    assert price_words([dear, like, cheap]) == f"{both}; of 1 other no difference is certain"
    assert price_words([dear, cheap, priced("d")]) == f"{both} (2 of 3 were timed)"
    assert price_words([replace(cheap, outcome=Migrated.SLOWER)]) == ""  # its reason says it


def test_of_several_prices_that_may_be_noise_none_is_told() -> None:
    told = "a warm call of none of 2 certainly differs from that of TorchScript"
    assert price_words([priced("a", 0.835, half=0.3), priced("b", 1.02)]) == told


def test_without_times_there_is_no_price_and_without_an_interval_none_is_told() -> None:
    assert price_words([priced(), blocked()]) == ""
    assert price_words([priced(ratio=1.2, half=math.inf)]) == "a warm call takes +20.0 % beside TorchScript"


def test_a_cause_tells_the_price_of_its_fix() -> None:
    (cause,) = causes_of([priced("a", 1.01), priced("b", 0.9)])
    assert dict(cause.evidence)["price"].startswith("a warm call takes beside TorchScript: b -10.0 %")
