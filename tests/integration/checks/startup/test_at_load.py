"""What both workers do to a module that was just loaded, and locks around loads and first calls, in torch 2.6.0."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.models import Artifact
from harness.core.probe import ModelRun, ProbeResult, Script, ServingProfile
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.serving.scenarios import START_UP, in_turn
from harness.store import probe_files
from harness.worker import wire
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[4]
MODEL = "anchor_detector"


@dataclass(frozen=True)
class Stand:
    runner: ZygoteRunner
    artifact: Artifact
    frozen: Artifact

    def run(self, worker: str, switches: Mapping[str, bool | int], artifact: Artifact | None = None) -> ProbeResult:
        run = ModelRun(artifact=artifact or self.artifact, schedule=(("example", 2),))
        return self.runner(replay.asked("run", worker, profile=ServingProfile(switches=switches), runs=(run,)))


@pytest.fixture(scope="module")
def stand(new_python: str, new_workers: ZygoteRunner, tmp_path_factory: pytest.TempPathFactory) -> Stand:
    declared = tuple(model for model in read_fixtures(PROJECT / "fixtures" / "zoo") if model.name == MODEL)
    artifact = replay.export(new_workers, declared)[MODEL]
    frozen = tmp_path_factory.mktemp("at_load") / "frozen.pt"
    code = "import sys, torch; torch.jit.freeze(torch.jit.load(sys.argv[1]).eval()).save(sys.argv[2])"
    command = [new_python, "-W", "ignore", "-c", code, artifact.path, str(frozen)]
    subprocess.run(command, check=True, timeout=120)
    return Stand(new_workers, artifact, replace(artifact, path=str(frozen), digest="frozen"))


@pytest.mark.slow
def test_a_module_is_frozen_and_optimized_alike_by_both_workers(stand: Stand) -> None:
    for switches in ({"freeze": True}, {"optimize_for_inference": True}, {"freeze": False}):
        told = {worker: stand.run(worker, switches) for worker in replay.WORKERS}
        assert {item.models[0].outcome for item in told.values()} == {"completed"}
        for name, value in switches.items():
            entry = {"requested": value, "read_back": value, "supported": True}
            assert all(item.data["switches"][name] == entry for item in told.values())
        answers = {worker: replay.outputs(Path(item.directory)) for worker, item in told.items()}
        assert answers["python"] == answers["libtorch"]


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_an_archive_that_is_frozen_already_cannot_be_frozen_again(stand: Stand, worker: str) -> None:
    (refused,) = stand.run(worker, {"freeze": True}, stand.frozen).models
    assert refused.outcome == "load_error"
    assert refused.failure is not None
    assert "frozen already" in refused.failure.message
    (optimized,) = stand.run(worker, {"optimize_for_inference": True}, stand.frozen).models
    assert optimized.outcome == "completed"


def overlaps(result: ProbeResult) -> bool:
    """Whether a load or call of one thread began while one of another had not ended."""
    lines = probe_files.read(Path(result.directory), wire.EVENTS).splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    inside: set[int] = set()
    for event in sorted(events, key=lambda event: event["ns"]):
        if event["ev"] == "ready" or event.get("phase") == wire.LOAD and event["ev"] == "end":
            inside.discard(event["thread"])
        elif event["ev"] == "begin" and event["phase"] in (wire.LOAD, wire.CALL):
            inside.add(event["thread"])
            if len(inside) > 1:
                return True
    return False


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_one_lock_lets_one_thread_load_or_make_its_first_calls_at_a_time(stand: Stand, worker: str) -> None:
    names = ["m", "m#1", "m#2", "m#3"]
    runs = tuple(ModelRun(artifact=replace(stand.artifact, model=name), schedule=(("example", 8),)) for name in names)
    threads = tuple((("barrier", "start"), ("load", name), ("calls", name)) for name in names)
    free = Script(threads=threads, barriers={"start": len(names)})
    for script, expected in ((free, True), (in_turn(free, ("load", "calls")), False)):
        result = stand.runner(replay.asked("run", worker, runs=runs, script=script))
        assert {item.outcome for item in result.models} == {"completed"}
        assert overlaps(result) == expected


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_a_model_that_fails_lets_go_of_the_lock(stand: Stand, worker: str) -> None:
    broken = replace(stand.artifact, model="broken", path="/nowhere.pt", digest="none")
    runs = tuple(
        ModelRun(artifact=item, schedule=(("example", 1),)) for item in (broken, replace(stand.artifact, model="well"))
    )
    threads = tuple((("load", name), ("calls", name)) for name in ("broken", "well"))
    script = in_turn(Script(threads=threads), ("load", "calls"))
    assert script.threads[0][0] == ("lock", START_UP)
    result = stand.runner(replay.asked("run", worker, runs=runs, script=script))
    assert {item.model: item.outcome for item in result.models} == {"broken": "load_error", "well": "completed"}
