"""What ``mitigate`` refuses before any process starts, and the plan that it makes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.config.selection import find_model
from harness.core.diagnosis import MitigationAnswer, MitigationResult
from harness.core.plan import Plan
from harness.core.errors import ConfigError, ExitCode
from harness.probing.requests import IMPATIENT_FLOOR_S
from harness.apps.mitigate import mitigate
from harness.apps.mitigate.mitigate import Subject
from harness.project import Project
from harness.report.document import Fact
from harness.report.documents.diagnosis import mitigation_document
from harness.apps.upgrade.plan import make_plan

PROJECT = Path(__file__).resolve().parents[4]
SIDES = {"old": "2.1.2", "new": "2.6.0"}


def given(tmp_path: Path, **more: Any) -> Project:
    return Project(folder=PROJECT, **{"overrides": SIDES, "out": str(tmp_path), **more})


def planned(options: Project, model: str, scenario: str = "alone") -> Plan:
    plan = mitigate._of_model(options, scenario)
    return mitigate._about(plan, Subject(model=model, scenario=scenario), find_model(plan.models, model))


def test_latency_that_nobody_measures_is_not_mitigated(tmp_path: Path) -> None:
    options = given(tmp_path, overrides={**SIDES, "latency": "off"})
    with pytest.raises(ConfigError, match="--latency off"):
        mitigate.mitigate(options, model="dlrm", scenario="latency")


def test_the_plan_has_the_server_group_of_the_model_and_no_other(tmp_path: Path) -> None:
    options = given(tmp_path)
    plan, whole = planned(options, "dlrm"), make_plan(options)
    (members,) = plan.groups.values()
    assert "dlrm" in members
    assert {model.name for model in plan.models} == set(members)
    assert 1 < len(plan.models) < len(whole.models)
    assert (plan.scenarios, plan.planted_defects) == (("alone",), ())
    assert plan.settings.deadlines.floor_s == IMPATIENT_FLOOR_S


@pytest.mark.parametrize("scenario", ["concurrent", "latency"])
def test_the_cell_that_is_mitigated_is_planned_beside_the_model_alone(tmp_path: Path, scenario: str) -> None:
    plan = planned(given(tmp_path), "dlrm", scenario)
    assert plan.scenarios == (("alone", "concurrent") if scenario == "concurrent" else ("alone",))
    assert plan.settings.latency.budget != "off"


@pytest.mark.parametrize(("typed", "budget"), [({}, "off"), ({"latency": "quick"}, "quick")])
def test_prices_are_those_of_the_run_unless_they_are_asked_for_beside_its_cell(
    typed: dict[str, object], budget: str, tmp_path: Path
) -> None:
    begun = planned(given(tmp_path, overrides={**SIDES, "latency": "off"}), "dlrm")
    plan = mitigate._priced(begun, Subject(model="dlrm", scenario="alone"), given(tmp_path, overrides=typed))
    assert plan.settings.latency.budget == budget
    assert replace(plan, settings=begun.settings) == begun
    assert mitigate.without_latency(given(tmp_path, overrides={**SIDES, **typed})).overrides == SIDES


def test_the_command_that_measures_prices_stands_whole() -> None:
    found = MitigationResult(
        model="m", old="a", new="b", scenario="alone", words="alone", answer=MitigationAnswer.FOUND, measure="again"
    )
    blocks = mitigation_document(found, directory="run").parts[0].blocks
    assert [block.form for block in blocks if isinstance(block, Fact) and block.text == "again"] == ["command"]


def test_a_slow_cell_is_not_searched_without_times(tmp_path: Path) -> None:
    begun = planned(given(tmp_path), "dlrm", "latency")
    with pytest.raises(ConfigError, match="nobody would measure it"):
        mitigate._priced(
            begun, Subject(model="dlrm", scenario="latency"), given(tmp_path, overrides={"latency": "off"})
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "dlrm", "some-run", "m/alone"],
        ["some-run"],
        ["--scenario", "alone", "--cell", "m/alone"],
        ["--cell", "m/backward/alone"],
    ],
)
def test_contradicting_words_are_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["--project", str(PROJECT), "mitigate", *arguments, "--out", str(tmp_path)])
    assert code == ExitCode.CONFIGURATION
    assert capsys.readouterr().err.startswith("error: ")
