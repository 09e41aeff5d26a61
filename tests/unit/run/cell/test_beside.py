"""A cell that is red only in a server: whom ``bisect`` brings up for it, and when it only repeats what the run says."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.domain.diagnosis import BisectAnswer, Bisection
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict, Finding
from harness.errors import SelectionError
from harness.run.cell import beside as bisect_beside
from harness.run.cell.asked import SelectedCell
from harness.run.options import Options
from tests.unit.builders.stages import planned

PROJECT = Path(__file__).resolve().parents[4]


def asked(scenario: str = "concurrent") -> SelectedCell:
    plan = planned("a", "m", "z", groups={"pool": ("a", "m"), "misc": ("z",)}, scenarios=("alone", "concurrent"))
    return SelectedCell(folder=Path("/reports/run"), cell=plan.cell("m", scenario), plan=plan)


def said(
    monkeypatch: pytest.MonkeyPatch, status: Status, kind: str = "", scenario: str = "concurrent"
) -> Bisection | None:
    about = asked(scenario)
    findings = (Finding(kind=kind, message="it fails", story=(("needs", "m alone"),)),) if kind else ()
    cell = CellVerdict(cell=about.cell.id, model="m", scenario=scenario, status=status, findings=findings)
    row = SimpleNamespace(model="m", cells=(cell,), mitigations=())
    sides = {side: SimpleNamespace(name=f"torch {side}") for side in ("old", "new")}
    report = SimpleNamespace(judgement=SimpleNamespace(rows=(row,)), **sides)
    monkeypatch.setattr(bisect_beside, "read_report", lambda *_: SimpleNamespace(report=report))
    return bisect_beside.said_by_the_run(Options(project=PROJECT), about)


def test_the_model_is_brought_up_with_its_server_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisect_beside, "refuse_changed", lambda *_: None)
    about = asked()
    plan = bisect_beside.with_server_group(planned("m"), about)
    assert [model.name for model in plan.models] == ["m", "a"], "first the one that is asked about"
    assert plan.groups == {"pool": ("a", "m")} and plan.scenarios == ("alone", "concurrent")
    assert bisect_beside.scenario_of(plan) == "concurrent" and not bisect_beside.scenario_of(
        planned("m", scenarios=("alone",))
    )


def test_nodes_are_looked_for_where_it_hangs_crashes_or_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("hang", "crash", "concurrent_error"):
        assert said(monkeypatch, Status.FAIL, kind) is None
    assert said(monkeypatch, Status.FAIL, "latency", scenario="latency") is None
    race = said(monkeypatch, Status.FAIL, "race")
    assert race is not None and race.answer is BisectAnswer.UNDECIDED
    assert race.notes == (
        "concurrent init: race: nodes are looked for where it hangs, crashes or raises",
        "needs: m alone",
        "none of the switches that the run tried cures it",
    )


def test_a_green_cell_has_nothing_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    green = said(monkeypatch, Status.PASS)
    assert green is not None and green.answer is BisectAnswer.NOTHING
    assert green.notes == ("concurrent init: the run says PASS",)
    both = said(monkeypatch, Status.SAME_FAIL, "hang")
    assert both is not None and both.answer is BisectAnswer.NOTHING


def test_a_cell_that_the_run_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    report = SimpleNamespace(judgement=SimpleNamespace(rows=()))
    monkeypatch.setattr(bisect_beside, "read_report", lambda *_: SimpleNamespace(report=report))
    with pytest.raises(SelectionError, match="no cell m/"):
        bisect_beside.said_by_the_run(Options(project=PROJECT), asked())
