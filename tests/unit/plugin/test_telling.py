"""What a cell becomes in pytest: never greener than the run."""

from dataclasses import replace

import pytest

from harness.domain.outcome import Decision, Status
from harness.domain.prediction import RollbackAnswer, RollbackReport
from harness.domain.report import RunReport
from harness.domain.verdict import PlantedDefectResult, CellVerdict, Finding, RowVerdict, Waived
from harness.plugin.items import Outcome, ItemResult, decision, row_items
from tests.unit.builders import reports as builders

FINDING = Finding(kind="values", message="output: off by 0.3 of its largest value", where="example call 0 output")
WAIVED = Waived(
    kinds=("values",),
    owner="ranking",
    reason="retrained in May",
    expires="2027-03-01",
    issue="https://issues/7",
    bound=0.4,
)

MISSED = PlantedDefectResult(name="slow_down", expected="latency", reported=(), caught=False)


def report_of(*cells: CellVerdict, **changes: object) -> RunReport:
    row = RowVerdict(model="net", status=cells[0].status, cells=cells)
    report = builders.upgrade_ok()
    models = (replace(builders.healthy("net"), tags=("ranking",)),)
    return replace(report, models=models, judgement=replace(report.judgement, rows=(row,), **changes))  # type: ignore[arg-type]


def told(report: RunReport) -> tuple[ItemResult, ...]:
    return row_items(report, report.judgement.rows[0], directory="reports/R")


def only(status: Status, *findings: Finding, **changes: object) -> ItemResult:
    cell = replace(builders.verdict("net", "alone", status, *findings), **changes)  # type: ignore[arg-type]
    (item,) = told(report_of(cell))
    return item


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (Status.PASS, Outcome.PASS),
        (Status.FAIL, Outcome.FAIL),
        (Status.INCONCLUSIVE, Outcome.FAIL),
        (Status.XFAIL, Outcome.XFAIL),
        (Status.XPASS, Outcome.XPASS),
        (Status.SAME_FAIL, Outcome.SKIP),
        (Status.UNSUPPORTED, Outcome.SKIP),
    ],
)
def test_every_status_has_its_outcome(status: Status, outcome: Outcome) -> None:
    assert only(status, *([FINDING] if status is not Status.PASS else [])).outcome is outcome


def test_no_status_is_forgotten_and_only_pass_is_green() -> None:
    green = [status for status in Status if only(status, FINDING).outcome is Outcome.PASS]
    assert green == [Status.PASS]


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE])
def test_what_does_not_decide_the_run_is_skipped_with_its_reason_and_not_green(status: Status) -> None:
    item = only(status, FINDING, decides=False)
    assert item.outcome is Outcome.SKIP
    assert item.reason.startswith(f"{status.value}: net, load and calls: values: output: off by 0.3")


def test_a_red_item_says_model_stage_what_and_how_to_see_it_again() -> None:
    item = only(Status.FAIL, FINDING)
    lines = item.text.splitlines()
    assert lines[0].startswith("values: output: off by 0.3")  # all that a summary has room for
    assert lines[1] == "FAIL  net: load and calls"
    assert lines[-1].split()[0] in ("rerun", "bisect")
    assert f"rerun     {item.rerun}" in item.text and item.cell in item.rerun


def test_each_red_item_tells_its_whole_story() -> None:
    report = builders.blocked()
    items = [item for row in report.judgement.rows for item in row_items(report, row, directory="reports/R")]
    red = [item for item in items if item.outcome is Outcome.FAIL]
    assert len(red) >= 4
    assert not [item.text for item in red if "above" in item.text]  # each of them is read alone


def test_a_waiver_is_told_with_owner_expiry_reason_and_issue() -> None:
    item = only(Status.XFAIL, FINDING, waived=(WAIVED,))
    assert item.reason == "waived: values up to 0.4 by ranking until 2027-03-01: retrained in May (https://issues/7)"
    assert "off by 0.3" in item.text  # what --runxfail shows


def test_an_old_report_without_the_waiver_says_what_is_waived() -> None:
    assert "off by 0.3" in only(Status.XFAIL, FINDING).reason


@pytest.mark.parametrize("changes", [{"vacuous": "the same torch on both sides"}, {"planted_defects": (MISSED,)}])
def test_a_pass_of_a_run_that_shows_nothing_is_not_green(changes: dict[str, object]) -> None:
    (item,) = told(report_of(builders.verdict("net", "alone"), **changes))
    assert item.outcome is Outcome.SKIP
    assert "shows nothing" in item.reason


@pytest.mark.parametrize(
    ("answer", "gates", "outcome"),
    [
        (RollbackAnswer.YES, False, Outcome.PASS),
        (RollbackAnswer.YES, True, Outcome.PASS),
        (RollbackAnswer.NO, False, Outcome.SKIP),
        (RollbackAnswer.NO, True, Outcome.FAIL),
        (RollbackAnswer.UNKNOWN, True, Outcome.FAIL),
    ],
)
def test_the_rollback_is_red_only_where_policy_lets_it_decide(
    answer: RollbackAnswer, gates: bool, outcome: Outcome
) -> None:
    way = builders.model_rollback(
        "net", answer, "" if answer is RollbackAnswer.YES else "aten::new_one: torch 2.1.2 has it not"
    )
    back = RollbackReport(answer=answer, reason="", models=(way,), gates=gates)
    items = told(replace(report_of(builders.verdict("net", "alone")), rollback=back))
    assert [(item.name, item.outcome) for item in items] == [("alone", Outcome.PASS), ("rollback", outcome)]
    assert answer is RollbackAnswer.YES or "aten::new_one" in items[1].text + items[1].reason


@pytest.mark.parametrize("made", [builders.upgrade_ok, builders.golden])
def test_the_decision_is_green_where_the_exit_code_is_0(made: object) -> None:
    report = made()  # type: ignore[operator]
    assert report.judgement.exit_code == 0
    assert decision(report, directory="reports/R").outcome is Outcome.PASS


@pytest.mark.parametrize(
    "made",
    [builders.blocked, builders.mitigated, builders.inconclusive, builders.nothing_tested],
    ids=lambda made: made.__name__,
)
def test_every_other_decision_fails_and_says_why(made: object) -> None:
    report = made()  # type: ignore[operator]
    item = decision(report, directory="reports/R")
    assert item.outcome is Outcome.FAIL
    assert item.text.startswith(report.judgement.decision.value)
    assert "reports/R/report.html" in item.text and f"exit code {report.judgement.exit_code}" in item.text


def test_a_mitigation_that_is_not_accepted_is_no_green_decision() -> None:
    assert builders.mitigated().judgement.decision is Decision.OK_WITH_MITIGATION
    assert decision(builders.mitigated(), directory="R").outcome is Outcome.FAIL


def test_hostile_text_steers_no_terminal() -> None:
    report = builders.hostile()
    for row in report.judgement.rows:
        for item in row_items(report, row, directory="reports/\x1b[2J"):
            for text in (item.name, item.reason, item.cell, item.rerun, *item.text.splitlines()):
                assert text.isprintable() or not text, text
