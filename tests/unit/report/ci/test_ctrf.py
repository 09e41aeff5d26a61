"""The Common Test Report Format, held against its published schema."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import Waived
from harness.report.ci.ctrf import render_ctrf
from tests.unit.builders.reports import REPORTS, blocked, inconclusive, nothing_tested, upgrade_ok
from tests.unit.builders.readers import valid
from tests.unit.report.ci.test_checks import with_first_cell

SCHEMA = "ctrf-0.0.json"


def read(report: RunReport) -> dict:  # type: ignore[type-arg]
    return valid(render_ctrf(report), SCHEMA)["results"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", REPORTS)
def test_the_published_schema_accepts_every_report(name: str) -> None:
    results = read(REPORTS[name]())
    counts = Counter(test["status"] for test in results["tests"])
    summary = results["summary"]
    assert {key: summary[key] for key in ("passed", "failed", "skipped", "pending", "other")} == {
        key: counts[key] for key in ("passed", "failed", "skipped", "pending", "other")
    }
    assert summary["tests"] == len(results["tests"])


def test_the_schema_would_refuse_a_word_that_it_does_not_know() -> None:
    with pytest.raises(Exception, match="is not one of"):
        valid(render_ctrf(blocked()).replace('"status": "failed"', '"status": "red"'), SCHEMA)


@pytest.mark.parametrize("name", REPORTS)
def test_no_report_without_a_failed_test_has_another_exit_code_than_0(name: str) -> None:
    report = REPORTS[name]()
    results = read(report)
    failed = [test for test in results["tests"] if test["status"] == "failed"]
    assert (not failed) == (report.judgement.exit_code == 0) == results["environment"]["healthy"]


@pytest.mark.parametrize("report", [nothing_tested(), inconclusive()], ids=["nothing_tested", "inconclusive"])
def test_an_undecided_run_fails_its_decision_and_says_its_own_word(report: RunReport) -> None:
    decision = read(report)["tests"][0]
    assert (decision["name"], decision["status"]) == ("decision", "failed")
    assert decision["rawStatus"] == report.judgement.decision.value


@pytest.mark.parametrize(
    ("status", "decides", "told"),
    [
        (Status.PASS, True, "passed"),
        (Status.FAIL, True, "failed"),
        (Status.FAIL, False, "other"),
        (Status.XPASS, True, "failed"),
        (Status.INCONCLUSIVE, True, "other"),
        (Status.SAME_FAIL, True, "other"),
        (Status.XFAIL, True, "other"),
        (Status.UNSUPPORTED, True, "skipped"),
    ],
)
def test_each_status_has_its_word_and_keeps_its_own(status: Status, decides: bool, told: str) -> None:
    report = with_first_cell(status, decides=decides)
    cell = report.judgement.rows[0].cells[0].cell
    (test,) = [test for test in read(report)["tests"] if test["name"] == cell]
    assert (test["status"], test["rawStatus"]) == (told, status.value)


def test_a_waived_cell_is_labelled_with_its_owner_and_last_day() -> None:
    waived = Waived(kinds=("values",), owner="ads", reason="rounding", expires="2027-02-01")
    report = with_first_cell(Status.XFAIL, waived=(waived,))
    (test,) = [test for test in read(report)["tests"] if test["rawStatus"] == "XFAIL"]
    assert (test["labels"]["owner"], test["labels"]["expires"]) == (["ads"], ["2027-02-01"])
    assert "values by ads until 2027-02-01: rounding" in test["trace"]


def test_a_red_cell_has_its_place_story_and_evidence() -> None:
    (test,) = [test for test in read(blocked())["tests"] if test["name"].startswith("fused_ranker/concurrent")]
    assert (test["filePath"], test["line"]) == ("fixtures/zoo/fused_ranker.py", 12)
    assert test["labels"]["findings"] == ["hang"]
    assert "rerun: python -m harness rerun" in test["trace"]
    assert test["attachments"][0]["path"].endswith("probes/5d1c0a/stacks.txt")


def test_no_test_is_flaky_for_nothing_passes_after_it_failed() -> None:
    results = read(blocked())
    assert results["summary"]["flaky"] == 0
    assert not [test for test in results["tests"] if "flaky" in test]


@pytest.mark.parametrize(
    ("started_at", "start"),
    [("2025-01-14T09:30:11+00:00", 1_736_847_011_000), ("2025-01-14T09:30:11", 1_736_847_011_000), ("?", 0)],
)
def test_times_are_milliseconds_since_the_epoch(started_at: str, start: int) -> None:
    summary = read(replace(upgrade_ok(), started_at=started_at))["summary"]
    assert (summary["start"], summary["stop"]) == (start, start + 93_400)


def test_another_content_is_another_report() -> None:
    one, again, other = upgrade_ok(), upgrade_ok(), replace(upgrade_ok(), wall_s=94.0)
    first, second, third = (json.loads(render_ctrf(report))["reportId"] for report in (one, again, other))
    assert first == second != third
