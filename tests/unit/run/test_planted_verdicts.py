"""Planted defects: which of them a probe decides, which the benchmark."""

from typing import Any

import pytest

from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.probe import Failure
from harness.probing.facts import OldAnswers, Export, Decided
from harness.run.planted_defects import judge_timed_planted_defects, probe_planted_defects, timed_names
from tests.unit.builders.stages import (
    Runner,
    artifact,
    planted_defect,
    declared,
    effects,
    known,
    measured,
    planned,
    probed,
    result,
)

HEALTHY = declared("healthy", tags=("planted",))
CRASHING = planted_defect("crashing", expect="crash")
SLOW = planted_defect("slow", twin="timed twin", expect="latency", scenario="latency")
TIMED_TWIN = declared("timed twin", tags=("planted",))


def plan(**changes: Any) -> Plan:
    return planned(planted_defects=(HEALTHY, CRASHING, SLOW, TIMED_TWIN), **changes)


def facts(**changes: Any) -> Decided:
    exports = {
        item.name: Export(declaration=item, outcome=Outcome.COMPLETED, artifact=artifact(item.name))
        for item in plan().planted_defects
    }
    baselines = {"healthy": OldAnswers(results=(result("healthy"),))}
    return known(plan(), **{"exports": exports, "baselines": baselines, **changes})


def crashes(name: str) -> Runner:
    def outcome(model: str) -> Outcome:
        return Outcome.CRASH if model == name else Outcome.HANG

    return Runner(
        lambda request: probed(result(request.runs[0].artifact.model, outcome(request.runs[0].artifact.model)))
    )


def test_slowdowns_and_their_twins_are_left_to_the_benchmark() -> None:
    assert timed_names(facts()) == {"slow", "timed twin"}


def test_defect_is_caught_by_the_kind_it_was_planted_for() -> None:
    runner = crashes("crashing")
    found = {item.name: item for item in probe_planted_defects(facts(), effects(runner))}
    assert sorted(found) == ["crashing", "healthy"]
    assert found["crashing"].caught
    assert (found["healthy"].caught, found["healthy"].reported) == (False, ("hang",))


def test_defect_that_comes_out_as_another_kind_is_missed() -> None:
    found = {item.name: item for item in probe_planted_defects(facts(), effects(crashes("nobody")))}
    assert (found["crashing"].caught, found["crashing"].reported) == (False, ("hang",))


def test_planted_defect_that_could_not_be_exported_is_missed_and_says_why() -> None:
    failure = Failure(type="RuntimeError", message="cannot script it", phase="convert")
    broken = Export(declaration=CRASHING, outcome=Outcome.EXPORT_ERROR, failure=failure)
    known_facts = facts()
    found = probe_planted_defects(
        facts(exports={**known_facts.exports, "crashing": broken}), effects(crashes("crashing"))
    )
    (missed,) = [item for item in found if item.name == "crashing"]
    assert not missed.caught
    assert "not exported: cannot script it" in missed.note


def test_planted_defect_whose_twin_has_no_golden_is_missed() -> None:
    found = probe_planted_defects(facts(baselines={}), effects(crashes("crashing")))
    assert [item.caught for item in found] == [False, False]


def test_switches_of_a_planted_hold_for_its_twin_too() -> None:
    fused = planted_defect("fused", switches={"cpu_fusion": True})
    exports = {
        item.name: Export(declaration=item, outcome=Outcome.COMPLETED, artifact=artifact(item.name))
        for item in (HEALTHY, fused)
    }
    runner = crashes("fused")
    probe_planted_defects(
        known(planned(planted_defects=(HEALTHY, fused)), exports=exports, baselines=facts().baselines), effects(runner)
    )
    assert [dict(item.profile.switches) for item in runner.asked] == [{"cpu_fusion": True}] * 2


@pytest.mark.parametrize(("slow", "twin"), [((1.5, 1.6), (0.9, 1.1)), ((0.9, 1.1), (1.5, 1.6)), ((0.99, 1.01),) * 2])
def test_benchmark_decides_slowdown_and_twin(slow: tuple[float, float], twin: tuple[float, float]) -> None:
    latency = {"slow": measured(*slow, "slow"), "timed twin": measured(*twin, "timed twin"), "m": measured(1.5, 1.6)}
    found = {item.name: item.caught for item in judge_timed_planted_defects(facts(latency=latency))}
    assert found == {"slow": slow[0] > 1.4, "timed twin": twin[0] < 1.4}


def test_no_benchmark_gives_no_timed_planted_defects() -> None:
    assert judge_timed_planted_defects(facts(latency={})) == ()


def test_timed_planted_defect_that_was_not_timed_in_a_run_with_a_benchmark_is_missed() -> None:
    found = {item.name: item for item in judge_timed_planted_defects(facts(latency={"m": measured(0.99, 1.01)}))}
    assert {name: (item.caught, item.expected, item.note) for name, item in found.items()} == {
        "slow": (False, "latency", "was not timed"),
        "timed twin": (False, "", "was not timed"),
    }
