"""Artifacts that do harm when they are loaded: each costs its own result, the healthy one beside it keeps its own."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.core.devices import Device
from harness.core.models import Artifact
from harness.core.probe import Deadline, ModelResult, ModelRun, ProbeRequest, ProbeResult, WorkerLimits
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.store.run_folder import LOCK, RunDir
from harness.store import probe_files
from harness.worker import wire
from tests.integration.artifacts.hostile import files
from tests.programs import stub
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
LIMITS = WorkerLimits(memory_bytes=2 << 30, cpu_s=60, file_bytes=1 << 30, network=False)
PATIENT = Deadline(load_s=60, call_s=60, total_s=120)
BRIEF = Deadline(load_s=1.5, call_s=1.5, total_s=60)
LOOK_DEADLINE_S = 30


@dataclass(frozen=True)
class Stand:
    """Both workers of torch 2.6.0, and the artifacts of ``hostile/models.py``."""

    runner: ZygoteRunner
    artifacts: dict[str, Artifact]
    folder: Path

    def request(self, artifact: Artifact, worker: str = "python", *, deadline: Deadline = PATIENT) -> ProbeRequest:
        run = ModelRun(artifact=artifact, schedule=(("example", 2),))
        return replace(replay.asked("run", worker, runs=(run,)), limits=LIMITS, deadline=deadline)

    def probe(self, artifact: Artifact, worker: str = "python", *, deadline: Deadline = PATIENT) -> ModelResult:
        (model,) = self.runner(self.request(artifact, worker, deadline=deadline)).models
        return model

    def given(self, path: Path) -> Artifact:
        return replace(self.artifacts["healthy"], model=path.stem, path=str(path), digest=path.stem)


@pytest.fixture(scope="module")
def stand(new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / LOCK).touch()
    with replay.both_workers(new_python, folder / "probes") as runner:
        yield Stand(runner, replay.export(runner, read_fixtures(HERE / "hostile")), folder)
    assert not stub.processes_naming(folder)


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_broken_files_fail_at_loading_and_nothing_else_does(stand: Stand, worker: str) -> None:
    good = Path(stand.artifacts["healthy"].path)
    vanished = stand.folder / "vanished.pt"
    vanished.write_bytes(good.read_bytes())
    assert stand.probe(replace(stand.given(vanished), digest=f"before {worker}"), worker).outcome == "completed"
    vanished.unlink()
    broken = [
        files.truncated(good, stand.folder / "truncated.pt"),
        files.bit_flipped(good, stand.folder / "bit_flipped.pt"),
        vanished,
    ]
    results = [stand.probe(artifact, worker) for artifact in (*map(stand.given, broken), stand.artifacts["healthy"])]
    assert [item.outcome for item in results] == [*["load_error"] * 3, "completed"]


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_what_eats_memory_is_out_of_memory_and_costs_its_own_row(stand: Stand, worker: str) -> None:
    good = Path(stand.artifacts["healthy"].path)
    bomb = stand.given(files.bomb(good, stand.folder / "bomb.pt", 3 << 30))
    hungry = [bomb, stand.artifacts["eats_at_load"], stand.artifacts["eats_when_called"]]
    results = [stand.probe(artifact, worker) for artifact in (*hungry, stand.artifacts["healthy"])]
    assert [item.outcome for item in results] == [*["out_of_memory"] * 3, "completed"]
    assert [item.phase for item in results[:3]] == [wire.LOAD, wire.LOAD, wire.CALL]


@pytest.mark.parametrize("worker", [pytest.param("python", marks=pytest.mark.slow), "libtorch"])
def test_a_setstate_that_hangs_is_looked_into_while_its_process_is_limited(stand: Stand, worker: str) -> None:
    request = stand.request(stand.artifacts["hangs_at_load"], worker, deadline=BRIEF)
    results: list[ProbeResult] = []
    asking = threading.Thread(target=lambda: results.append(stand.runner(request)))
    asking.start()
    seen = look_at_the_hanging_one(stand.folder / "probes")
    asking.join()
    (model,) = results[0].models
    assert (model.outcome, model.phase) == ("hang", wire.LOAD)
    assert results[0].evidence is not None
    assert results[0].evidence.stacks
    assert seen == {
        "Seccomp": "2",
        "NoNewPrivs": "1",
        "Max data size": str(LIMITS.memory_bytes),
        "Max cpu time": "60",
        "Max file size": str(LIMITS.file_bytes),
        "Max core file size": "0",
        "oom_score_adj": "1000",
    }
    assert stand.probe(stand.artifacts["healthy"], worker).outcome == "completed"


def look_at_the_hanging_one(probes: Path) -> dict[str, str]:
    """Return what the kernel says of the limits of the process that is loading ``hangs_at_load``."""
    limit = time.monotonic() + LOOK_DEADLINE_S
    while time.monotonic() < limit:
        for path in probes.glob(f"*/{wire.EVENTS}"):
            text = path.read_text()
            if '"phase":"load"' in text and "hangs_at_load" in text:
                pid = json.loads(text.splitlines()[0])["pid"]
                try:
                    return limits_of(pid)
                except FileNotFoundError:  # of the other worker, which has ended
                    continue
        time.sleep(0.02)
    raise AssertionError("nothing was seen of it")


def limits_of(pid: int) -> dict[str, str]:
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    found = {name: status[name].strip() for name in ("Seccomp", "NoNewPrivs")}
    for line in (process / "limits").read_text().splitlines():
        name, *values = line.split("  ")
        if name in ("Max data size", "Max cpu time", "Max file size", "Max core file size"):
            found[name] = next(value for value in values if value).strip()
    return {**found, "oom_score_adj": (process / "oom_score_adj").read_text().strip()}


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_a_bare_file_name_leads_to_no_evidence(stand: Stand, worker: str) -> None:
    result = stand.runner(stand.request(stand.artifacts["writes_by_a_bare_name"], worker))
    assert result.models[0].outcome == "completed"
    folder = Path(result.directory)
    assert json.loads(probe_files.read(folder, wire.EVENTS).splitlines()[0])["ev"] == "hello"
    assert (folder / wire.WORK / wire.EVENTS).read_bytes() == b"[" * 100000


@pytest.mark.parametrize("worker", replay.WORKERS)
@pytest.mark.parametrize("where", ["kept copy", "artifact", "inputs", "report", "beside"])
def test_an_artifact_cannot_write_what_other_probes_have_left(
    stand: Stand, worker: str, where: str, tmp_path: Path
) -> None:
    healthy = stand.artifacts["healthy"]
    kept = RunDir(stand.folder).write("given/other.pt", b"kept")
    inputs = Path(healthy.inputs_dir, wire.TENSORS_BIN)
    place = {"kept copy": kept, "artifact": Path(healthy.path), "inputs": inputs, "report": stand.folder / "report"}
    target = place.get(where, tmp_path / "beside")
    before = target.read_bytes() if target.exists() else None
    told = told_to_write(stand.artifacts["writes_to_any_path"], target, tmp_path)
    result = stand.runner(stand.request(replace(told, inputs_digest=f"{worker} {where}"), worker))
    if "results" in result.data.get("limits", {}):
        pytest.skip(f"no Landlock here: {result.data['limits']['results']}")
    assert result.models[0].outcome == "completed"  # aten::save does not say that it could not write
    assert ((target.read_bytes() if target.exists() else None) == before) is (where != "beside")


def told_to_write(writer: Artifact, target: Path, folder: Path) -> Artifact:
    shutil.copytree(writer.inputs_dir, folder / "inputs")
    index = folder / "inputs" / wire.TENSORS_INDEX
    index.write_text(index.read_text().replace('"a-file"', json.dumps(str(target))))
    return replace(writer, inputs_dir=str(folder / "inputs"))


def test_an_artifact_cannot_write_what_others_of_its_own_process_have_left(stand: Stand, tmp_path: Path) -> None:
    dear = Device(name="dear", words="a device whose contexts are dear", torch="cpu", contexts=True)
    with stand.runner.sharing():
        first = stand.runner(replace(stand.request(stand.artifacts["healthy"]), device=dear))
        target = Path(first.directory, probe_files.PACKED)
        before = target.read_bytes()
        told = told_to_write(stand.artifacts["writes_to_any_path"], target, tmp_path)
        second = stand.runner(replace(stand.request(told), device=dear))
    if "results" in second.data.get("limits", {}):
        pytest.skip(f"no Landlock here: {second.data['limits']['results']}")
    assert [result.models[0].outcome for result in (first, second)] == ["completed", "completed"]
    assert (first.contexts, second.contexts) == (1, 0)
    assert target.read_bytes() == before


@pytest.mark.parametrize("worker", replay.WORKERS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("answers_much", "answers with more than 200000 values, which are not compared"),
        ("answers_a_long_text", "answers with what takes more than 4 MiB to describe, which is not compared"),
    ],
)
def test_an_answer_that_is_too_large_to_be_compared_is_reported(
    stand: Stand, worker: str, name: str, words: str
) -> None:
    result = stand.probe(stand.artifacts[name], worker)
    assert (result.outcome, result.phase) == ("protocol_error", wire.RECORD)
    assert result.failure is not None
    assert (result.failure.type, result.failure.message) == ("TooLarge", words)


@pytest.mark.parametrize("worker", replay.WORKERS)
@pytest.mark.parametrize("changes", [{"offset": -16}, {"offset": 1 << 62}, {"nbytes": 8}, {"shape": [3, 3]}, {}])
def test_recorded_inputs_that_lie_outside_of_their_file_are_refused(
    stand: Stand, worker: str, changes: dict[str, object], tmp_path: Path
) -> None:
    good = stand.artifacts["healthy"]
    inputs = tmp_path / "inputs"
    shutil.copytree(good.inputs_dir, inputs)
    line = json.loads((inputs / wire.TENSORS_INDEX).read_text())
    line["tree"][1][0][1].update(changes)
    (inputs / wire.TENSORS_INDEX).write_text(json.dumps(line) + "\n")
    result = stand.probe(replace(good, inputs_dir=str(inputs), inputs_digest=f"{worker} {changes}"), worker)
    if not changes:
        assert result.outcome == "completed"
        return
    assert (result.outcome, result.phase) == ("runtime_error", wire.PREPARE)
    assert result.failure is not None
    assert "a recorded input is damaged" in result.failure.message


def test_cpu_time_that_is_used_up_is_named(stand: Stand) -> None:
    request = stand.request(stand.artifacts["computes_for_ever"])
    result = stand.runner(replace(request, limits=replace(LIMITS, cpu_s=1)))
    assert result.models[0].outcome == "crash"
    assert result.exit_detail == "signal SIGXCPU: its CPU time limit of 1 s"


def test_the_zygote_itself_is_not_limited(stand: Stand) -> None:
    stand.probe(stand.artifacts["healthy"], "python")  # so that there is one
    (zygote,) = stand.runner._zygotes.values()
    seen = limits_of(zygote._process.pid)
    assert (seen["Seccomp"], seen["NoNewPrivs"], seen["Max data size"]) == ("0", "0", "unlimited")
