"""What ``bisect`` refuses before any process starts, and the plan that it makes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.plan import Cell
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Finding
from harness.core.errors import SelectionError
from harness.probing.requests import IMPATIENT_FLOOR_S
from harness.apps.bisect import bisect
from harness.apps.rerun.selected import SelectedCell
from harness.project import Project
from tests.unit.builders.stages import planned

PROJECT = Path(__file__).resolve().parents[4]
SIDES = {"old": "2.1.2", "new": "2.6.0"}


def given(tmp_path: Path, **more: Any) -> Project:
    return Project(folder=PROJECT, overrides=SIDES, out=str(tmp_path), **more)


def test_the_plan_is_of_the_one_model_alone(tmp_path: Path) -> None:
    plan = bisect._of_model(given(tmp_path), "dlrm")
    assert [model.name for model in plan.models] == ["dlrm"]
    assert (plan.scenarios, plan.planted_defects, plan.settings.latency.budget) == (("alone",), (), "off")
    assert plan.settings.deadlines.floor_s == IMPATIENT_FLOOR_S


def test_the_time_is_compared_where_that_is_asked_for(tmp_path: Path) -> None:
    options = Project(folder=PROJECT, overrides={**SIDES, "latency": "thorough"}, out=str(tmp_path))
    plan = bisect._of_model(options, "dlrm")
    assert (plan.scenarios, plan.is_timed, plan.settings.latency.budget) == (("alone",), True, "thorough")
    silent = bisect._of_model(given(tmp_path), "dlrm")
    assert bisect._alone(silent, silent.models[0], is_timed=True).settings.latency.budget == "quick"


def asked(scenario: str = "concurrent") -> SelectedCell:
    plan = planned("a", "m", "z", groups={"pool": ("a", "m"), "misc": ("z",)}, scenarios=("alone", "concurrent"))
    return SelectedCell(folder=Path("/reports/run"), cell=Cell("m", scenario), plan=plan)


def said(
    monkeypatch: pytest.MonkeyPatch, status: Status, kind: str = "", scenario: str = "concurrent"
) -> Bisection | None:
    about = asked(scenario)
    findings = (Finding(kind=kind, message="it fails", story=(("needs", "m alone"),)),) if kind else ()
    cell = CellVerdict(cell=about.cell.id, model="m", scenario=scenario, status=status, findings=findings)
    row = SimpleNamespace(model="m", cells=(cell,), mitigations=())
    sides = {side: SimpleNamespace(name=f"torch {side}") for side in ("old", "new")}
    report = SimpleNamespace(judgement=SimpleNamespace(rows=(row,)), **sides)
    monkeypatch.setattr(bisect, "read_report", lambda *_: SimpleNamespace(report=report))
    return bisect.kept_bisection(Project(folder=PROJECT), about)


def test_the_model_is_brought_up_with_its_server_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisect, "refuse_changed", lambda *_: None)
    about = asked()
    plan = bisect.with_server_group(planned("m"), about)
    assert [model.name for model in plan.models] == ["m", "a"], "first the one that is asked about"
    assert plan.groups == {"pool": ("a", "m")} and plan.scenarios == ("alone", "concurrent")
    assert bisect.scenario_of(plan) == "concurrent" and not bisect.scenario_of(planned("m", scenarios=("alone",)))


def test_nodes_are_looked_for_where_it_hangs_crashes_or_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("hang", "crash", "concurrent_error"):
        assert said(monkeypatch, Status.FAIL, kind) is None
    assert said(monkeypatch, Status.FAIL, "latency", scenario="latency") is None
    race = said(monkeypatch, Status.FAIL, "race")
    assert race is not None and race.answer is BisectAnswer.UNDECIDED
    assert race.notes == (
        "concurrent init: race: nodes are looked for where it hangs, crashes or raises",
        "needs: m alone",
        "none of the switches that the run tried mitigates it",
    )


def test_a_green_cell_has_nothing_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    green = said(monkeypatch, Status.PASS)
    assert green is not None and green.answer is BisectAnswer.NOTHING
    assert green.notes == ("concurrent init: the run says PASS",)
    both = said(monkeypatch, Status.SAME_FAIL, "hang")
    assert both is not None and both.answer is BisectAnswer.NOTHING


def test_a_cell_that_the_run_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    report = SimpleNamespace(judgement=SimpleNamespace(rows=()))
    monkeypatch.setattr(bisect, "read_report", lambda *_: SimpleNamespace(report=report))
    with pytest.raises(SelectionError, match="no cell m/"):
        bisect.kept_bisection(Project(folder=PROJECT), asked())
