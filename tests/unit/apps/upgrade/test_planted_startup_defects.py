"""Planted defects of initialization: which are planted, in what process, and what counts as caught."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.core.comparison import OutputComparison
from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ProbeRequest, ProbeResult, model_of
from harness.core.verdict import PlantedDefectResult
from harness.core.errors import InternalError
from harness.probing.facts import OldAnswers, Effects, Export, Decided, Started, WithWorker
from harness.apps.upgrade import planted_startup_defects
from harness.apps.upgrade.planted_defects import probe_planted_defects
from harness.apps.upgrade.planted_startup_defects import beside_init_planted_defects, probe_init_planted_defects
from tests.unit.builders.stages import (
    Runner,
    artifact,
    planted_defect,
    declared,
    effects,
    known,
    planned,
    probed,
    result,
)

HEALTHY = declared("healthy", tags=("planted",))
STUCK = planted_defect("stuck", expect="hang", scenario="small_pools", deadline_s=15.0)
RACING = planted_defect("racing", expect="race", scenario="shared", switches={"cpu_fusion": True})
ALONE = planted_defect("wrong", expect="values")
COMPLETED, HANG = Outcome.COMPLETED, Outcome.HANG


def facts(**changes: Any) -> Decided:
    planted_defects = (HEALTHY, STUCK, RACING, ALONE)
    exports = {
        item.name: Export(declaration=item, outcome=COMPLETED, artifact=artifact(item.name)) for item in planted_defects
    }
    plan = planned(planted_defects=planted_defects, scenarios=changes.pop("scenarios", ("alone", "concurrent")))
    baselines = {"healthy": OldAnswers(results=(result("healthy"),))}
    return known(plan, **{"worker": "libtorch", "exports": exports, "baselines": baselines, **changes})


def proof(kind: HangKind) -> HangProof:
    return HangProof(kind=kind, silent_s=3.0, window_s=3.0)


def answering(proven: HangProof | None = proof(HangKind.BLOCKED), **outcomes: Outcome) -> Runner:
    """A runner whose C++ worker blocks where that is planted, and completes everything else."""
    ends = {"stuck": HANG, **outcomes}

    def answer(request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        models = [
            result(name, ends.get(model_of(name), COMPLETED), phase="call", input_set="example", call=0)
            for name in names
        ]
        hangs = any(item.outcome is HANG for item in models)
        return probed(*models, outcome=HANG if hangs else COMPLETED, evidence=Evidence(proof=proven) if hangs else None)

    return Runner(answer)


@pytest.fixture(autouse=True)
def differing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the models that answer otherwise than their twin's golden; no probe here leaves answers."""
    names = {"racing"}

    def compared(
        name: str, scenario: str, answers: object, as_alone: object, judged: Decided, **_: object
    ) -> OutputComparison:
        del answers, as_alone
        assert judged.baselines[name] is judged.baselines["healthy"]
        missing = (("example", 3),) if name in names else ()
        return OutputComparison(model=name, scenario=scenario, missing_calls=missing)

    monkeypatch.setattr(planted_startup_defects, "worst_comparison", compared)
    return names


def found(runner: Runner, known_facts: Decided | None = None) -> Mapping[str, PlantedDefectResult]:
    return {item.name: item for item in probe_init_planted_defects(known_facts or facts(), effects(runner))}


def test_deadlock_race_and_both_twins_are_caught() -> None:
    results = found(answering())
    assert {name: (item.caught, item.expected) for name, item in results.items()} == {
        "stuck": (True, "hang"),
        "healthy beside stuck": (True, ""),
        "racing": (True, "race"),
        "healthy beside racing": (True, ""),
    }


def test_defect_and_twin_share_a_process_and_the_twin_is_ready_before_the_pool_is_blocked() -> None:
    runner = answering()
    found(runner)
    (stuck,) = [item for item in runner.asked if item.script is not None and item.script.calls_through == "inter_op"]
    assert stuck.script is not None
    met = ("barrier", "the twin is ready")
    assert stuck.script.threads == (
        (("load", "healthy"), ("calls", "healthy"), met),
        (met, ("load", "stuck"), ("calls", "stuck")),
    )
    assert stuck.script.barriers == {"the twin is ready": 2}
    assert (stuck.side, stuck.runtime, stuck.deadline.call_s) == ("new", "libtorch", 15.0)
    assert (stuck.profile.intra_op_threads, stuck.profile.inter_op_threads) == (1, 1)


def test_four_threads_share_the_racing_module_however_many_the_run_has() -> None:
    runner, known_facts = answering(), facts()
    settings = replace(known_facts.plan.settings, init_threads=2)
    found(runner, replace(known_facts, plan=replace(known_facts.plan, settings=settings), worker="python"))
    (asked,) = runner.asked
    assert asked.runtime == "python"
    assert [run.artifact.model for run in asked.runs if model_of(run.artifact.model) == "racing"] == [
        "racing", "racing#1", "racing#2", "racing#3",
    ]  # fmt: skip
    assert dict(asked.profile.switches) == {"cpu_fusion": True}


def test_without_the_cpp_worker_its_planted_defects_are_left_out() -> None:
    assert set(found(answering(), facts(worker="python"))) == {"racing", "healthy beside racing"}


def test_nothing_is_planted_where_nothing_is_initialized() -> None:
    runner = answering()
    assert found(runner, facts(scenarios=("alone", "latency"))) == {}
    assert runner.asked == []


def test_rerun_of_a_cell_plants_nothing() -> None:
    runner = answering()
    assert found(runner, known(planned(scenarios=("alone", "concurrent")), worker="libtorch")) == {}
    assert runner.asked == []


@pytest.mark.parametrize(
    ("proven", "words"),
    [(proof(HangKind.OVERDUE), "past its deadline"), (proof(HangKind.BUSY), "busy"), (None, "without a proof")],
)
def test_hang_that_is_not_proven_to_be_blocked_is_missed(proven: HangProof | None, words: str) -> None:
    missed = found(answering(proven))["stuck"]
    assert (missed.caught, missed.reported) == (False, ("hang",))
    assert words in missed.note


@pytest.mark.parametrize("outcome", [COMPLETED, Outcome.CRASH, Outcome.NOT_RUN])
def test_deadlock_that_comes_out_otherwise_is_missed(outcome: Outcome) -> None:
    results = found(answering(stuck=outcome))
    assert not results["stuck"].caught
    assert results["healthy beside stuck"].caught


def test_race_that_nobody_sees_is_missed(differing: set[str]) -> None:
    differing.clear()
    results = found(answering())
    assert (results["racing"].caught, results["racing"].note) == (False, "came out PASS")


def test_twin_that_does_not_come_out_clean_is_a_false_alarm(differing: set[str]) -> None:
    differing.add("healthy")
    results = found(answering())
    assert {name for name, item in results.items() if not item.caught} == {
        "healthy beside stuck",
        "healthy beside racing",
    }


def test_twin_that_no_probe_reached_is_not_clean() -> None:
    results = found(answering(stuck=COMPLETED, healthy=Outcome.NOT_RUN))
    assert not results["healthy beside stuck"].caught


def test_planted_defect_that_was_not_exported_is_missed_with_its_twin_and_says_why() -> None:
    failure = Failure(type="RuntimeError", message="cannot script it", phase="convert")
    broken = Export(declaration=STUCK, outcome=Outcome.EXPORT_ERROR, failure=failure)
    results = found(answering(), facts(exports={**facts().exports, "stuck": broken}))
    assert {name for name, item in results.items() if not item.caught} == {"stuck", "healthy beside stuck"}
    assert "not exported: cannot script it" in results["stuck"].note


def test_twin_without_a_golden_leaves_nothing_caught() -> None:
    runner = answering()
    results = found(runner, facts(baselines={}))
    assert len(results) == 4 and not any(item.caught for item in results.values())
    assert runner.asked == []


def test_they_are_not_probed_alone_and_their_switches_do_not_bind_the_twin_there() -> None:
    runner = answering()
    done = probe_planted_defects(facts(), effects(runner))
    assert sorted(item.name for item in done) == ["healthy", "wrong"]
    assert [dict(item.profile.switches) for item in runner.asked] == [{}, {}]


def test_another_stage_goes_on_beside_them_and_both_are_known_afterwards() -> None:
    met = threading.Barrier(2, timeout=10)
    stuck = answering()

    def meets(request: ProbeRequest) -> ProbeResult:
        if request.profile.inter_op_threads == 1 and request.script is not None and "stuck" in str(request.script):
            met.wait()
        return stuck(request)

    def initialize(_: WithWorker, __: Effects) -> Started:
        met.wait()
        return replace(facts(), worker_notes=("initialized",))

    started, results = beside_init_planted_defects(initialize, facts(), effects(Runner(meets)))
    assert started.worker_notes == ("initialized",)
    assert len(results) == 4 and all(item.caught for item in results)


def test_failure_of_the_stage_beside_them_ends_both() -> None:
    def fails(_: WithWorker, __: Effects) -> Started:
        raise InternalError("planted")

    with pytest.raises(InternalError, match="planted"):
        beside_init_planted_defects(fails, facts(), effects(answering()))
