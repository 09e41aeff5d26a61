"""Batch workers as processes, with a stub of torch: who shares one, and who is blamed for what ends it."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.devices import CPU, Device
from harness.core.environment import Environment
from harness.core.models import ArtifactKind, GivenArtifact
from harness.core.outcome import Outcome
from harness.core.probe import Deadline, ProbeRequest, ProbeResult, WorkerLimits
from harness.checks.hang import watchdog
from harness.probing.batches import may_share
from harness.probing.requests import wire_request
from harness.probing.runner import ZygoteRunner
from harness.store import probe_files
from harness.worker import wire
from tests.programs import stub
from tests.unit.builders import archives

DEAR = Device(name="dear", words="a device whose contexts are dear", torch="cpu", contexts=True)
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def runner(tmp_path: Path, stub_environment: Environment) -> Iterator[ZygoteRunner]:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    yield runner
    runner.close()
    assert runner.unreaped == []
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)
    assert stub.zombies() == []


def request_of(
    folder: Path, name: str, program: Mapping[str, object] | None = None, deadline: Deadline = stub.PATIENT
) -> ProbeRequest:
    return replace(stub.run_request([stub.write_artifact(folder, name, **(program or {}))], deadline), device=DEAR)


def pid_of(result: ProbeResult) -> int:
    first = probe_files.read(Path(result.directory), wire.EVENTS).splitlines()[0]
    return int(json.loads(first)["pid"])


def shared(runner: ZygoteRunner, folder: Path, **guilty: dict[str, object]) -> dict[str, ProbeResult]:
    """Return what becomes of five models one after another, which are healthy but for the ``guilty``."""
    deadline = stub.BRIEF if guilty else stub.PATIENT
    with runner.sharing():
        return {name: runner(request_of(folder, name, guilty.get(name), deadline)) for name in NAMES}


def test_healthy_models_share_one_process_and_leave_what_each_would_leave_alone(
    runner: ZygoteRunner, tmp_path: Path
) -> None:
    results = shared(runner, tmp_path)
    alone = runner(request_of(tmp_path / "alone", "a"))
    assert len({pid_of(result) for result in results.values()}) == 1
    assert [result.contexts for result in results.values()] == [1, 0, 0, 0, 0]
    assert (pid_of(alone) == pid_of(results["a"]), alone.contexts) == (False, 1)
    for name, result in results.items():
        assert result.outcomes == {Outcome.COMPLETED}
        assert Path(result.directory) == tmp_path / "probes" / result.key
        assert [call.output for call in result.models[0].calls] == [call.output for call in alone.models[0].calls]
        assert (result.models[0].model, result.data["switches"]) == (name, alone.data["switches"])
    assert not stub.is_alive(pid_of(results["a"]))
    assert not list((tmp_path / "probes").glob("batch-*"))


def test_models_that_may_share_share_on_a_cpu_too_and_count_no_contexts(runner: ZygoteRunner, tmp_path: Path) -> None:
    asked = [replace(request_of(tmp_path, name), device=CPU, shares=name != "c") for name in ("a", "b", "c")]
    with runner.sharing():
        results = [runner(request) for request in asked]
    assert len({pid_of(result) for result in results[:2]}) == 1
    assert pid_of(results[2]) != pid_of(results[0])
    assert [result.contexts for result in results] == [0, 0, 0]


GUILTY = {
    "segfault": (Outcome.CRASH, "call 1 of example"),
    "exit_at_once": (Outcome.CRASH, "call 1 of example"),
    "hang_asleep": (Outcome.HANG, "call 1 of example"),
    "raise_error": (Outcome.RUNTIME_ERROR, "call"),
    "raise_allocator_error": (Outcome.OUT_OF_MEMORY, "call"),
}


@pytest.mark.parametrize("action", GUILTY)
def test_model_that_fails_in_the_middle_is_blamed_by_itself_and_the_rest_goes_on_in_another_process(
    runner: ZygoteRunner, tmp_path: Path, action: str
) -> None:
    results = shared(runner, tmp_path, c={"calls": {"1": action}})
    (model,) = results["c"].models
    assert (model.outcome, model.phase) == (GUILTY[action][0], "call")
    assert results["c"].failed_after_others == ""
    healthy = [results[name] for name in NAMES if name != "c"]
    assert all(result.outcomes == {Outcome.COMPLETED} for result in healthy)
    assert [result.contexts for result in results.values()] == [1, 0, 1, 1, 0]
    assert len({pid_of(result) for result in results.values()}) == 3


def test_model_that_fails_by_what_another_has_left_is_not_blamed_and_that_is_told(
    runner: ZygoteRunner, tmp_path: Path
) -> None:
    results = shared(runner, tmp_path, b={"calls": {"2": "leave_an_error"}}, c={"load": "raise_what_was_left"})
    assert {result.outcomes for result in results.values()} == {frozenset({Outcome.COMPLETED})}
    assert [bool(result.failed_after_others) for result in results.values()] == [False, False, True, False, False]
    folder, _, others = results["c"].failed_after_others.partition(", ")
    assert others == "after 2 others"
    assert "planted, by an earlier model" in (Path(folder) / wire.EVENTS).read_text()


def test_process_that_has_ended_meanwhile_is_replaced(runner: ZygoteRunner, tmp_path: Path) -> None:
    with runner.sharing():
        first = runner(request_of(tmp_path, "a"))
        os.kill(pid_of(first), signal.SIGKILL)
        second = runner(request_of(tmp_path, "b"))
    assert second.outcomes == {Outcome.COMPLETED}
    assert second.failed_after_others == ""
    assert pid_of(second) != pid_of(first)


def test_each_request_of_a_process_has_the_cpu_time_of_one_alone(runner: ZygoteRunner, tmp_path: Path) -> None:
    limits = WorkerLimits(cpu_s=1.0, memory_bytes=1 << 40)
    working = {"calls": {"1": "work_for_a_while"}}
    with runner.sharing():
        results = [runner(replace(request_of(tmp_path, name, working), limits=limits)) for name in ("a", "b", "c")]
    assert [result.exit_detail for result in results] == ["", "", ""]
    assert len({pid_of(result) for result in results}) == 1


@pytest.mark.parametrize(
    "change",
    [{"device": CPU}, {"verb": "export"}, {"runtime": "libtorch"}, {"beside": 1}],
    ids=lambda change: next(iter(change)),
)
def test_who_has_a_process_alone(tmp_path: Path, change: dict[str, Any]) -> None:
    request = request_of(tmp_path, "a")
    assert may_share(request)
    assert not may_share(replace(request, **change))


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_what_runs_code_as_it_is_loaded_shares_no_process(tmp_path: Path, kind: ArtifactKind) -> None:
    request = request_of(tmp_path, "a")
    (run,) = request.runs
    loading = replace(request, runs=(replace(run, artifact=replace(run.artifact, kind=kind)),))
    given = replace(archives.given(tmp_path / "a"), given=GivenArtifact(path="a", kind=kind))
    adopting = replace(request, verb="adopt", runs=(), declaration=given)
    is_torchscript = kind is ArtifactKind.TORCHSCRIPT
    assert (may_share(loading), may_share(adopting)) == (is_torchscript, is_torchscript)
    assert [wire_request(asked)["runs_code"] for asked in (loading, adopting)] == [not is_torchscript] * 2


def test_repeats_of_a_model_have_processes_of_their_own_and_so_has_every_script(
    runner: ZygoteRunner, tmp_path: Path
) -> None:
    request = request_of(tmp_path, "a")
    with runner.sharing():
        pids = [pid_of(runner(replace(request, repeat=repeat))) for repeat in range(3)]
        scripted = stub.run_request([stub.write_artifact(tmp_path, "b")], stub.PATIENT, threads=2)
        pids += [pid_of(runner(replace(scripted, device=DEAR)))]
    assert len(set(pids)) == 4
