"""Two runs beside each other: a planted change is told as what it is, and where nothing changed nothing is told."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.verdict import since as decision_since
from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.outcome import Decision, Status
from harness.core.plan import PolicySettings
from harness.core.models import UnjudgedFile
from harness.core.policy import ModelPolicy, PolicyReport
from harness.core.report import BaselineReport, CellTrend, RunReport
from harness.core.verdict import CellVerdict, Finding, RowVerdict, Waiver, WaiverState, WaiverUse
from harness.checks.startup.rates import more_often
from harness.report.words.summary import headline
from harness.report.words.in_short import untested_in_short
from harness.verdict.decide import unjudged_findings
from harness.verdict.enforce import WaiverContext
from harness.verdict.regate import regate, with_broken
from tests.unit.builders.verdicts import RAN
from tests.unit.builders.reports import PLANTED_DEFECTS, blocked, build, cell_id, healthy, ratio, upgrade_ok, verdict

HANG = Finding(kind="hang", message="hangs in call 1")
VALUES = Finding(kind="values", message="max |d| 0.2", size=0.01)
SLOW = Finding(kind="latency", message="steady latency +9 %", size=1.09)
OPEN = Finding(kind="latency_undecided", message="steady latency +4 % is not decided", size=1.04)


def since(before: RunReport, now: RunReport) -> BaselineReport:
    return decision_since.since(before, now, more_often)


def run(*cells: CellVerdict, asked: str = "", name: str = "then", **facts: object) -> RunReport:
    """Return a report with just these cells; ``facts`` are of every model, as in ``ModelReport``."""
    models = dict.fromkeys(cell.model for cell in cells)
    rows = tuple(
        RowVerdict(model=model, status=Status.PASS, cells=tuple(cell for cell in cells if cell.model == model))
        for model in models
    )
    reports = tuple(replace(healthy(model), asked=asked, **facts) for model in models)  # type: ignore[arg-type]
    report = build(replace(upgrade_ok().judgement, rows=rows, planted_defects=PLANTED_DEFECTS), reports)
    return replace(report, run=name)


def alone(status: Status, *findings: Finding, model: str = "din", **more: object) -> CellVerdict:
    return replace(verdict(model, "alone", status, *findings), **more)  # type: ignore[arg-type]


def brought_up(failed: int, rounds: int, *findings: Finding) -> CellVerdict:
    status = Status.FAIL if failed else Status.PASS
    told = (findings or (HANG,)) if failed else ()
    return replace(verdict("din", "concurrent", status, *told), rounds=rounds, failed_rounds=failed)


def only(found: BaselineReport) -> CellTrend:
    """Return what the one cell of a run came to."""
    (change,) = [CellTrend(name) for name, count in found.counts.items() for _ in range(count)]
    return change


def why(found: BaselineReport) -> str:
    (one,) = found.changes
    return one.why


@pytest.mark.parametrize("report", [blocked, upgrade_ok])
def test_of_two_equal_runs_nothing_is_new(report: Callable[[], RunReport]) -> None:
    found = since(replace(report(), run="then"), report())
    assert (found.changes, found.differences, found.other_artifacts) == ((), (), ())
    cells = sum(len(row.cells) for row in report().judgement.rows)
    assert found.counts == {"unchanged": cells}


def test_a_planted_failure_is_the_only_thing_that_is_new() -> None:
    before = blocked()
    rows = tuple(
        replace(
            row, cells=tuple(_broken(cell) if cell.cell == cell_id("detector", "alone") else cell for cell in row.cells)
        )
        for row in before.judgement.rows
    )
    found = since(before, replace(before, run="now", judgement=replace(before.judgement, rows=rows)))
    assert [(one.cell, one.change, one.was, one.now) for one in found.changes] == [
        (cell_id("detector", "alone"), CellTrend.NEW, Status.PASS, Status.FAIL)
    ]


def _broken(cell: CellVerdict) -> CellVerdict:
    return replace(cell, status=Status.FAIL, findings=(VALUES,))


def test_what_failed_alone_and_passes_is_fixed() -> None:
    found = since(run(alone(Status.FAIL, VALUES)), run(alone(Status.PASS), name="now"))
    assert (only(found), why(found)) == (CellTrend.FIXED, "")


def test_the_same_question_with_another_answer_is_flaky_in_both_directions() -> None:
    red, good = run(alone(Status.FAIL, VALUES), asked="a1"), run(alone(Status.PASS), asked="a1")
    assert only(since(red, good)) is only(since(good, red)) is CellTrend.FLAKY
    assert "comes and goes" in why(since(red, good))


def test_another_artifact_or_another_machine_is_another_question() -> None:
    red, good = run(alone(Status.FAIL, VALUES), asked="a1"), run(alone(Status.PASS), asked="a1")
    assert only(since(run(alone(Status.FAIL, VALUES), asked="b2"), good)) is CellTrend.FIXED
    assert good.new.fingerprint is not None
    moved = replace(good, new=replace(good.new, fingerprint=replace(good.new.fingerprint, cpu="Another CPU")))
    found = since(red, moved)
    assert only(found) is CellTrend.FIXED
    assert any("Another CPU now" in text for text in found.differences)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ((3, 10), (0, 10), CellTrend.FLAKY),
        ((0, 10), (3, 10), CellTrend.FLAKY),
        ((3, 10), (0, 40), CellTrend.FIXED),
        ((0, 40), (3, 10), CellTrend.NEW),
        ((10, 10), (0, 10), CellTrend.FIXED),
        ((0, 1), (1, 1), CellTrend.NEW),
        ((1, 1), (0, 1), CellTrend.UNDECIDED),
        ((3, 10), (2, 10), CellTrend.UNCHANGED),
        ((0, 10), (0, 10), CellTrend.UNCHANGED),
    ],
)
def test_rare_failures_are_distinguished_by_their_rounds(
    before: tuple[int, int], now: tuple[int, int], change: CellTrend
) -> None:
    assert only(since(run(brought_up(*before)), run(brought_up(*now), name="now"))) is change


def test_a_race_whose_rounds_nobody_counts_failed_in_one_at_least() -> None:
    race = Finding(kind="race", message="answers otherwise than alone", size=0.01)
    raced = replace(verdict("din", "concurrent", Status.FAIL, race), rounds=10)
    assert only(since(run(raced), run(brought_up(0, 10)))) is CellTrend.FLAKY
    assert only(since(run(raced), run(brought_up(0, 200)))) is CellTrend.FIXED


def test_too_few_rounds_say_how_many_would_do() -> None:
    assert "--init-rounds 20 would be enough" in why(since(run(brought_up(1, 1)), run(brought_up(0, 1))))


def test_a_failure_that_became_clearly_more_frequent_grew() -> None:
    found = since(run(brought_up(1, 10)), run(brought_up(9, 10)))
    assert only(found) is CellTrend.GREW
    assert why(found) == "clearly more often: in 9 of 10 rounds, before in 1 of 10 rounds"
    assert only(since(run(brought_up(9, 10)), run(brought_up(1, 10)))) is CellTrend.UNCHANGED


def test_another_failure_of_a_red_cell_is_new() -> None:
    crash = Finding(kind="crash", message="crashes in call 1")
    found = since(run(alone(Status.FAIL, HANG)), run(alone(Status.FAIL, crash)))
    assert (only(found), why(found)) == (CellTrend.NEW, "fails otherwise: crash; before: hang")


def test_a_failure_of_another_operator_is_new_and_of_the_same_is_not() -> None:
    load = Finding(kind="load_error", message="does not load", error="RuntimeError: Unknown builtin op: prim::is_ort.")
    other = replace(load, subject="prims::slice")
    before, now = (run(alone(Status.XFAIL, item), asked=item.subject) for item in (load, other))
    assert only(since(before, now)) is CellTrend.NEW
    assert why(since(before, now)) == "fails otherwise: load_error of prims::slice; before: load_error of prim::is_ort"
    assert only(since(before, run(alone(Status.XFAIL, replace(load, subject="prim::is_ort"))))) is CellTrend.UNCHANGED


def test_a_failure_that_has_grown_says_so() -> None:
    grown = replace(VALUES, size=0.4)
    worse = since(run(alone(Status.FAIL, VALUES)), run(alone(Status.FAIL, grown)))
    assert (only(worse), why(worse)) == (CellTrend.GREW, "values grew: 0.4, was 0.01")
    waived = since(run(alone(Status.XFAIL, VALUES)), run(alone(Status.XFAIL, grown)))
    assert only(waived) is CellTrend.GREW
    better = since(run(alone(Status.FAIL, grown)), run(alone(Status.FAIL, VALUES)))
    assert (only(better), why(better)) == (CellTrend.UNCHANGED, "values shrank: 0.01, was 0.4")
    assert since(run(alone(Status.FAIL, VALUES)), run(alone(Status.FAIL, replace(VALUES, size=0.011)))).changes == ()


def timed(status: Status, estimate: RatioEstimate, *findings: Finding, decides: bool = True) -> RunReport:
    cell = replace(verdict("din", "latency", status, *findings), decides=decides)
    return run(cell, latency=LatencyMeasurement(model="din", samples=(), steady=estimate))


def test_a_latency_is_fixed_only_where_the_intervals_lie_apart() -> None:
    slow = timed(Status.FAIL, ratio(1.09, 0.02), SLOW)
    assert only(since(slow, timed(Status.PASS, ratio(1.0, 0.02)))) is CellTrend.FIXED
    assert only(since(timed(Status.PASS, ratio(1.0, 0.02)), slow)) is CellTrend.NEW
    near = since(timed(Status.FAIL, ratio(1.05, 0.015), SLOW), timed(Status.PASS, ratio(1.02, 0.03)))
    assert only(near) is CellTrend.FLAKY
    assert "overlap" in why(near)


@pytest.mark.parametrize("decides", [True, False])
def test_a_latency_that_was_undecided_once_is_not_fixed(*, decides: bool) -> None:
    undecided = timed(Status.INCONCLUSIVE, ratio(1.04, 0.05), OPEN, decides=decides)
    found = since(timed(Status.FAIL, ratio(1.09, 0.02), SLOW), undecided)
    assert (only(found), why(found)) == (CellTrend.UNDECIDED, "this run does not say whether it fails")
    assert only(since(undecided, timed(Status.FAIL, ratio(1.09, 0.02), SLOW))) is CellTrend.UNDECIDED


def test_an_open_latency_that_decides_nothing_is_no_change_from_pass() -> None:
    undecided = timed(Status.INCONCLUSIVE, ratio(1.01, 0.05), OPEN, decides=False)
    assert since(timed(Status.PASS, ratio(1.0, 0.02)), undecided).changes == ()


def test_a_severity_changes_a_status_and_no_fact() -> None:
    """The policy of today makes a warning of what failed yesterday."""
    found = since(run(alone(Status.FAIL, VALUES)), run(alone(Status.PASS, VALUES, judged=Status.FAIL)))
    assert (only(found), found.changes[0].now) == (CellTrend.UNCHANGED, Status.PASS)
    assert "a waiver or the policy" in why(found)


def test_a_waiver_changes_a_status_and_no_fact() -> None:
    waived = alone(Status.XFAIL, VALUES, judged=Status.FAIL)
    found = since(run(waived), run(alone(Status.FAIL, VALUES)))
    assert only(found) is CellTrend.UNCHANGED
    assert "a waiver or the policy" in why(found)
    assert only(since(run(waived), run(alone(Status.PASS)))) is CellTrend.FIXED


def test_a_model_that_is_not_there_any_more_is_gone_and_not_fixed() -> None:
    found = since(
        run(alone(Status.FAIL, VALUES), alone(Status.PASS, model="bert")), run(alone(Status.PASS, model="bert"))
    )
    (one,) = found.changes
    assert (one.change, one.model, one.now) == (CellTrend.GONE, "din", None)
    assert one.why == "this run does not have the model; it failed, and gone is not fixed"


def test_a_cell_that_is_not_asked_any_more_is_gone() -> None:
    found = since(run(alone(Status.PASS), brought_up(0, 3)), run(alone(Status.FAIL, VALUES)))
    assert {one.change for one in found.changes} == {CellTrend.NEW, CellTrend.GONE}
    assert found.changes[1].why == "this run did not ask this of the model"


def test_a_model_that_was_not_there_is_new_only_where_it_fails() -> None:
    bert = alone(Status.PASS, model="bert")
    added = since(run(bert), run(bert, alone(Status.PASS)))
    assert [one.change for one in added.changes] == [CellTrend.ADDED]
    failing = since(run(bert), run(bert, alone(Status.FAIL, VALUES)))
    assert [(one.change, one.was) for one in failing.changes] == [(CellTrend.NEW, None)]


def test_another_artifact_is_said() -> None:
    before, now = run(alone(Status.PASS), artifact_digest="aa"), run(alone(Status.FAIL, VALUES), artifact_digest="bb")
    found = since(before, now)
    assert (found.other_artifacts, only(found)) == (("din",), CellTrend.NEW)
    assert since(before, run(alone(Status.PASS), artifact_digest="aa")).other_artifacts == ()


@pytest.mark.parametrize(("where", "was"), [("device", "cuda"), ("profile", "cpu_fusion"), ("direction", "forward")])
def test_cells_of_another_device_profile_or_direction_cannot_be_compared(where: str, was: str) -> None:
    now = run(alone(Status.FAIL, VALUES))
    found = since(replace(run(alone(Status.PASS)), **{where: was}), now)  # type: ignore[arg-type]
    assert (only(found), why(found)) == (CellTrend.NOT_COMPARABLE, f"the other run was of {was}")
    assert f"{where}: {was} before, {getattr(now, where)} now" in found.differences


def test_another_pair_other_limits_and_a_blind_baseline_are_said() -> None:
    now = replace(upgrade_ok(), limits={"steady": 1.1})
    assert now.new.fingerprint is not None
    other = replace(now.new, fingerprint=replace(now.new.fingerprint, torch="2.7.1+cu126"))
    missed = (replace(PLANTED_DEFECTS[0], caught=False), *PLANTED_DEFECTS[1:])
    judgement = replace(now.judgement, planted_defects=missed, of_cell=True, vacuous="the same torch on both sides")
    before = replace(now, run="then", new=other, limits={"steady": 1.03}, judgement=judgement)
    assert since(before, now).differences == (
        "new release: 2.7.1+cu126 before, 2.6.0+cu124 now",
        "limit of steady: 1.03 before, 1.1 now",
        "the other run repeated one cell only",
        "the other run missed 1 planted defect: it was blind",
        "the other run could not be green: the same torch on both sides",
    )


def test_another_policy_and_the_same_run_are_said() -> None:
    report = PolicyReport(source="policy.toml", settings=PolicySettings(), steady=1.03, undecided=1.25)
    strict = replace(report, settings=PolicySettings(gates=("load",)))
    before, now = replace(upgrade_ok(), policy=report), replace(upgrade_ok(), policy=strict)
    assert since(before, now).differences == ("the policy is another one", "it is the same run")
    assert since(before, before).differences == ("it is the same run",)


def test_the_group_counts_where_models_share_a_process() -> None:
    """A partner that has changed can be why a model no longer fails beside it."""
    before = run(brought_up(1, 1), alone(Status.PASS, model="bert"), asked="a1")
    models = [replace(model, asked="a1" if model.model == "din" else "b2") for model in before.models]
    now = replace(run(brought_up(0, 1), alone(Status.PASS, model="bert")), models=tuple(models))
    assert [one.change for one in since(before, now).changes] == [CellTrend.UNDECIDED]
    same = run(brought_up(0, 1), alone(Status.PASS, model="bert"), asked="a1")
    assert [one.change for one in since(before, same).changes] == [CellTrend.FLAKY]


def test_what_could_not_be_asked_is_not_comparable() -> None:
    assert only(since(run(alone(Status.UNSUPPORTED)), run(alone(Status.PASS)))) is CellTrend.NOT_COMPARABLE
    assert only(since(run(alone(Status.UNSUPPORTED)), run(alone(Status.UNSUPPORTED)))) is CellTrend.UNCHANGED


def test_a_failure_in_the_new_release_takes_nothing_from_the_decision() -> None:
    now = blocked()
    assert with_broken(replace(now, baseline=since(upgrade_ok(), now))) == replace(
        now, baseline=since(upgrade_ok(), now)
    )


LOST = Finding(kind="load_error", message="does not load in torch 2.6.0, alone", error="RuntimeError: no such file")
DAMAGED = Finding(kind="damaged_file", message="not judged: the file is damaged: truncated?")


@pytest.mark.parametrize(
    ("was", "broken", "why_new"),
    [
        (alone(Status.PASS), alone(Status.SAME_FAIL, LOST), "loads in neither release, and passed in the baseline"),
        (alone(Status.PASS), alone(Status.SAME_FAIL, HANG), "fails in both releases, and passed in the baseline"),
        (alone(Status.PASS), alone(Status.SAME_FAIL), "fails in the old release, and passed in the baseline"),
        (
            alone(Status.XFAIL, VALUES, judged=Status.FAIL),
            alone(Status.SAME_FAIL, LOST),
            "loads in neither release, and failed in the new one only in the baseline",
        ),
    ],
)
def test_what_works_in_neither_release_any_more_is_new_and_never_green(
    was: CellVerdict, broken: CellVerdict, why_new: str
) -> None:
    healthy_ = alone(Status.PASS, model="bert")
    before, now = run(was, healthy_), run(broken, healthy_, name="now")
    found = since(before, now)
    assert [(one.cell, one.change, one.why) for one in found.changes] == [(broken.cell, CellTrend.NEW, why_new)]
    told = with_broken(replace(now, baseline=found))
    assert (told.judgement.decision, told.judgement.exit_code) == (Decision.INCONCLUSIVE, 4)
    (cell,) = [cell for cell in told.judgement.cells if cell.cell == broken.cell]
    assert (cell.status, cell.judged, cell.findings[0].message) == (Status.INCONCLUSIVE, Status.SAME_FAIL, why_new)
    assert [(cause.title, cause.cells) for cause in told.causes] == [(why_new, (broken.cell,))]
    shown = [text for label, text in told.causes[0].evidence if label == "what"]
    assert shown == [why_new, *(finding.message for finding in broken.findings)]
    assert with_broken(replace(told, baseline=since(before, told))) == told  # asked again, it says the same
    assert with_broken(replace(told, baseline=since(now, told))).judgement.cells == now.judgement.cells
    again = with_broken(replace(now, run="then", baseline=since(told, now)))  # whose baseline has it undecided
    assert (again.judgement.decision, again.judgement.exit_code) == (Decision.INCONCLUSIVE, 4)
    assert [item.findings[0].message for item in again.judgement.cells if item.cell == broken.cell] == [
        f"{why_new.partition(',')[0]}, and worked before the baseline"
    ]
    third = replace(now, run="last", baseline=since(again, now))
    assert with_broken(third).judgement.decision is Decision.INCONCLUSIVE
    waiver = Waiver(model=broken.model, kind="broken_since", reason="r", owner="ann", expires=dt.date(2099, 1, 1))
    known = WaiverUse(waiver=waiver, state=WaiverState.NOT_JUDGED)
    waived = with_broken(replace(third, waivers=(known,)))
    assert waived.judgement.decision is now.judgement.decision
    expired = replace(known, state=WaiverState.EXPIRED)
    later = replace(now, run="later", baseline=since(waived, now), waivers=(expired,))
    assert with_broken(later).judgement.decision is Decision.INCONCLUSIVE
    info = PolicySettings(severity={"broken_since": "info"})
    lenient = replace(now, baseline=found, policy=replace(now.policy, settings=info))
    assert with_broken(lenient) == lenient


def test_what_was_broken_in_the_baseline_too_gates_nothing_and_damage_is_new() -> None:
    same = run(alone(Status.SAME_FAIL, LOST))
    assert only(since(same, replace(same, run="now"))) is CellTrend.UNCHANGED
    assert only(since(same, run(alone(Status.PASS)))) is CellTrend.FIXED
    damaged = run(alone(Status.INCONCLUSIVE, DAMAGED))
    assert only(since(run(alone(Status.PASS)), damaged)) is CellTrend.NEW
    assert only(since(same, damaged)) is CellTrend.UNCHANGED
    assert only(since(run(alone(Status.FAIL, VALUES), asked="a"), run(alone(Status.SAME_FAIL, LOST), asked="a"))) is (
        CellTrend.FLAKY
    )


def test_what_an_interrupted_run_did_not_come_to_is_not_gone() -> None:
    before = run(alone(Status.PASS), brought_up(0, 1))
    now = run(alone(Status.PASS), name="now")
    assert since(before, now).counts == {"unchanged": 1, "gone": 1}
    cut_off = replace(now, judgement=replace(now.judgement, interrupted="timing"))
    assert since(before, cut_off).counts == {"unchanged": 1, "not_comparable": 1}


def test_requests_that_are_guessed_now_are_named() -> None:
    before, now = run(alone(Status.PASS), asked="a"), run(alone(Status.PASS), name="now", guessed="forward(x)")
    assert since(before, now).now_guessed == ("din",)
    assert since(replace(before, models=now.models), now).now_guessed == () == since(now, before).now_guessed


@pytest.mark.parametrize(
    ("severity", "decision", "code"),
    [
        ("fail", Decision.BLOCKED, 1),
        ("inconclusive", Decision.INCONCLUSIVE, 4),
        ("info", Decision.UPGRADE_OK, 0),
        ("named", Decision.UPGRADE_OK, 0),
    ],
)
def test_the_policy_says_what_a_model_that_is_gone_does(severity: str, decision: Decision, code: int) -> None:
    before, now = run(alone(Status.PASS), alone(Status.PASS, model="bert")), run(alone(Status.PASS), name="now")
    policy = replace(now.policy, settings=PolicySettings(severity={"gone": severity}))
    told = with_broken(replace(now, policy=policy, baseline=since(before, now)))
    assert (told.judgement.decision, told.judgement.exit_code) == (decision, code)
    assert ("gone since the baseline: bert" in f"{headline(told)} {told.judgement.reason}") is (severity != "info")
    assert with_broken(told) == told
    whole = with_broken(replace(now, policy=policy, baseline=since(now, now)))
    assert whole.judgement.decision is Decision.UPGRADE_OK


@pytest.mark.parametrize(
    ("severity", "decision", "code"),
    [
        ("fail", Decision.BLOCKED, 1),
        ("inconclusive", Decision.INCONCLUSIVE, 4),
        ("info", Decision.UPGRADE_OK, 0),
        ("named", Decision.UPGRADE_OK, 0),
    ],
)
def test_the_policy_says_what_a_file_without_a_verdict_does(severity: str, decision: Decision, code: int) -> None:
    """By ``gate``; a run itself asks the same function."""
    policy = PolicySettings(severity={"unjudged_file": severity})
    left = (UnjudgedFile(path="weights.pt", what="state dict"),)
    context = WaiverContext(waivers=(), ran=RAN, today=dt.date(2026, 11, 21))
    by = {"din": ModelPolicy(settings=policy, by={})}
    told = regate(replace(run(alone(Status.PASS)), unjudged=left), policy, by, context, source="policy.toml")
    assert (told.judgement.decision, told.judgement.exit_code) == (decision, code)
    words = "not judged: 1 of 2 files (weights.pt)"
    assert (words in f"{headline(told)} {told.judgement.reason}") is (severity != "info")
    assert "1 file beside the models: weights.pt (state dict)" in untested_in_short(told)
    whole = regate(run(alone(Status.PASS)), policy, by, context, source="policy.toml")
    assert whole.judgement.decision is Decision.UPGRADE_OK and "not judged" not in headline(whole)
    assert unjudged_findings(left, 1, policy.severity) == told.judgement.findings
