"""A real red cell is waived by command: known then, red again once it is worse than its bound."""

from pathlib import Path

import pytest

from harness.domain.outcome import Decision, Status
from harness.domain.verdict import WaiverState
from harness.report.json.report import load_report
from tests.integration.gate import PROJECT, finished, harness

pytestmark = [pytest.mark.integration]

CELL = "enlarge_thumbnail/backward/alone/cpu/default/all"
WHY = ("--owner", "ads@example.com", "--reason", "border pixels, agreed")


def test_a_red_cell_is_known_up_to_its_bound_and_red_above_it(old_python: str, new_python: str, tmp_path: Path) -> None:
    project, reports = ("--project", str(tmp_path)), tmp_path / "reports"
    sides = ("--env", f"old={old_python}", "--env", f"new={new_python}", "--fixtures", str(PROJECT / "fixtures/breaks"))
    asked = ("-k", "enlarge_thumbnail", "--scenario", "alone", "--latency", "off")
    red = finished(harness(*project, "compat", *sides, *asked), reports)
    assert red.report.judgement.decision is Decision.BLOCKED

    added = harness(*project, "waivers", "add", "last", CELL, *WHY)
    assert added.returncode == 0, added.stderr
    file = tmp_path / "golden" / "waivers.toml"
    text = file.read_text()
    assert 'old = "~=2.1.2"\nnew = "~=2.6.0"\nscenario = "alone"\ndevice = "cpu"\n' in text
    judged = harness(*project, "gate", str(red.folder), "--format", "json")
    report = load_report(judged.stdout.encode(), file="gate")
    assert (judged.returncode, report.judgement.decision) == (0, Decision.UPGRADE_OK)
    assert [use.state for use in report.waivers] == [WaiverState.USED]

    again = harness(*project, "rerun", str(red.folder), CELL)
    fresh = finished(again, red.folder / "reruns")
    (cell,) = fresh.row("enlarge_thumbnail").cells
    assert (cell.status, cell.judged) == (Status.XFAIL, Status.FAIL)
    assert [use.state for use in fresh.report.waivers] == [WaiverState.USED]
    assert "waived until" in again.stdout

    bound = next(line for line in text.splitlines() if line.startswith("bound = "))
    file.write_text(text.replace(bound, "bound = 0.001"))
    worse = harness(*project, "gate", str(red.folder))
    assert worse.returncode == 1
    said = " ".join(worse.stdout.split())
    assert "the waiver of ads@example.com covers 0.001 of the largest value at most, and this is 0.0998" in said
