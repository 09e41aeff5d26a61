"""Facts become verdicts, rows and a decision."""

import datetime
from harness.core.measurement import CommonSlowdown
from tests.unit.builders.verdicts import ratio
from tests.unit.builders.stages import continued
from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.cells import judge_cells
from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.core.environment import Fingerprint
from harness.core.findings import SEVERITY
from harness.core.hang import Evidence
from harness.core.models import UnjudgedFile
from harness.core.outcome import Decision, Outcome, Status
from harness.core.plan import PolicyRule, PolicySettings
from harness.core.probe import Failure, Span
from harness.core.verdict import PlantedDefectResult, CellVerdict, Mitigation, Waiver
from harness.probing.facts import OldAnswers, Export, Decided, Failing, Initialized, ScenarioResult
from harness.apps.upgrade.decide import decide_run
from harness.serving.scenarios import INITIALIZATIONS
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.stages import (
    FINGERPRINTS,
    TODAY,
    all_ran,
    artifact,
    in_scenario,
    planted_defect,
    declared,
    effects,
    failing,
    group_run,
    initialized,
    known,
    measured,
    planned,
    probed,
    result,
)

CAUGHT = (PlantedDefectResult(name="bird", expected="values", reported=("values",), caught=True),)
ALONE = "m/alone"


def compared(max_abs: float = 0.0, scenario: str = "alone") -> OutputComparison:
    tensor = TensorMetrics(
        path="output",
        dtype="float32",
        elements=4,
        bit_equal=max_abs == 0.0,
        max_abs=max_abs,
        scale=1.0,
        tolerance_abs=1e-5,
    )
    return OutputComparison(
        model="m", scenario=scenario, calls=(CallComparison(input_set="example", call=0, tensors=(tensor,)),)
    )


def equal(**changes: Any) -> Decided:
    """Return facts of a run whose only model answers the same."""
    plan = changes.pop("plan", planned())
    return known(plan, **{"comparisons": {("m", "alone"): compared()}, "group_runs": all_ran(plan), **changes})


def cells(facts: Decided, **more: Any) -> tuple[CellVerdict, ...]:
    return judge_cells(facts, effects(**more)).verdicts["m"]


def group(
    outcome: Outcome = Outcome.COMPLETED, old: Outcome | None = None, scenario: str = "concurrent", **new: Any
) -> dict[tuple[str, str], Initialized]:
    """Return the facts of one initialization."""
    return {("m", scenario): initialized(outcome, old, **{"exit_detail": "signal SIGSEGV", **new})}


# cells


def test_model_that_answers_the_same_passes_alone() -> None:
    (cell,) = cells(equal())
    assert (cell.cell, cell.model, cell.scenario, cell.status) == (ALONE, "m", "alone", Status.PASS)


def test_settings_that_differ_between_the_sides_are_reported_with_wrong_values_and_only_there() -> None:
    wrong = equal(comparisons={("m", "alone"): compared(0.5)})
    probe = wrong.alone["m"]
    engines = {side: {"matmul_precision": value} for side, value in (("old", "highest"), ("new", "high"))}

    def told(facts: Decided) -> list[str]:
        facts = replace(
            facts,
            alone={"m": replace(probe, data={"numerics": engines["new"]})},
            baselines={"m": replace(facts.baselines["m"], numerics=engines["old"])},
        )
        return [label for finding in cells(facts)[0].findings for label, _ in finding.story]

    assert told(wrong) == ["differs"]
    assert told(equal()) == []


def test_every_scenario_that_was_probed_has_a_cell() -> None:
    found = cells(equal(initialized=group(), latency={"m": measured(0.99, 1.01)}))
    assert [(cell.scenario, cell.status) for cell in found] == [
        ("alone", Status.PASS),
        ("concurrent", Status.PASS),
        ("latency", Status.PASS),
    ]
    assert [cell.cell for cell in found] == ["m/alone", "m/concurrent", "m/latency"]


def test_model_that_crashes_fails_with_signal_release_and_evidence() -> None:
    probe = probed(result(outcome=Outcome.CRASH, phase="load"), exit_detail="signal SIGSEGV", directory="/run/probes/7")
    (cell,) = cells(equal(alone={"m": probe}, comparisons={}))
    (finding,) = cell.findings
    assert (cell.status, finding.kind, finding.evidence) == (Status.FAIL, "crash", "probes/7")
    assert "signal SIGSEGV" in finding.message
    assert "torch 2.6.0" in finding.message


def test_model_that_crashed_before_too_is_no_regression() -> None:
    crashed = result(outcome=Outcome.CRASH)
    facts = equal(alone={"m": probed(crashed)}, baselines={"m": OldAnswers(results=(crashed, crashed))})
    (cell,) = cells(facts)
    assert cell.status is Status.SAME_FAIL
    assert "torch 2.1.2" in cell.note
    assert cell.note.endswith("says nothing of concurrent init, load while serving: not asked of what fails alone")


def test_model_without_a_comparison_is_not_decided() -> None:
    (cell,) = cells(equal(comparisons={}))
    assert cell.status is Status.INCONCLUSIVE


def test_group_that_crashes_fails_the_concurrent_cell_only() -> None:
    alone, concurrent = cells(equal(initialized=group(Outcome.CRASH)))
    assert (alone.status, concurrent.status) == (Status.PASS, Status.FAIL)
    assert "signal SIGSEGV" in concurrent.findings[0].message
    assert concurrent.findings[0].evidence == "probes/g"


def test_group_that_crashed_before_too_is_no_regression() -> None:
    assert cells(equal(initialized=group(Outcome.CRASH, old=Outcome.CRASH)))[1].status is Status.SAME_FAIL


def test_outputs_beside_other_models_are_judged_by_their_own_comparison() -> None:
    comparisons = {("m", "alone"): compared(), ("m", "concurrent"): compared(0.5, "concurrent")}
    alone, concurrent = cells(equal(initialized=group(), comparisons=comparisons))
    assert (alone.status, concurrent.status) == (Status.PASS, Status.FAIL)
    (finding,) = concurrent.findings
    assert (finding.kind, finding.evidence) == ("race", "probes/g")
    assert finding.message.startswith("answers otherwise than alone")


def test_race_that_the_old_release_has_too_is_no_regression() -> None:
    comparisons = {("m", "alone"): compared(), ("m", "concurrent"): compared(0.5, "concurrent")}
    both = {key: replace(item, old_differs=True) for key, item in group(old=Outcome.COMPLETED).items()}
    cell = cells(equal(initialized=both, comparisons=comparisons))[1]
    assert (cell.status, [item.kind for item in cell.findings]) == (Status.SAME_FAIL, ["race"])


def test_cells_of_initializations_come_in_the_order_of_the_plan_and_in_its_words() -> None:
    plan = planned(scenarios=("alone", "shared", "while_serving", "latency"))
    hung = (failing(Outcome.HANG, 2),)
    serving = group(Outcome.HANG, scenario="while_serving", rounds=3, failed_rounds=2, failures=hung)
    found = cells(equal(plan=plan, initialized={**serving, **group(scenario="shared")}))
    assert [(cell.scenario, cell.status) for cell in found] == [
        ("alone", Status.PASS),
        ("shared", Status.PASS),
        ("while_serving", Status.FAIL),
    ]
    assert found[2].cell == "m/while_serving"
    assert "in load while serving" in found[2].findings[0].message
    assert found[2].note == "in 2 of 3 rounds"


@pytest.mark.parametrize(
    ("new", "old", "status"), [(0.0, 0.0, Status.PASS), (0.5, 0.0, Status.FAIL), (0.5, 0.5, Status.SAME_FAIL)]
)
def test_replays_of_both_releases_are_judged(new: float, old: float, status: Status) -> None:
    def numbers(difference: float) -> dict[str, Any]:
        return {"mode": "global", "max_abs_difference": difference, "scale": 1.0}

    key = ("m", "cuda_graphs")
    (before,) = group(old=Outcome.COMPLETED, scenario="cuda_graphs", graph=numbers(new)).values()
    assert before.old is not None
    both = {key: replace(before, old=replace(before.old, graph=numbers(old)))}
    plan = planned(scenarios=("alone", "cuda_graphs"))
    comparisons = {("m", "alone"): compared(), key: compared(scenario="cuda_graphs")}
    cell = cells(equal(plan=plan, initialized=both, comparisons=comparisons))[1]
    assert (cell.scenario, cell.status) == ("cuda_graphs", status)


# every way to fail against the same in the old release


def ways(*found: Failing, rounds: int = 10, **changes: Any) -> ScenarioResult:
    """Return how a model came through that failed in these ways, each in rounds of its own."""
    judged = sum(item.rounds for item in found if item.result.outcome not in (Outcome.STARVED, Outcome.PROTOCOL_ERROR))
    return replace(
        in_scenario(), result=found[0].result, failures=found, rounds=rounds, failed_rounds=judged, **changes
    )


def judged(new: ScenarioResult, old: ScenarioResult | None, **changes: Any) -> CellVerdict:
    return cells(equal(initialized={("m", "concurrent"): Initialized(new=new, old=old)}, **changes))[1]


OLD_HANG = failing(Outcome.HANG, 5, phase="call", of=("example", 1))
NEW_HANG = failing(Outcome.HANG, 5, phase="call", of=("other values", 0))
CRASH = failing(Outcome.CRASH, 1, phase="load", directory="/run/probes/crash", exit_detail="signal SIGBUS")


def test_new_way_to_fail_is_not_excused_by_an_old_one() -> None:
    assert judged(ways(NEW_HANG), ways(OLD_HANG)).status is Status.SAME_FAIL
    found = judged(ways(NEW_HANG, CRASH), ways(OLD_HANG))
    (finding,) = found.findings
    assert (found.status, finding.kind, finding.evidence) == (Status.FAIL, "crash", "probes/crash")
    assert "signal SIGBUS" in finding.message
    assert found.note.startswith("in 1 of 10 rounds")


def test_what_only_the_old_release_fails_in_is_no_failure() -> None:
    assert judged(in_scenario(), ways(OLD_HANG, CRASH)).status is Status.PASS


def test_each_way_to_fail_is_held_against_the_same_way_in_the_old_release() -> None:
    new, old = ways(NEW_HANG, CRASH), ways(failing(Outcome.RUNTIME_ERROR, 1), CRASH, OLD_HANG)
    found = judged(new, old)
    assert (found.status, found.findings[0].kind) == (Status.SAME_FAIL, "hang")
    assert found.note == "in 5 of 10 rounds; fails before the upgrade too (5 of 10 rounds)"


def test_way_to_fail_in_another_phase_is_another_way() -> None:
    found = judged(ways(failing(Outcome.HANG, 5, phase="load")), ways(OLD_HANG))
    assert (found.status, found.note) == (
        Status.FAIL,
        "in 5 of 10 rounds; fails otherwise in the old release (5 of 10 rounds)",
    )


def test_way_that_is_clearly_more_frequent_is_a_regression_though_the_sum_of_all_is_not() -> None:
    new = ways(failing(Outcome.CRASH, 1, phase="load"), failing(Outcome.HANG, 9, phase="call"))
    old = ways(failing(Outcome.CRASH, 9, phase="load"), failing(Outcome.HANG, 1, phase="call"))
    assert (new.failed_rounds, old.failed_rounds) == (10, 10)
    found = judged(new, old)
    assert (found.status, found.findings[0].kind) == (Status.FAIL, "hang")
    assert found.note == "in 9 of 10 rounds; fails less often in the old release (1 of 10 rounds)"
    assert (found.failed_rounds, found.rounds) == (10, new.rounds)
    assert judged(old, old).status is Status.SAME_FAIL


@pytest.mark.parametrize("unclear", [Outcome.STARVED, Outcome.PROTOCOL_ERROR])
def test_old_release_of_which_nothing_was_learnt_is_unknown(unclear: Outcome) -> None:
    nothing = ways(failing(unclear, 5), rounds=0)
    found = judged(ways(CRASH, rounds=5), nothing)
    assert (found.status, found.note) == (Status.FAIL, "in 1 of 5 rounds")
    assert judged(ways(CRASH, rounds=5), None) == found
    never_reached = replace(in_scenario("m", Outcome.NOT_RUN), rounds=0)
    assert judged(ways(CRASH, rounds=5), never_reached) == found


@pytest.mark.parametrize("unclear", [Outcome.STARVED, Outcome.PROTOCOL_ERROR])
def test_failure_is_not_hidden_by_rounds_that_say_nothing_and_they_are_not_hidden_by_an_old_failure(
    unclear: Outcome,
) -> None:
    nothing = failing(unclear, 5)
    assert judged(ways(CRASH, nothing), ways(CRASH)).status is Status.INCONCLUSIVE
    assert judged(ways(CRASH, nothing), in_scenario()).status is Status.FAIL
    assert judged(ways(nothing), ways(nothing)).status is Status.INCONCLUSIVE


def test_evidence_of_the_way_that_is_reported_stands_beside_it() -> None:
    seen = Evidence(remarks=("gdb is not installed",))
    new = ways(NEW_HANG, replace(CRASH, evidence=seen), evidence=Evidence(remarks=("of the hang",)))
    story = judged(new, ways(OLD_HANG)).findings[0].story
    assert ("seen", "gdb is not installed") in story
    assert ("seen", "of the hang") not in story


@pytest.mark.parametrize(("before", "status"), [(None, Status.FAIL), ({"calls": 1, "first": 4}, Status.SAME_FAIL)])
def test_answers_while_serving_of_both_releases_are_judged(before: dict[str, int] | None, status: Status) -> None:
    new = in_scenario(served_otherwise={"calls": 2, "first": 3})
    found = judged(new, in_scenario(served_otherwise=before))
    assert (found.status, [item.kind for item in found.findings]) == (status, ["race"])
    assert judged(in_scenario(), in_scenario(served_otherwise={"calls": 2, "first": 3})).status is Status.PASS


@pytest.mark.parametrize(("threads", "status"), [(1, Status.FAIL), (2, Status.PASS)])
def test_random_numbers_are_shared_only_among_threads(threads: int, status: Status) -> None:
    drawing = probed(result(), data={"draws:m": {"set": "example", "call": 0}})
    comparisons = {("m", "alone"): compared(), ("m", "concurrent"): compared(0.5, "concurrent")}
    found = judged(in_scenario(threads=threads), None, alone={"m": drawing}, comparisons=comparisons)
    assert found.status is status
    assert judged(in_scenario(threads=threads), None, comparisons=comparisons).status is Status.FAIL


def test_what_a_hung_process_did_is_reported_with_the_finding() -> None:
    seen = Evidence(remarks=("gdb is not installed",))
    (_, cell) = cells(equal(initialized=group(Outcome.HANG, evidence=seen)))
    assert ("seen", "gdb is not installed") in cell.findings[0].story
    alone = probed(result(outcome=Outcome.HANG), evidence=seen)
    (cell,) = cells(equal(alone={"m": alone}, comparisons={}))
    assert ("seen", "gdb is not installed") in cell.findings[0].story


def test_slow_model_fails_the_latency_cell_only() -> None:
    found = cells(equal(latency={"m": measured(1.2, 1.3)}))
    assert [cell.status for cell in found] == [Status.PASS, Status.FAIL]


# inputs that nobody gave


def guessed(**changes: Any) -> Decided:
    """Return facts of a model whose inputs were guessed."""
    made_up = artifact(
        inputs_note="guessed from the graph: forward(x=float32[2, 16])", inputs_dir="/run/probes/a/inputs"
    )
    export = Export(declaration=declared(), outcome=Outcome.COMPLETED, artifact=made_up)
    return equal(**{"exports": {"m": export}, **changes})


def test_latency_of_guessed_inputs_fails_no_run() -> None:
    slow = {"m": measured(1.5, 1.6)}
    alone, latency = cells(guessed(latency=slow))
    assert (alone.status, latency.status, latency.decides) == (Status.PASS, Status.FAIL, False)
    assert "guessed" in latency.note
    assert decided(with_planted_defects(guessed(latency=slow))) == (Decision.UPGRADE_OK, 0)
    assert decided(with_planted_defects(equal(latency=slow))) == (Decision.BLOCKED, 1)


def test_guess_that_both_releases_answer_with_nothing_is_not_green() -> None:
    empty, full = (Outputs(calls={("example", 0): ["list", items]}) for items in ([], [["int", 1]]))
    (silent,) = cells(guessed(baselines={"m": OldAnswers(results=(result(),), golden=empty)}))
    assert silent.status is Status.INCONCLUSIVE
    assert "no value was compared" in silent.findings[0].message
    (told,) = cells(guessed(baselines={"m": OldAnswers(results=(result(),), golden=full)}))
    assert told.status is Status.PASS
    assert [(finding.kind, finding.evidence) for finding in told.findings] == [("guessed_inputs", "probes/a/inputs")]


# coverage and exports


def uncovered(**changes: Any) -> Decided:
    export = Export(declaration=declared(), outcome=Outcome.COMPLETED, artifact=artifact(), uncovered=("aten::linear",))
    return equal(exports={"m": export}, **changes)


def test_model_that_does_not_cover_what_it_declares_is_not_green() -> None:
    (cell,) = cells(uncovered())
    assert (cell.status, [item.kind for item in cell.findings]) == (Status.INCONCLUSIVE, ["covers"])
    assert "aten::linear" in cell.findings[0].message


def test_missing_coverage_hides_no_failure() -> None:
    (cell,) = cells(uncovered(comparisons={("m", "alone"): compared(0.5)}))
    assert (cell.status, [item.kind for item in cell.findings]) == (Status.FAIL, ["values", "covers"])


def test_missing_coverage_makes_no_regression_of_an_old_failure() -> None:
    crashed = result(outcome=Outcome.CRASH)
    (cell,) = cells(uncovered(alone={"m": probed(crashed)}, baselines={"m": OldAnswers(results=(crashed,))}))
    assert (cell.status, [item.kind for item in cell.findings]) == (Status.SAME_FAIL, ["crash", "covers"])


def test_model_that_cannot_be_exported_is_inconclusive_and_has_one_cell() -> None:
    failure = Failure(type="RuntimeError", message="cannot script\nmore", phase="convert")
    where = probed(result(outcome=Outcome.EXPORT_ERROR), directory="/run/probes/9")
    export = Export(declaration=declared(), outcome=Outcome.EXPORT_ERROR, failure=failure, result=where)
    (cell,) = cells(equal(exports={"m": export}, alone={}, baselines={}))
    (finding,) = cell.findings
    assert (cell.cell, cell.status, finding.kind, finding.evidence) == (
        ALONE,
        Status.INCONCLUSIVE,
        "export_error",
        "probes/9",
    )
    assert finding.message == "could not be exported in torch 2.1.2: RuntimeError: cannot script"


def test_hang_of_the_exporter_has_no_failure_and_still_a_reason() -> None:
    export = Export(declaration=declared(), outcome=Outcome.HANG)
    (cell,) = cells(equal(exports={"m": export}, alone={}, baselines={}))
    assert cell.status is Status.INCONCLUSIVE
    assert cell.findings[0].message.endswith(": hang")


def test_model_that_the_release_cannot_express_is_unsupported_and_not_red() -> None:
    failure = Failure(type="Unsupported", message="needs torch 2.9 or later to export", phase="")
    export = Export(declaration=declared(), outcome=Outcome.UNSUPPORTED, failure=failure)
    (cell,) = cells(equal(exports={"m": export}, alone={}, baselines={}))
    assert (cell.status, cell.findings[0].message) == (Status.UNSUPPORTED, "needs torch 2.9 or later to export")


def test_golden_record_needs_no_old_environment() -> None:
    facts = equal(baselines={"m": OldAnswers()})
    (cell,) = cells(facts, sides=("new",))
    assert cell.status is Status.PASS


# waivers


def waiver(kind: str = "values", days: int = 0) -> Waiver:
    return Waiver(model="m", kind=kind, reason="known", owner="ann", expires=TODAY + datetime.timedelta(days=days))


@pytest.mark.parametrize(("days", "status"), [(0, Status.XFAIL), (-1, Status.FAIL)])
def test_waiver_counts_until_the_day_it_expires(days: int, status: Status) -> None:
    (cell,) = cells(equal(comparisons={("m", "alone"): compared(0.5)}), waivers=(waiver(days=days),))
    assert cell.status is status


def test_waiver_applies_to_every_cell_of_its_model() -> None:
    facts = equal(comparisons={("m", "alone"): compared(0.5)}, initialized=group(), latency={"m": measured(1.2, 1.3)})
    found = cells(facts, waivers=(waiver(), waiver("latency")))
    assert [cell.status for cell in found] == [Status.XFAIL, Status.PASS, Status.XFAIL]


# the decision


def decided(facts: Decided) -> tuple[Decision, int]:
    judgement = decide_run(continued(facts, judge_cells(facts, effects())), effects()).judgement
    return judgement.decision, judgement.exit_code


def with_planted_defects(facts: Decided, found: tuple[PlantedDefectResult, ...] = CAUGHT) -> Decided:
    return replace(facts, plan=replace(facts.plan, planted_defects=(planted_defect("bird"),)), planted_defects=found)


def test_healthy_run_is_upgrade_ok() -> None:
    assert decided(with_planted_defects(equal())) == (Decision.UPGRADE_OK, 0)


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (0.995, 1.005, Decision.CELL_OK),
        (1.02, 1.04, Decision.INCONCLUSIVE),  # the limit is 3 %
        (1.04, 1.05, Decision.BLOCKED),
        (None, None, Decision.INCONCLUSIVE),  # too few models, or rounds
    ],
)
def test_run_that_repeats_what_all_share_is_decided_by_that(
    low: float | None, high: float | None, decision: Decision
) -> None:
    facts = equal(latency={"m": measured(0.99, 1.01)})
    common = CommonSlowdown(ratio=ratio(low, high), models=("m",), call_s=1e-3) if low and high else None
    facts = replace(facts, plan=replace(facts.plan, repeats_common=True), common=common)
    assert decided(facts)[0] is decision


def test_undecided_latency_under_the_bound_is_shown_and_decides_nothing() -> None:
    assert decided(with_planted_defects(equal(latency={"m": measured(0.98, 1.2)}))) == (Decision.UPGRADE_OK, 0)
    assert decided(with_planted_defects(equal(latency={"m": measured(0.98, 1.3)}))) == (Decision.INCONCLUSIVE, 4)


def test_planted_defects_of_the_plan_must_have_been_probed() -> None:
    assert decided(with_planted_defects(equal(), ())) == (Decision.INCONCLUSIVE, 4)
    assert decided(equal()) == (Decision.CELL_OK, 0)  # a plan without planted defects repeats a cell


def test_planted_defect_that_the_benchmark_missed_counts_like_any_other() -> None:
    slow = planted_defect("slow", expect="latency", scenario="latency")
    facts = with_planted_defects(equal())
    facts = replace(
        facts, plan=replace(facts.plan, planted_defects=(*facts.plan.planted_defects, slow, declared("healthy")))
    )
    seen = {"slow": measured(1.5, 1.6, "slow"), "healthy": measured(0.99, 1.01, "healthy")}
    assert decided(replace(facts, latency=seen)) == (Decision.UPGRADE_OK, 0)
    missed = {**seen, "slow": measured(0.99, 1.01, "slow")}
    assert decided(replace(facts, latency=missed)) == (Decision.INCONCLUSIVE, 4)
    false_alarm = {**seen, "healthy": measured(1.5, 1.6, "healthy")}
    assert decided(replace(facts, latency=false_alarm)) == (Decision.INCONCLUSIVE, 4)


@pytest.mark.parametrize(("mitigates", "decision"), [(True, Decision.OK_WITH_MITIGATION), (False, Decision.BLOCKED)])
def test_failure_blocks_unless_a_mitigation_mitigates_it(mitigates: bool, decision: Decision) -> None:
    tried = Mitigation(cell=ALONE, model="m", name="fuser off", switches={"texpr_fuser": False}, mitigates=mitigates)
    facts = equal(comparisons={("m", "alone"): compared(0.5)}, mitigations={"m": (tried,)})
    assert decided(with_planted_defects(facts)) == (decision, 1)


def test_accepted_mitigation_of_the_policy_makes_the_exit_green() -> None:
    facts = with_planted_defects(equal())
    policy = replace(facts.plan.settings.policy, accepted_mitigations=("fuser off",))
    facts = replace(facts, plan=replace(facts.plan, settings=replace(facts.plan.settings, policy=policy)))
    assert decided(facts) == (Decision.OK_WITH_MITIGATION, 0)


def test_same_torch_on_both_sides_is_never_green() -> None:
    same = {**FINGERPRINTS, "old": FINGERPRINTS["new"]}
    assert decided(with_planted_defects(equal(fingerprints=same))) == (Decision.INCONCLUSIVE, 4)
    other = {**FINGERPRINTS, "old": Fingerprint(torch="2.6.0", git_revision="another")}
    assert decided(with_planted_defects(equal(fingerprints=other))) == (Decision.UPGRADE_OK, 0)


@pytest.mark.parametrize(
    ("wanted", "used", "green"), [("cuda", "cpu", False), ("cuda", "cuda", True), ("auto", "cpu", True)]
)
def test_cpu_in_place_of_the_gpu_that_was_asked_for_is_never_green(wanted: str, used: str, green: bool) -> None:
    plan = planned(settings={"device": wanted}, device=used)
    assert (decided(with_planted_defects(equal(plan=plan)))[0] is Decision.UPGRADE_OK) is green


@pytest.mark.parametrize(
    ("asked", "worker", "decision"),
    [
        (("alone", "inter_op"), "python", Decision.INCONCLUSIVE),
        (("alone", "small_pools"), "python", Decision.INCONCLUSIVE),
        (("alone", "inter_op"), "libtorch", Decision.UPGRADE_OK),
        (("alone", "concurrent", "while_serving"), "python", Decision.UPGRADE_OK),
    ],
)
def test_scenario_that_was_asked_for_and_not_done_is_never_green(
    asked: tuple[str, ...], worker: str, decision: Decision
) -> None:
    plan = planned(scenarios=asked)
    ran = tuple(run for run in all_ran(plan) if worker == "libtorch" or not INITIALIZATIONS[run.scenario].native_only)
    facts = with_planted_defects(equal(plan=plan, worker=worker, group_runs=ran))
    assert decided(facts)[0] is decision
    why = f"asked for and not done, for want of the C++ worker: {asked[1]}"
    assert (why in reason_of(facts)) is (decision is Decision.INCONCLUSIVE)


def reason_of(facts: Decided) -> str:
    judgement = decide_run(continued(facts, judge_cells(facts, effects())), effects()).judgement
    return judgement.reason


@pytest.mark.parametrize(("severity", "code"), [({}, 0), ({"unjudged_file": "inconclusive"}, 4)])
def test_a_file_without_a_verdict_does_what_the_policy_says(severity: dict[str, str], code: int) -> None:
    plan = planned()
    settings = replace(plan.settings, policy=PolicySettings(severity=severity))
    plan = replace(plan, settings=settings, unjudged=(UnjudgedFile(path="a.bin", what="state dict"),))
    facts = with_planted_defects(equal(plan=plan))
    assert decided(facts)[1] == code
    assert ("not judged: 1 of 2 files (a.bin)" in reason_of(facts)) is bool(severity)
    assert decided(replace(facts, plan=replace(facts.plan, planted_defects=())))[0] is not Decision.INCONCLUSIVE


def test_scenario_in_which_no_model_could_take_part_is_never_green() -> None:
    plan = planned("m", scenarios=("alone", "concurrent", "shared", "reinit", "latency"))
    ran = tuple(run for run in all_ran(plan) if run.scenario not in ("shared", "reinit"))
    facts = with_planted_defects(equal(plan=plan, group_runs=ran))
    assert decided(facts) == (Decision.INCONCLUSIVE, 4)
    assert "no model could take part in: shared, reinit" in reason_of(facts)
    assert decided(with_planted_defects(equal(plan=plan))) == (Decision.UPGRADE_OK, 0)


def test_scenario_in_which_some_took_part_is_not_empty() -> None:
    plan = planned("m", "n", scenarios=("alone", "shared"))
    comparisons = {(name, "alone"): compared() for name in ("m", "n")}
    only_one = (group_run([probed(result("n"))], scenario="shared", members=("n",)),)
    facts = with_planted_defects(equal(plan=plan, comparisons=comparisons, group_runs=only_one))
    assert decided(facts) == (Decision.UPGRADE_OK, 0)


def test_scenario_that_nobody_could_take_part_in_because_nobody_works_alone_is_reported_by_the_models() -> None:
    broken = probed(result("m", Outcome.LOAD_ERROR, phase="load"))
    facts = with_planted_defects(equal(alone={"m": broken}, comparisons={}, group_runs=()))
    assert decided(facts) == (Decision.BLOCKED, 1)
    assert "no model could take part" not in reason_of(facts)
    known_before = replace(facts, baselines={"m": OldAnswers(results=(result("m", Outcome.LOAD_ERROR, phase="load"),))})
    assert "no model could take part" not in reason_of(known_before)


def test_judgement_keeps_rows_reasons_and_planted_defects() -> None:
    facts = with_planted_defects(equal(comparisons={("m", "alone"): compared(0.5)}))
    judgement = decide_run(continued(facts, judge_cells(facts, effects())), effects()).judgement
    (row,) = judgement.rows
    assert (row.model, row.status, judgement.planted_defects) == ("m", Status.FAIL, CAUGHT)
    assert row.reason in judgement.reason
    assert row.reason == row.cells[0].findings[0].message


def test_race_in_the_rounds_that_it_completed_is_not_hidden_by_an_old_hang() -> None:
    both_hang = {"failures": (failing(Outcome.HANG),), "rounds": 2, "failed_rounds": 1, "answers": (("m", "/run/1"),)}
    item = Initialized(new=in_scenario("m", Outcome.HANG, **both_hang), old=in_scenario("m", Outcome.HANG, **both_hang))
    comparisons = {("m", "alone"): compared(), ("m", "concurrent"): compared(0.5, "concurrent")}
    (_, cell) = cells(equal(initialized={("m", "concurrent"): item}, comparisons=comparisons))
    assert (cell.status, [finding.kind for finding in cell.findings]) == (Status.FAIL, ["race"])


def test_old_release_that_completed_where_the_machine_let_it_is_fine_and_does_not_fail_otherwise() -> None:
    starved = {"failures": (failing(Outcome.STARVED),), "rounds": 1, "answers": (("m", "/run/1"),)}
    new = in_scenario("m", Outcome.CRASH, failures=(failing(Outcome.CRASH),), failed_rounds=1)
    item = Initialized(new=new, old=in_scenario("m", Outcome.STARVED, **starved))
    (_, cell) = cells(equal(initialized={("m", "concurrent"): item}))
    assert (cell.status, cell.note) == (Status.FAIL, "")


# the policy


def under_policy(facts: Decided, **settings: Any) -> Decided:
    policy = PolicySettings(**settings)
    changed = replace(facts.plan.settings, policy=policy, policy_file="policy.toml")
    return replace(facts, plan=replace(facts.plan, settings=changed))


def test_policy_of_a_run_changes_its_cells_and_they_say_so() -> None:
    off = equal(comparisons={("m", "alone"): compared(0.5)})
    (cell,) = cells(under_policy(off, severity={"values": "warn"}))
    assert (cell.status, cell.judged) == (Status.XFAIL, Status.FAIL)
    assert "severity.values of policy.toml" in cell.note
    (strict,) = cells(under_policy(equal(comparisons={("m", "alone"): compared(5e-6)}), limits={"error": 1e-6}))
    assert (strict.status, strict.judged) == (Status.FAIL, Status.PASS)


def test_rule_holds_for_the_models_that_it_matches() -> None:
    off = equal(comparisons={("m", "alone"): compared(0.005)})
    rules = (PolicyRule(models="m", limits={"error": 0.01}),)
    assert cells(under_policy(off, rules=rules))[0].status is Status.PASS
    assert cells(under_policy(off, rules=(replace(rules[0], models="other"),)))[0].status is Status.FAIL


def test_run_that_lacks_what_its_policy_asks_for_is_not_green() -> None:
    facts = with_planted_defects(equal())
    assert decided(facts) == (Decision.UPGRADE_OK, 0)
    for settings in ({"minimum_models": 2}, {"required_scenarios": ("latency",)}):
        assert decided(under_policy(facts, **settings)) == (Decision.INCONCLUSIVE, 4)
    assert decided(under_policy(facts, minimum_models=1, minimum_coverage=1.0)) == (Decision.UPGRADE_OK, 0)


def test_no_policy_hides_a_missed_planted_defect() -> None:
    facts = under_policy(equal(), severity=dict.fromkeys(SEVERITY, "info"))
    missed = (replace(CAUGHT[0], caught=False),)
    assert decided(replace(with_planted_defects(facts), planted_defects=missed)) == (Decision.INCONCLUSIVE, 4)


# time until ready


def started(new_s: float) -> Decided:
    """Return facts of a group of two, of which ``n`` alone loads slower than before."""

    def run(side: str, n_s: float) -> Any:
        spans = (
            Span(phase="load", begin_ns=0, end_ns=10**9, model="m"),
            Span(phase="load", begin_ns=10**9, end_ns=10**9 + round(n_s * 1e9), model="n"),
        )
        probe = probed(result("m"), result("n"), spans=spans, side=side)
        return group_run([probe], side=side, group="misc", members=("m", "n"))

    items = {(name, "concurrent"): initialized(old=Outcome.COMPLETED, name=name) for name in ("m", "n")}
    return equal(
        plan=planned("m", "n"),
        comparisons={(name, "alone"): compared() for name in ("m", "n")},
        initialized=items,
        group_runs=(run("new", new_s), run("old", 3.0)),
    )


def test_a_slow_start_is_reported_with_the_model_that_took_longer_and_still_passes() -> None:
    judged = judge_cells(started(9.0), effects())
    found = {(name, cell.scenario): cell for name, own in judged.verdicts.items() for cell in own}
    assert found["n", "concurrent"].kinds == ("initialization_time",)
    assert found["n", "concurrent"].status is Status.PASS
    assert found["m", "concurrent"].kinds == ()


def test_a_start_that_takes_as_long_as_before_is_not_reported() -> None:
    judged = judge_cells(started(3.1), effects())
    assert not [cell.kinds for own in judged.verdicts.values() for cell in own if cell.kinds]


def test_a_policy_gives_a_start_its_limit_and_its_weight() -> None:
    def judged(**policy: Any) -> dict[str, Status]:
        facts = started(9.0)
        settings = replace(facts.plan.settings, policy=PolicySettings(**policy))
        found = judge_cells(replace(facts, plan=replace(facts.plan, settings=settings)), effects()).verdicts["n"]
        return {kind: cell.status for cell in found for kind in cell.kinds}

    assert judged(limits={"initialization": 3.0}) == {}
    assert judged(severity={"initialization_time": "fail"}) == {"initialization_time": Status.FAIL}
