"""Planning, resuming and rerunning, up to where the first process would start."""

import datetime
from pathlib import Path

import pytest

from harness.commands import compat
from harness.commands.options import Options
from harness.errors import ConfigError, SelectionError
from harness.runtime.progress import Progress
from harness.runtime.run_dir import RunDir

PROJECT = Path(__file__).resolve().parents[3]
NOW = datetime.datetime(2026, 11, 21, 2, 15, tzinfo=datetime.UTC)
SIDES = {"old": "2.1.2", "new": "2.6.0"}
ASKED = ("compat", "-k", "din and not int8")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run that was planned and then interrupted."""
    plan = compat.make_plan(Options(project=PROJECT, overrides=SIDES, expression=ASKED[2], arguments=ASKED))
    run = RunDir.create(tmp_path, "t", NOW)
    run.save_plan(plan)
    run.close()
    return run.path


def _resume(stored: Path, *arguments: str) -> None:
    options = Options(project=PROJECT, out=str(stored.parent), resume="last", arguments=arguments)
    compat.compat(options, Progress(enabled=False))


def test_resuming_with_another_selection_is_refused(stored: Path) -> None:
    with pytest.raises(ConfigError, match="goes on with the plan of that run"):
        _resume(stored, "compat", "--resume", "last", "-k", "dlrm")
    assert stored.exists()


def test_the_plan_holds_the_selection_the_groups_and_every_canary() -> None:
    plan = compat.make_plan(Options(project=PROJECT, overrides=SIDES, expression="din or bert", arguments=()))
    assert {model.name for model in plan.models} >= {"din", "bert"}
    assert sorted(name for members in plan.groups.values() for name in members) == sorted(
        model.name for model in plan.models
    )
    assert any(model.canary is not None for model in plan.canaries)
    assert plan.direction == "backward"


def test_an_older_new_side_is_a_rollback() -> None:
    options = Options(project=PROJECT, overrides={"old": "2.6.0", "new": "2.1.2"})
    assert compat.make_plan(options).direction == "forward"


def test_computes_in_of_an_unknown_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    text = '[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n[tool.compat.computes_in]\ndlmr = "bfloat16"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SelectionError, match="computes_in"):
        compat.make_plan(Options(project=tmp_path))


@pytest.mark.parametrize(
    "cell",
    [
        "din/forward/alone/cpu/default/all",
        "din/backward/alone/cuda/default/all",
        "din/backward/alone/cpu/cpu_fusion/all",
    ],
)
def test_rerunning_a_cell_that_the_run_does_not_have_is_refused(stored: Path, cell: str) -> None:
    with pytest.raises(SelectionError, match="has no cell"):
        compat.rerun(Options(project=PROJECT, out=str(stored.parent)), "last", cell, Progress(enabled=False))
