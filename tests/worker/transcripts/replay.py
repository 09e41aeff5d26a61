"""Transcripts: what a worker is asked, and the events and outputs that came back; replayed against both workers.

A transcript is ``NAME.json`` beside this file. ``recorded`` in it is written by

    python -m tests.worker.transcripts.record ENV_PYTHON

from the first worker that the transcript is for, and compared with what each of them does. The models are in
``models``; what they answer is exact, so it is the same on every machine.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.checks.hang import watchdog
from harness.core.environment import EnvSpec, Environment
from harness.core.models import Artifact, ModelDeclaration
from harness.core.probe import Deadline, ModelRun, ProbeRequest, ProbeResult, Script, ServingProfile
from harness.environments.builder import default_environment_root
from harness.environments.native import LibTorch, build_worker
from harness.artifacts.adopted import artifact_of
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.checks.startup.larger_inputs import larger_inputs
from harness.store import probe_files
from harness.worker import wire

FOLDER = Path(__file__).resolve().parent
PROJECT = FOLDER.parents[2]
WORKERS = ("python", "libtorch")
DEADLINE = Deadline(load_s=60, call_s=60, total_s=120)


@dataclass(frozen=True)
class Transcript:
    """One request and what is recorded of its answer."""

    path: Path
    data: dict[str, Any]

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(self.data.get("workers", WORKERS))

    @property
    def recorded(self) -> dict[str, Any]:
        return dict(self.data["recorded"])

    def request(self, artifacts: dict[str, Artifact], worker: str) -> ProbeRequest:
        copies, missing = self.data.get("copies", {}), self.data.get("missing", ())
        runs = []
        for name in self.data["models"]:
            artifact = replace(artifacts[copies.get(name, name)], model=name)
            if name in missing:
                artifact = replace(artifact, path="/nonexistent/absent.pt")
            schedule = tuple((input_set.name, self.data["calls"]) for input_set in artifact.input_sets)
            runs.append(
                ModelRun(
                    artifact=artifact,
                    schedule=schedule,
                    precision=self.data.get("precision"),
                    larger_inputs=larger_inputs(artifact),
                )
            )
        pools = self.data.get("pools", {"intra_op": 1, "inter_op": 1})
        profile = ServingProfile(
            intra_op_threads=pools["intra_op"],
            inter_op_threads=pools["inter_op"],
            switches=self.data.get("switches", {}),
        )
        return asked("run", worker, profile=profile, runs=tuple(runs), script=self.script())

    def script(self) -> Script | None:
        told = self.data["script"]
        if told is None:
            return None
        threads = tuple(tuple(tuple(step) for step in thread) for thread in told["threads"])
        return Script(**{**told, "threads": threads})


def transcripts() -> list[Transcript]:
    return [Transcript(path, json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]


def asked(verb: str, worker: str = "python", **more: Any) -> ProbeRequest:
    return ProbeRequest(
        verb=verb, side="old", environment="here", deadline=DEADLINE, runtime=worker, worker_digest=worker, **more
    )


def export(runner: ZygoteRunner, declarations: tuple[ModelDeclaration, ...]) -> dict[str, Artifact]:
    """Return the artifacts of ``declarations``, exported in the runner's environment."""
    artifacts = {}
    for declaration in declarations:
        result = runner(asked("export", declaration=declaration))
        assert "exported" in result.data, (declaration.name, result.models)
        artifacts[declaration.name] = artifact_of(declaration, result)
    return artifacts


def models() -> tuple[ModelDeclaration, ...]:
    return read_fixtures(FOLDER / "models")


@contextmanager
def both_workers(python: str, folder: Path, *, cuda: bool = False) -> Iterator[ZygoteRunner]:
    """A runner of both workers in the environment of ``python``, its probes in ``folder``; nobody outlives it.

    ``cuda``: whether the C++ worker is compiled for a GPU.
    """
    environment = Environment(name="here", interpreter=python, spec=EnvSpec(name="here", interpreter=python))
    runner = ZygoteRunner({"old": environment}, folder, watchdog)
    try:
        runner.fingerprint("old", ServingProfile())
        libtorch = LibTorch.from_mark(runner.libtorch["old"])
        built = build_worker(libtorch, default_environment_root() / "native", cuda=cuda)
        assert built.binary is not None, built.why_not
        runner.use_native("old", built.binary)
        yield runner
    finally:
        runner.close()
    assert not runner.unreaped


def answer(result: ProbeResult) -> dict[str, Any]:
    """Return what is compared of a finished probe: events per thread, outputs, and what became of the switches."""
    folder = Path(result.directory)
    return {"events": events(folder), "outputs": outputs(folder), "switches": result.data.get("switches")}


def events(folder: Path) -> dict[str, list[str]]:
    """Return the events of every thread in order; what times and places depend on is left out."""
    threads: dict[str, list[str]] = {}
    for line in probe_files.read(folder, wire.EVENTS).splitlines():
        event = json.loads(line)
        if event.get("phase") == wire.IMPORT or event["ev"] == "beat":
            continue
        keys = ("ev", "phase", "model", "set", "call", "type", "name", "label")
        words = [str(event[key]) for key in keys if event.get(key) not in (None, "")]
        threads.setdefault(str(event.get("thread", "process")), []).append(" ".join(words))
    return threads


def outputs(folder: Path) -> dict[str, Any]:
    """Return the trees of all calls, with their side effects where there are any.

    Offsets are left out: they follow the order in which threads came.
    """
    trees = {}
    for line in probe_files.read(folder, f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}").splitlines():
        entry = json.loads(line)
        effects = {name: _without_offsets(entry[name]) for name in ("changed", "shared") if name in entry}
        tree = _without_offsets(entry["tree"])
        trees[f"{entry['model']} {entry['set']} {entry['call']}"] = {"tree": tree, **effects} if effects else tree
    return dict(sorted(trees.items()))


def messages(folder: Path) -> list[tuple[str, str, str]]:
    """Return (model, type, message) of every error."""
    found = [json.loads(line) for line in probe_files.read(folder, wire.EVENTS).splitlines()]
    return sorted((event["model"], event["type"], event["message"]) for event in found if event["ev"] == "error")


def _without_offsets(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_without_offsets(item) for item in tree]
    if isinstance(tree, dict):
        return {key: value for key, value in tree.items() if key != "offset"}
    return tree
