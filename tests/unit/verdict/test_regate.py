"""A finished run, judged again from its report."""

import datetime
from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.waivers.apply import Ran
from harness.verdict.enforce import WaiverContext
from harness.verdict.decide import decide, judge_row
from harness.verdict.regate import regate
from harness.core.findings import SEVERITY
from harness.core.measurement import CommonSlowdown, LatencyMeasurement
from harness.core.outcome import Decision, Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.policy import ModelPolicy, PolicyReport, Regated
from harness.core.prediction import RollbackAnswer, RollbackReport
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Waiver
from harness.verdict.latency import judge_latency
from tests.unit.builders.verdicts import planted_defect, mitigated, finding, measured, ratio, verdict
from tests.unit.builders.reports import build, healthy, quantity, scenario, scenario_side

DAY = datetime.date(2026, 6, 1)
CONTEXT = WaiverContext(waivers=(), ran=Ran("2.1.2", "2.6.0"), today=DAY)
WAIVER = Waiver(model="m", kind="values", reason="known", owner="ann", expires=DAY)
EVERYTHING = {kind: "info" for kind in SEVERITY}
CAUGHT = (planted_defect(),)


def run(*cells: CellVerdict, latency: LatencyMeasurement | None = None, **decided: Any) -> RunReport:
    """Return the report of a run with these cells, each model's in the order of its name, judged by no policy."""
    names = sorted({cell.model for cell in cells})
    mitigations = decided.pop("mitigations", ())
    rows = [judge_row(name, [cell for cell in cells if cell.model == name], mitigations) for name in names]
    judgement = decide(rows, decided.pop("planted_defects", CAUGHT), **decided)
    models = tuple(replace(healthy(name), latency=latency) for name in names)
    own = PolicyReport(source="own", settings=PolicySettings(), steady=1.03, undecided=1.25)
    return replace(build(judgement, models), policy=own, limits={"steady": 1.03})


def again(report: RunReport, context: WaiverContext = CONTEXT, **settings: Any) -> RunReport:
    policy = PolicySettings(**settings)
    keys = [f"{section}.{key}" for section in ("limits", "severity") for key in getattr(policy, section)]
    each = ModelPolicy(settings=policy, by=dict.fromkeys([*keys, "latency"], "policy.toml"))
    return regate(report, policy, {row.model: each for row in report.judgement.rows}, context, source="policy.toml")


def outcome(report: RunReport) -> tuple[Decision, int]:
    return report.judgement.decision, report.judgement.exit_code


def told(report: RunReport) -> Regated:
    assert report.policy is not None
    assert report.policy.regated is not None
    return report.policy.regated


RED = verdict(Status.FAIL, finding("values"))
GREEN = verdict(model="n")


@pytest.mark.parametrize(
    "report",
    [
        run(GREEN),
        run(RED, GREEN),
        run(RED, mitigations=(mitigated("fuser off"),)),
        run(verdict(Status.INCONCLUSIVE, finding("not_measured"))),
        run(verdict(Status.UNSUPPORTED)),
        run(GREEN, planted_defects=()),
        run(GREEN, planted_defects=(planted_defect(caught=False),)),
        run(GREEN, vacuous="the same torch on both sides"),
        run(GREEN, planted_defects=(), planted_defects_required=False),
        run(verdict(Status.SAME_FAIL, finding("values"), note="fails before the upgrade too")),
    ],
)
def test_policy_that_says_nothing_decides_as_the_run_did(report: RunReport) -> None:
    found = again(report)
    assert found.judgement == report.judgement
    assert told(found).changes == ()
    assert told(found).why == "no cell is judged otherwise"


def test_what_changed_is_reported_with_what_the_run_had_decided() -> None:
    found = again(run(RED, GREEN), severity={"values": "warn"})
    assert outcome(found) == (Decision.UPGRADE_OK, 0)
    before = told(found)
    assert (before.decision, before.exit_code) == (Decision.BLOCKED, 1)
    assert [(item.was, item.now) for item in before.changes] == [(Status.FAIL, Status.XFAIL)]
    assert "severity.values of policy.toml" in before.changes[0].why
    back = again(found)
    assert outcome(back) == (Decision.BLOCKED, 1)
    assert told(back).changes[0].why == "about values"


def test_stricter_policy_blocks_what_had_passed() -> None:
    warned = verdict(Status.PASS, finding("memory"))
    assert outcome(again(run(warned), severity={"memory": "fail"})) == (Decision.BLOCKED, 1)


# never greener than the facts


@pytest.mark.parametrize(
    ("decided", "decision"),
    [
        ({"planted_defects": (planted_defect(caught=False),)}, Decision.INCONCLUSIVE),
        ({"planted_defects": ()}, Decision.INCONCLUSIVE),
        ({"vacuous": "the same torch on both sides"}, Decision.INCONCLUSIVE),
    ],
)
def test_no_policy_makes_a_run_green_that_shows_nothing(decided: dict[str, Any], decision: Decision) -> None:
    report = run(GREEN, **decided)
    found = again(report, severity=EVERYTHING)
    assert outcome(found) == (decision, 4)
    assert found.judgement.reason == report.judgement.reason


@pytest.mark.parametrize("kind", sorted(SEVERITY))
def test_no_policy_makes_a_run_green_in_which_nothing_passes(kind: str) -> None:
    for status in (Status.FAIL, Status.INCONCLUSIVE):
        found = again(run(verdict(status, finding(kind))), severity=EVERYTHING)
        assert found.judgement.decision is not Decision.UPGRADE_OK or found.judgement.rows[0].status is Status.PASS
    assert outcome(again(run(verdict(Status.FAIL, finding(kind))), severity=EVERYTHING))[1] != 0


def test_nothing_tested_stays_nothing_tested() -> None:
    report = run(verdict(Status.INCONCLUSIVE, finding("export_error")))
    assert outcome(again(report, severity={"export_error": "info"})) == (Decision.NOTHING_TESTED, 4)
    assert outcome(again(run(verdict(Status.UNSUPPORTED)))) == (Decision.NOTHING_TESTED, 4)


def test_run_with_a_switch_that_the_policy_does_not_accept_is_not_green() -> None:
    report = run(GREEN, accepted=("fuser off",))
    assert report.judgement.exit_code == 0
    assert outcome(again(report, accepted_mitigations=("fuser off",))) == (Decision.OK_WITH_MITIGATION, 0)
    found = again(report)
    assert outcome(found) == (Decision.INCONCLUSIVE, 4)
    assert "the new side ran with fuser off, which this policy does not accept" in found.judgement.reason


def test_switch_that_is_accepted_afterwards_was_not_probed_with() -> None:
    report = run(RED, mitigations=(mitigated("fuser off"),))
    assert outcome(again(report, accepted_mitigations=("fuser off",))) == (Decision.OK_WITH_MITIGATION, 1)


def test_switch_does_not_mitigate_what_the_run_did_not_try_to_mitigation() -> None:
    cells = (RED, verdict(Status.PASS, finding("memory"), scenario="latency"))
    report = run(*cells, mitigations=(mitigated("fuser off"),))
    assert report.judgement.decision is Decision.OK_WITH_MITIGATION
    assert outcome(again(report, severity={"memory": "fail"})) == (Decision.BLOCKED, 1)


def test_rollback_is_asked_for_where_the_policy_says_so() -> None:
    report = run(GREEN)
    assert outcome(again(report, rollback="fail")) == (Decision.INCONCLUSIVE, 4)
    closed = replace(report, rollback=RollbackReport(answer=RollbackAnswer.NO, reason="m"))
    assert outcome(again(closed)) == (Decision.UPGRADE_OK, 0)
    assert outcome(again(closed, rollback="fail")) == (Decision.BLOCKED, 1)
    assert outcome(again(replace(report, rollback=RollbackReport(answer=RollbackAnswer.YES)), rollback="fail"))[1] == 0


def test_run_that_is_a_rollback_itself_is_asked_for_none() -> None:
    report = replace(run(GREEN), direction="forward")
    assert outcome(again(report, rollback="fail")) == (Decision.UPGRADE_OK, 0)


def test_what_one_policy_does_not_count_decides_again_under_another() -> None:
    open_ = verdict(Status.INCONCLUSIVE, finding("not_decidable"), scenario="concurrent")
    lenient = again(run(verdict(), open_), severity={"not_decidable": "info"})
    assert outcome(lenient) == (Decision.UPGRADE_OK, 0)
    assert outcome(again(lenient)) == (Decision.INCONCLUSIVE, 4)


def test_run_must_have_what_the_policy_asks_for() -> None:
    report = run(GREEN, RED)
    assert outcome(again(run(GREEN), minimum_models=2)) == (Decision.INCONCLUSIVE, 4)
    assert outcome(again(run(GREEN), required_scenarios=("concurrent",))) == (Decision.INCONCLUSIVE, 4)
    assert outcome(again(report, minimum_models=3)) == (Decision.BLOCKED, 1)


# waivers


def test_waiver_that_ended_since_covers_no_more() -> None:
    waiving = replace(CONTEXT, waivers=(WAIVER,))
    waived = again(run(RED, GREEN), waiving)
    assert outcome(waived) == (Decision.UPGRADE_OK, 0)
    late = replace(waiving, today=DAY + datetime.timedelta(days=1))
    found = again(waived, late)
    assert outcome(found) == (Decision.BLOCKED, 1)
    assert "waiver_expired" in {item.kind for item in found.judgement.rows[0].cells[0].findings}
    assert outcome(again(waived)) == (Decision.BLOCKED, 1)  # and so does one that was removed


# latency


def timed(measurement: LatencyMeasurement, limit: float = 0.03) -> RunReport:
    judged = judge_latency(verdict().model, measurement, LatencyBudget(limit=limit), PolicySettings())
    return run(verdict(), judged, latency=measurement)


SLOWER = measured(ratio(1.05, 1.07), confirmation=ratio(1.04, 1.08))
BIT_SLOWER = measured(ratio(1.015, 1.025))


def test_looser_limit_passes_a_slowdown_and_the_old_one_fails_it_again() -> None:
    report = timed(SLOWER)
    assert outcome(report) == (Decision.BLOCKED, 1)
    loose = again(report, limits={"steady": 1.10})
    assert outcome(loose) == (Decision.UPGRADE_OK, 0)
    assert told(loose).changes[0].why.startswith("no more: steady latency +6.0 %")
    (ruled,) = loose.judgement.rows[0].cells[1].ruled  # a reader sees what only the limit let pass
    assert (ruled.was, ruled.now) == ("fail", "info")
    assert ruled.why == "+6.0 % [+4.0, +8.0], limit +10 % in place of +3 %"
    assert loose.limits["steady"] == 1.10
    assert outcome(again(loose)) == (Decision.BLOCKED, 1)


def test_what_all_share_is_judged_again_of_a_run_and_of_one_that_repeats_just_that() -> None:
    slow = replace(SLOWER, own=ratio(1.0, 1.01))
    common = CommonSlowdown(ratio=ratio(1.05, 1.06), models=("m",), call_s=1e-3)
    report = replace(timed(slow), common=common)
    whole = again(report, latency="own", limits={"common": 1.03})
    assert outcome(whole) == (Decision.BLOCKED, 1)
    assert [item.kind for item in whole.judgement.findings] == ["common_slowdown"]
    assert whole.judgement.rows[0].status is Status.PASS
    repeated = replace(report, judgement=replace(report.judgement, of_cell=True))
    found = again(repeated, latency="own", limits={"common": 1.03})
    assert (outcome(found), found.judgement.findings) == ((Decision.BLOCKED, 1), whole.judgement.findings)


def test_tighter_limit_than_the_benchmark_had_leaves_open_what_no_fresh_pairs_confirmed() -> None:
    report = timed(BIT_SLOWER)
    assert outcome(report) == (Decision.UPGRADE_OK, 0)
    found = again(report, limits={"steady": 1.01})
    assert outcome(found) == (Decision.INCONCLUSIVE, 4)
    assert "not confirmed by fresh process pairs" in told(found).changes[0].why
    confirmed = replace(BIT_SLOWER, confirmation=ratio(1.012, 1.03))
    assert outcome(again(timed(confirmed), limits={"steady": 1.01})) == (Decision.BLOCKED, 1)


@pytest.mark.parametrize("limit", [1.01, 1.02])
def test_limit_that_the_benchmark_did_not_have_to_tell_leaves_the_run_open(limit: float) -> None:
    report = timed(measured(ratio(1.005, 1.025)))
    assert outcome(report) == (Decision.UPGRADE_OK, 0)
    found = again(report, limits={"steady": limit})
    assert outcome(found) == (Decision.INCONCLUSIVE, 4)
    assert outcome(again(found, limits={"steady": limit})) == (Decision.INCONCLUSIVE, 4)
    assert outcome(again(found)) == (Decision.UPGRADE_OK, 0)
    open_already = timed(measured(ratio(1.005, 1.035)))  # the benchmark has had all its rounds
    assert outcome(again(open_already, limits={"steady": limit})) == (Decision.UPGRADE_OK, 0)


def test_gate_that_the_benchmark_did_not_have_leaves_the_run_open() -> None:
    report = timed(measured(ratio(0.99, 1.01), quantities={"load": quantity(1.0, 2.0)}))
    assert outcome(report) == (Decision.UPGRADE_OK, 0)
    assert outcome(again(report, gates=("load",))) == (Decision.INCONCLUSIVE, 4)
    assert outcome(again(report, gates=("load",), limits={"load": 3.0})) == (Decision.UPGRADE_OK, 0)
    assert outcome(again(report, severity={"load_time": "fail"})) == (Decision.BLOCKED, 1)


def started(*cells: CellVerdict, new_s: float = 9.0) -> RunReport:
    """Return a run whose server group got ready in 4 s in the old release."""
    both = scenario("concurrent", "vision", 2, new=scenario_side(2, init_s=new_s))
    assert both.old is not None
    return replace(run(*cells), scenarios=(replace(both, old=replace(both.old, init_s=4.0)),))


def test_a_slow_start_is_judged_again_by_the_limit_of_the_policy_and_stays_with_its_model() -> None:
    first, second = (replace(verdict(model=name), scenario="concurrent", cell=f"{name}/concurrent") for name in "mn")
    warned = replace(second, findings=(finding("initialization_time"),))
    assert [cell.kinds for cell in again(started(first, warned)).judgement.cells] == [(), ("initialization_time",)]
    looser = again(started(first, warned), limits={"initialization": 3.0})
    assert [cell.kinds for cell in looser.judgement.cells] == [(), ()] and looser.limits["initialization"] == 3.0
    stricter = again(started(first, second, new_s=5.5), limits={"initialization": 1.1})
    assert [cell.kinds for cell in stricter.judgement.cells] == [("initialization_time",), ()]
    assert again(started(first, second, new_s=4.9), limits={"initialization": 1.1}).judgement.cells[0].kinds == ()
