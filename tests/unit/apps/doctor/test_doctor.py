"""The command: what it asks about, its exit code, and what a run's notes get of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.apps.upgrade import execute as running, plan as planning
from harness.project import Project
from harness.apps.doctor import host
from harness.environments import candidates
from harness.apps.doctor import preflight
from harness.core.environment import Environment
from harness.core.machine import Cores, Gpus
from harness.environments.candidate_facts import Candidate, IndexAnswer
from harness.apps.doctor.facts import Disk
from harness.core.plan import Plan
from harness.core.errors import ExitCode
from harness.store.run_folder import RunDir
from harness.machine import gpu
from tests.programs.nvml.machine import H200, Machine
from tests.unit.builders.machines import CORES, LIMITS, MEMORY, WHEEL

PROJECT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def quiet_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU where nothing is wrong, no environment is built, and the index has everything."""
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "envs"))
    monkeypatch.setattr(preflight, "look_at_cores", lambda look_s=0.2: CORES)
    monkeypatch.setattr(host, "look_at_disk", lambda folder: Disk(folder=str(folder), writable=True, free=100 << 30))
    monkeypatch.setattr(host, "look_at_memory", lambda: MEMORY)
    monkeypatch.setattr(host, "look_at_limits", lambda: LIMITS)
    monkeypatch.setattr(gpu, "survey", lambda visible: Gpus())
    monkeypatch.setattr(candidates, "ask_index", lambda spec, **_: IndexAnswer(found=spec.release != "2.99.0"))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["--project", str(PROJECT), "doctor", *arguments, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def environments(answer: dict[str, Any]) -> list[str]:
    return list(answer["checkup"]["environments"])


def test_the_configured_pair_is_judged_where_nothing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = told(capsys)
    assert (code, answer["exit_code"], answer["blocked"]) == (0, 0, [])
    assert environments(answer) == ["torch 2.1.2", "torch 2.6.0"]


def test_releases_and_sides_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert environments(told(capsys, "2.6", "2.15.0", "2.6.0")[1]) == ["torch 2.6.0", "torch 2.15.0"]
    assert environments(told(capsys, "--new", "2.11.0")[1]) == ["torch 2.1.2", "torch 2.11.0"]


def test_a_release_that_the_index_does_not_have_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = told(capsys, "2.6.0", "2.99.0")
    assert (code, answer["exit_code"], answer["blocked"]) == (ExitCode.ENVIRONMENT, 3, ["torch 2.99.0"])


def test_releases_that_share_no_python_are_all_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = told(capsys, "1.4.0", "2.15.0")
    assert (code, answer["blocked"]) == (3, ["torch 1.4.0", "torch 2.15.0"])


def test_a_release_that_no_python_suits_does_not_take_the_others_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, answer = told(capsys, "1.0.0", "2.6.0")
    assert (code, answer["blocked"]) == (3, ["torch 1.0.0"])


def test_a_ready_made_interpreter_is_judged(capsys: pytest.CaptureFixture[str], stub_environment: Environment) -> None:
    code, answer = told(capsys, "--env", f"old={stub_environment.interpreter}")
    assert (code, environments(answer)) == (0, ["old", "torch 2.6.0"])
    assert told(capsys, "prod", "2.6.0", "--env", "prod=/nowhere/python")[0] == 3


@pytest.mark.parametrize(
    "arguments", [("2.six",), ("2.6.0", "--env", "old=/bin/python"), ("--env", "nobody=/bin/python")]
)
def test_nonsense_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["--project", str(PROJECT), "doctor", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_sides_beside_releases_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--project", str(PROJECT), "doctor", "--old", "2.1.2", "2.6.0"]) == 2
    assert "--old beside 2.6.0" in capsys.readouterr().err


def test_the_text_ends_with_what_it_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--project", str(PROJECT), "doctor", "2.6.0"]) == 0
    said = capsys.readouterr().out
    assert "READY  (exit code 0: torch 2.6.0 can be provisioned here;" in said
    assert "\x1b" not in said


def test_a_gpu_with_an_old_driver_is_judged_through_the_whole_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(gpu, "survey", machine.has(H200).survey)
    code, answer = told(capsys, "2.6.0", "2.15.0")
    assert (code, answer["blocked"]) == (3, ["torch 2.15.0"])
    assert told(capsys, "2.6.0", "2.15.0", "--device", "cpu")[0] == 0


def test_a_run_gets_what_is_wrong_as_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Project(folder=PROJECT, overrides={"old": "2.1.2", "new": "2.6.0"}, expression="din", arguments=())
    plan = planning.make_plan(options)
    assert preflight.machine_notes(plan) == ()
    looks: list[float] = []

    def look(look_s: float) -> Cores:
        looks.append(look_s)
        return replace(CORES, quota=2.0, stolen=None)

    monkeypatch.setattr(preflight, "look_at_cores", look)
    (note,) = preflight.machine_notes(plan)
    assert note.startswith("cores: 16 of 16 may be used, with a CPU quota of 2. The kernel stops all threads")
    assert looks == [0]  # nothing is waited for


def test_a_run_stores_them_in_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "look_at_memory", lambda: replace(MEMORY, available=10**9))
    seen: list[Plan] = []

    def execute(plan: Plan, run_dir: RunDir, options: Project) -> None:
        seen.extend((plan, run_dir.load_plan()))

    monkeypatch.setattr(running, "execute", execute)
    sides = {"old": "2.1.2", "new": "2.6.0"}
    options = Project(folder=PROJECT, overrides=sides, expression="din", arguments=(), out=str(tmp_path))
    running.compat(options)
    first, stored = seen
    assert first.notes == stored.notes
    assert first.notes[-1].startswith("memory: 64.0 GB, 1.0 GB of it available, for ")


def test_what_is_wrong_with_one_environment_stays_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine(spec: Any, *_: object, **__: object) -> Candidate:
        return Candidate(name=spec.name, built=True, python="3.11", wheel=replace(WHEEL, glibc="2.99"))

    monkeypatch.setattr(candidates, "examine", examine)
    assert told(capsys, "2.6.0")[1]["blocked"] == ["torch 2.6.0"]
