"""A worker as a process: what it writes first and last. With a stub of torch; under Python 3.8 too, if there is one."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checks.hang import watchdog
from harness.core.environment import Environment
from harness.core.outcome import Outcome
from harness.core.probe import ServingProfile
from harness.environments.interpreters import find_pythons, verified_python
from harness.core.errors import EnvironmentUnavailable
from harness.checks.latency.processes import BenchmarkProcess
from harness.probing import processes
from harness.probing.runner import ZygoteRunner
from harness.serving.scenarios import INITIALIZATIONS, CYCLES, copies
from harness.store import probe_files
from harness.worker import wire
from tests.programs import stub


@pytest.fixture(scope="module", params=["3.8", f"{sys.version_info.major}.{sys.version_info.minor}"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    try:
        python = verified_python(request.param, find_pythons())
    except EnvironmentUnavailable as error:
        pytest.skip(f"no Python {request.param} here: {error}")
    return stub.make_environment(tmp_path_factory.mktemp("env") / "env", python=python, minor=request.param)


@pytest.fixture
def runner(tmp_path: Path, environment: Environment) -> Iterator[ZygoteRunner]:
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes", watchdog)
    yield runner
    runner.close()


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in probe_files.read(folder, wire.EVENTS).splitlines()]


def work_in(folder: Path, environment: Environment, **request: object) -> "subprocess.CompletedProcess[bytes]":
    """Run a worker to its end in the way the controller starts it."""
    folder.mkdir(exist_ok=True)
    (folder / wire.REQUEST).write_text(json.dumps({"protocol": wire.PROTOCOL, **request}))
    command = [environment.interpreter, "-s", "-u", str(processes.BOOTSTRAP), str(folder), str(os.getpid())]
    return subprocess.run(command, input=b"", capture_output=True, timeout=60, cwd=folder)


def test_probe_begins_with_hello_and_ends_with_bye(runner: ZygoteRunner, tmp_path: Path) -> None:
    result = runner(stub.run_request([stub.write_artifact(tmp_path, "model", answer=[1, "a", None])], stub.PATIENT))
    events = events_of(Path(result.directory))
    assert [event["ev"] for event in events[:2]] == ["hello", "begin"]
    assert events[-1]["ev"] == "bye"
    assert [event["ns"] for event in events] == sorted(event["ns"] for event in events)
    assert result.outcome is Outcome.COMPLETED
    recorded = probe_files.read(Path(result.directory), f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}").splitlines()
    assert [json.loads(line)["tree"] for line in recorded] == [["list", [["int", 1], ["str", "a"], ["none", None]]]] * 3


def test_every_verb_works(runner: ZygoteRunner, environment: Environment, tmp_path: Path) -> None:
    assert runner.fingerprint("old", ServingProfile()).torch == "2.1.2"
    request = stub.run_request([stub.write_artifact(tmp_path, "model")], stub.PATIENT, verb="benchmark")
    process = BenchmarkProcess("old", environment, request, tmp_path / "process")
    try:
        assert process.answer(60.0) == {"ready": True, "gpu_uuid": None}
        assert len(process.order(60.0, order="load", model="model", calls=5)["calls_s"]) == 5
        assert len(process.order(60.0, order="block", model="model", calls=7)["times_ns"]) == 7
        assert len(process.order(60.0, order="shape", model="model", set="example", calls=2)["calls_s"]) == 2
        together = process.order(60.0, order="together", model="model", threads=2, seconds=0.01, cores=[])
        assert together["calls"] >= 2
        assert "CPU" in process.order(60.0, order="replay", model="model", calls=5)["skipped"]
        assert process.order(60.0, order="drop", model="model") == {"dropped": True}
    finally:
        process.close()


@pytest.mark.parametrize("scenario", ["concurrent", "shared", "while_serving", "python_keeping", "reinit"])
def test_threads_of_a_script_come_to_their_end_under_every_python(
    runner: ZygoteRunner, tmp_path: Path, scenario: str
) -> None:
    script = INITIALIZATIONS[scenario].write(["a", "b"], 3)
    names = copies(script)
    made = [stub.write_artifact(tmp_path, name, **({"load": "raise_error"} if name == "b#1" else {})) for name in names]
    result = runner(replace(stub.run_request(made, stub.PATIENT), script=script))
    assert result.outcome is Outcome.COMPLETED
    failed = {item.model for item in result.models if item.outcome is not Outcome.COMPLETED}
    assert failed == ({"b#1"} if ("load", "b#1") in itertools.chain(*script.threads) else set())
    assert len(result.memory) == (CYCLES if scenario == "reinit" else 0)


@pytest.mark.parametrize(
    "action",
    [
        pytest.param("hang_asleep", marks=pytest.mark.slow),
        "segfault",
        "raise_error",
        "exit_politely",
        "leave_grandchild",
    ],
)
def test_misbehaviour_is_reported_alike_under_every_python(runner: ZygoteRunner, tmp_path: Path, action: str) -> None:
    expected = {
        "hang_asleep": Outcome.HANG,
        "segfault": Outcome.CRASH,
        "raise_error": Outcome.RUNTIME_ERROR,
        "exit_politely": Outcome.RUNTIME_ERROR,
        "leave_grandchild": Outcome.COMPLETED,
    }
    artifact = stub.write_artifact(tmp_path, "model", calls={"1": action})
    assert runner(stub.run_request([artifact], stub.BRIEF)).models[0].outcome is expected[action]


@pytest.mark.parametrize("name", ["save", "__class__", "eval"])
def test_only_methods_of_the_torchscript_are_called(runner: ZygoteRunner, tmp_path: Path, name: str) -> None:
    artifact = stub.write_artifact(tmp_path, "model")
    index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
    index.write_text(index.read_text().replace('"forward"', json.dumps(name)))
    resetting = replace(stub.write_artifact(tmp_path, "resetting"), reset=name)
    for wrong in (artifact, resetting):
        (model,) = runner(stub.run_request([wrong], stub.PATIENT)).models
        assert model.failure is not None
        assert (model.failure.type, name in model.failure.message) == ("AttributeError", True)


def test_hello_comes_before_the_import_of_torch(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="exit_at_once")
    work_in(tmp_path / "run", environment, verb="serve")
    assert [event["ev"] for event in events_of(tmp_path / "run")] == ["hello", "begin"]


def test_only_answers_reach_standard_output(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="print_garbage")
    done = work_in(tmp_path / "run", environment, verb="serve")
    assert json.loads(done.stdout) == {"ready": True}
    assert b"garbage" in done.stderr


def test_unknown_verb_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="segfault")
    done = work_in(tmp_path / "run", environment, verb="dance")
    assert done.returncode == 2
    assert [event["ev"] for event in events_of(tmp_path / "run")] == ["hello", "error"]


def test_another_protocol_is_refused(tmp_path: Path, stub_environment: Environment) -> None:
    done = work_in(tmp_path / "run", stub_environment, verb="serve", protocol=wire.PROTOCOL + 1)
    assert done.returncode == 2


def test_import_is_a_phase_whose_error_is_data(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="raise_error")
    assert work_in(tmp_path / "run", environment, verb="serve").returncode == 0
    (error,) = [event for event in events_of(tmp_path / "run") if event["ev"] == "error"]
    assert (error["phase"], error["type"], error["message"]) == ("import", "RuntimeError", "planted\nsecond line")
    assert "in raise_error" in error["traceback"]


def test_worker_folder_shadows_nothing(tmp_path: Path) -> None:
    """It has modules named ``events`` and ``switches``; those of the environment must win."""
    environment = stub.make_environment(tmp_path / "env")
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "events.py").write_text("raise RuntimeError('these are the events of the environment')")
    with (site / "torch" / "__init__.py").open("a") as package:
        package.write("import events\n")
    work_in(tmp_path / "run", environment, verb="serve")
    (error,) = [event for event in events_of(tmp_path / "run") if event["ev"] == "error"]
    assert error["message"] == "these are the events of the environment"
