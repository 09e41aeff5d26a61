"""What ``bisect`` and ``mitigate`` refuse before any process starts, and which deadline their runs have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.config.selection import find_model
from harness.core.errors import ConfigError, SelectionError
from harness.run.cell import bisect, mitigate
from harness.run.options import Options
from harness.run.plan import make_plan
from harness.store.run_folder import RunDir
from harness.machine import clock
from harness.machine.progress import Progress

PROJECT = Path(__file__).resolve().parents[4]
SIDES = {"old": "2.1.2", "new": "2.6.0"}
COMMANDS: dict[str, Callable[..., Any]] = {"bisect": bisect.bisect, "mitigate": mitigate.mitigate}


def given(folder: Path, **more: Any) -> Options:
    return Options(**{"project": PROJECT, "overrides": SIDES, "out": str(folder), **more})


@pytest.fixture(params=COMMANDS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def search(verb: str, options: Options, **more: Any) -> None:
    COMMANDS[verb](options, Progress(enabled=False), **more)


def test_one_model_at_a_time(tmp_path: Path, verb: str) -> None:
    with pytest.raises(SelectionError, match="--model"):
        search(verb, given(tmp_path))
    assert not list(tmp_path.iterdir())


def test_an_unknown_model_is_refused(tmp_path: Path, verb: str) -> None:
    with pytest.raises(SelectionError, match="dlrn"):
        search(verb, given(tmp_path), model="dlrn")


def test_golden_records_leave_no_old_release_to_ask(tmp_path: Path, verb: str) -> None:
    with pytest.raises(ConfigError, match="old release itself"):
        search(verb, given(tmp_path, golden="golden"), model="dlrm")


@pytest.mark.parametrize("other", ["compat", "dlrm-rerun"])
def test_a_run_of_another_command_is_not_resumed(tmp_path: Path, verb: str, other: str) -> None:
    with RunDir.create(tmp_path, other, clock.utc_now()) as run_dir:
        run_dir.save_plan(make_plan(given(tmp_path, expression="dlrm")))
    with pytest.raises(ConfigError, match=f"no run of {verb}"):
        search(verb, given(tmp_path, resume="last", overrides={}))


@pytest.mark.parametrize(
    ("verb", "options", "more", "named"),
    [
        ("bisect", {"overrides": SIDES, "expression": "dlrm"}, {}, "--model, --old, --new, -k"),
        ("mitigate", {"overrides": {}}, {"scenario": "latency", "pairs": True}, "--model, --pairs, --scenario"),
    ],
)
def test_what_would_be_ignored_beside_resume_is_refused(
    tmp_path: Path, verb: str, options: dict[str, Any], more: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=f"{named} beside --resume") as caught:
        search(verb, given(tmp_path, resume="last", **options), model="dlrm", **more)
    assert f"{verb} --resume last alone" in caught.value.hint


def floor_s(verb: str, options: Options) -> float:
    if verb == "bisect":
        return bisect._of_model(options, "dlrm").settings.deadlines.floor_s
    plan = mitigate._of_model(options, "alone")
    subject = mitigate.Subject(model="dlrm", scenario="alone")
    return mitigate._about(plan, subject, find_model(plan.models, "dlrm")).settings.deadlines.floor_s


def test_a_deadline_that_was_asked_for_is_kept(tmp_path: Path, verb: str) -> None:
    assert floor_s(verb, given(tmp_path, assignments=("deadlines.floor_s=25",))) == 25.0


@pytest.mark.parametrize(
    "more", [{"assignments": ("deadlines.floor_s=60",)}, {"overrides": {**SIDES, "deadlines.floor_s": "60"}}]
)
def test_that_of_a_run_is_kept_too_where_it_was_asked_for(tmp_path: Path, more: dict[str, Any]) -> None:
    assert floor_s("bisect", given(tmp_path, **more)) == 60.0
