"""The C++ worker beside the Python worker, on one torch release: the same requests, the same events, the same bytes."""

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.core.models import Artifact
from harness.core.probe import ModelRun, ProbeResult
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.store import probe_files
from harness.worker import wire
from tests.programs import stub
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
TRANSCRIPTS = {transcript.path.stem: transcript for transcript in replay.transcripts()}
CASES = [(name, worker) for name, transcript in TRANSCRIPTS.items() for worker in transcript.workers]

# Said by each worker's own way in: pybind11's conversion there, the method's schema here. And torch's list of the
# kernels for an operator names those of libraries that only Python loads.
WORDED_OTHERWISE = {"raises_wrong_type", "raises_surplus_argument", "raises_not_implemented"}


@dataclass(frozen=True)
class Stand:
    """Both workers of torch 2.6.0, and the models of the transcripts exported there."""

    runner: ZygoteRunner
    artifacts: dict[str, Artifact]
    binary: Path

    def run(self, name: str, worker: str) -> ProbeResult:
        return self.runner(TRANSCRIPTS[name].request(self.artifacts, worker))


@pytest.fixture(scope="module")
def stand(new_workers: ZygoteRunner) -> Stand:
    return Stand(new_workers, replay.export(new_workers, replay.models()), new_workers.native["old"])


@pytest.mark.parametrize(("name", "worker"), CASES)
def test_transcript_comes_back_as_it_was_recorded(stand: Stand, name: str, worker: str) -> None:
    result = stand.run(name, worker)
    answer, recorded = json.loads(json.dumps(replay.answer(result))), TRANSCRIPTS[name].recorded
    assert result.outcome == "completed", result.exit_detail
    assert answer["events"] == recorded["events"]
    assert answer["switches"] == recorded["switches"]
    assert answer["outputs"] == recorded["outputs"]


def test_errors_carry_the_same_words(stand: Stand) -> None:
    found = [replay.messages(Path(stand.run("errors", worker).directory)) for worker in replay.WORKERS]
    python, libtorch = ([item for item in messages if item[0] not in WORDED_OTHERWISE] for messages in found)
    assert libtorch == python
    assert [item[:2] for item in found[0]] == [item[:2] for item in found[1]]


@pytest.mark.slow
def test_every_model_of_the_zoo_answers_bit_for_bit_alike(stand: Stand) -> None:
    artifacts = replay.export(stand.runner, read_fixtures(PROJECT / "fixtures" / "zoo"))
    runs = tuple(
        ModelRun(artifact=artifact, schedule=tuple((input_set.name, 3) for input_set in artifact.input_sets))
        for artifact in artifacts.values()
    )
    folders = [Path(stand.runner(replay.asked("run", worker, runs=runs)).directory) for worker in replay.WORKERS]
    python, libtorch = map(replay.outputs, folders)
    assert len(artifacts) >= 60
    assert [key for key in python if python[key] != libtorch.get(key)] == []
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        first, second = (probe_files.read(folder, f"{wire.OUTPUTS}/{name}") for folder in folders)
        assert first == second


def test_memory_is_reported_in_bytes(stand: Stand) -> None:
    for worker in replay.WORKERS:
        ((label, resident, _),) = stand.run("threads", worker).memory
        assert label == "end"
        assert 20e6 < resident < 8e9


def test_serving_thread_beats_while_others_load(stand: Stand) -> None:
    for worker in replay.WORKERS:
        folder = Path(stand.run("while_serving", worker).directory)
        events = [json.loads(line) for line in probe_files.read(folder, wire.EVENTS).splitlines()]
        beats = [event["calls"] for event in events if event["ev"] == "beat"]
        assert beats
        assert beats == sorted(beats)


def test_cpu_time_is_that_of_the_phase(stand: Stand) -> None:
    for worker in ("libtorch", "python"):
        folder = Path(stand.run("while_serving", worker).directory)
        events = [json.loads(line) for line in probe_files.read(folder, wire.EVENTS).splitlines()]
        (served,) = [event for event in events if event["ev"] == "end" and event["phase"] == wire.SERVE]
        assert served["cpu_ns"] > 10_000_000  # it calls without a pause for 450 ms
        begins = [event for event in events if event["ev"] == "begin" and event["phase"] == wire.SERVE]
        assert begins[0]["tid"] > 0
        assert begins[0]["ident"] != 0


def start(binary: Path, folder: Path, parent: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(binary), str(folder), str(parent)], capture_output=True, text=True, timeout=60, check=False
    )


def test_worker_without_its_controller_leaves(stand: Stand, tmp_path: Path) -> None:
    done = start(stand.binary, tmp_path, os.getppid())
    assert done.returncode == wire.EXIT_ORPHANED
    assert not (tmp_path / wire.EVENTS).exists()


def test_worker_ignores_and_blocks_nothing_that_its_controller_does(stand: Stand, tmp_path: Path) -> None:
    request = tmp_path / wire.REQUEST
    os.mkfifo(request)  # it stands there until somebody writes
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    try:
        worker = subprocess.Popen([str(stand.binary), str(tmp_path), str(os.getpid())], stderr=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGHUP, ignored)
    with worker:
        writing: list[int] = []

        def reads() -> bool:
            with contextlib.suppress(OSError):
                writing.append(os.open(request, os.O_WRONLY | os.O_NONBLOCK))
            return bool(writing)

        try:
            assert stub.eventually(reads)
            lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
            masks = {line[:6]: int(line[7:], 16) for line in lines if line.startswith(("SigBlk", "SigIgn"))}
            assert masks == {"SigBlk": 0, "SigIgn": 0}
        finally:
            worker.kill()
            for descriptor in writing:
                os.close(descriptor)


def test_worker_without_a_request_says_so(stand: Stand, tmp_path: Path) -> None:
    done = start(stand.binary, tmp_path, os.getpid())
    assert done.returncode == wire.EXIT_BROKEN
    assert "request.json" in done.stderr


@pytest.mark.parametrize("request_", [{"protocol": wire.PROTOCOL, "verb": "export"}, {"protocol": 1, "verb": "run"}])
def test_worker_refuses_what_it_cannot_serve(stand: Stand, tmp_path: Path, request_: dict[str, object]) -> None:
    (tmp_path / wire.REQUEST).write_text(json.dumps(request_))
    done = start(stand.binary, tmp_path, os.getpid())
    hello, error = (json.loads(line) for line in (tmp_path / wire.EVENTS).read_text().splitlines())
    assert done.returncode == 2
    assert (hello["ev"], hello["worker"], hello["python"]) == ("hello", "libtorch", None)
    assert hello["torch"].startswith("2.6.0")
    assert (error["ev"], error["type"], error["phase"]) == ("error", "ProtocolError", "")
