"""What ``bisect`` refuses before any process starts, and the plan that it makes."""

from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.run.cell import bisect
from harness.run.plan import make_plan
from harness.run.options import Options
from harness.errors import ConfigError, SelectionError
from harness.probing.requests import IMPATIENT_FLOOR_S
from harness.store.run_folder import RunDir
from harness.system import clock
from harness.system.progress import Progress

PROJECT = Path(__file__).resolve().parents[4]
SIDES = {"old": "2.1.2", "new": "2.6.0"}


def search(options: Options, **more: Any) -> None:
    bisect.bisect(options, Progress(enabled=False), **more)


def given(tmp_path: Path, **more: Any) -> Options:
    return Options(project=PROJECT, overrides=SIDES, out=str(tmp_path), **more)


def test_one_model_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="--model"):
        search(given(tmp_path))
    assert not list(tmp_path.iterdir())


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="dlrn"):
        search(given(tmp_path), model="dlrn")


def test_a_run_of_another_command_is_not_resumed(tmp_path: Path) -> None:
    with RunDir.create(tmp_path, "compat", clock.utc_now()) as run_dir:
        run_dir.save_plan(make_plan(given(tmp_path, expression="dlrm")))
    with pytest.raises(ConfigError, match="no run of bisect"):
        search(Options(project=PROJECT, out=str(tmp_path), resume="last"))


def test_what_would_be_ignored_beside_resume_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--model, --old, --new, -k beside --resume") as caught:
        search(given(tmp_path, resume="last", expression="dlrm"), model="dlrm")
    assert "bisect --resume last alone" in caught.value.hint


def test_the_plan_is_of_the_one_model_alone(tmp_path: Path) -> None:
    plan = bisect._of_model(given(tmp_path), "dlrm")
    assert [model.name for model in plan.models] == ["dlrm"]
    assert (plan.scenarios, plan.planted_defects, plan.settings.latency.budget) == (("alone",), (), "off")
    assert plan.settings.deadlines.floor_s == IMPATIENT_FLOOR_S


def test_a_deadline_that_was_asked_for_is_kept(tmp_path: Path) -> None:
    plan = bisect._of_model(given(tmp_path, assignments=("deadlines.floor_s=25",)), "dlrm")
    assert plan.settings.deadlines.floor_s == 25.0


@pytest.mark.parametrize(
    "more", [{"assignments": ("deadlines.floor_s=60",)}, {"overrides": {**SIDES, "deadlines.floor_s": "60"}}]
)
def test_that_of_a_run_is_kept_too_where_it_was_asked_for(tmp_path: Path, more: dict[str, Any]) -> None:
    options = Options(**{"project": PROJECT, "overrides": SIDES, "out": str(tmp_path), **more})
    assert bisect._of_model(options, "dlrm").settings.deadlines.floor_s == 60.0


def test_the_time_is_compared_where_that_is_asked_for(tmp_path: Path) -> None:
    options = Options(project=PROJECT, overrides={**SIDES, "latency": "thorough"}, out=str(tmp_path))
    plan = bisect._of_model(options, "dlrm")
    assert (plan.scenarios, plan.is_timed, plan.settings.latency.budget) == (("alone",), True, "thorough")
    silent = bisect._of_model(given(tmp_path), "dlrm")
    assert bisect._alone(silent, silent.models[0], is_timed=True).settings.latency.budget == "quick"
