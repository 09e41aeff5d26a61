"""The badge, as the service that draws it wants it."""

import json
from dataclasses import replace

import pytest

from harness.domain.outcome import Status
from harness.report.ci.badge import render_badge
from tests.unit.builders.reports import REPORTS, blocked, mitigated, nothing_tested, upgrade_ok

# https://shields.io/badges/endpoint-badge
NAMED_COLOURS = ("brightgreen", "green", "yellow", "yellowgreen", "orange", "red", "blue", "lightgrey")


@pytest.mark.parametrize("name", REPORTS)
def test_a_badge_has_what_the_service_asks_for_and_nothing_else(name: str) -> None:
    report = REPORTS[name]()
    badge = json.loads(render_badge(report))
    assert list(badge) == ["color", "isError", "label", "message", "schemaVersion"]
    assert badge["schemaVersion"] == 1
    assert badge["color"] in NAMED_COLOURS
    assert badge["isError"] is (report.judgement.exit_code != 0)
    assert 0 < len(badge["message"]) <= 60
    assert len(badge["label"]) <= 60


def test_it_says_the_decision_and_how_many_models_are_not_well() -> None:
    assert json.loads(render_badge(blocked()))["message"] == "blocked: 6 models, 4 FAIL, 1 SAME_FAIL"
    assert json.loads(render_badge(upgrade_ok()))["message"] == "upgrade ok: 3 models"


def test_the_worst_status_comes_first() -> None:
    report = upgrade_ok()
    statuses = (Status.XFAIL, Status.PASS, Status.INCONCLUSIVE)
    rows = tuple(replace(row, status=status) for row, status in zip(report.judgement.rows, statuses, strict=True))
    report = replace(report, judgement=replace(report.judgement, rows=rows))
    assert json.loads(render_badge(report))["message"].endswith(": 3 models, 1 INCONCLUSIVE, 1 XFAIL")


@pytest.mark.parametrize("name", REPORTS)
def test_only_an_exit_code_of_0_is_green(name: str) -> None:
    report = REPORTS[name]()
    assert ("green" in json.loads(render_badge(report))["color"]) == (report.judgement.exit_code == 0)
    forced = replace(report, judgement=replace(report.judgement, exit_code=4))
    assert "green" not in json.loads(render_badge(forced))["color"]


def test_a_cure_is_yellow_and_nothing_tested_orange() -> None:
    assert [json.loads(render_badge(report))["color"] for report in (mitigated(), nothing_tested())] == [
        "yellow",
        "orange",
    ]
