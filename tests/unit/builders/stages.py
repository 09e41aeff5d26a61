"""Plans, facts and effects without environments: what stages turn into requests and verdicts."""

import contextlib
import datetime
import io
import time
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.core.environment import EnvSpec, Environment, Fingerprint
from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.models import Artifact, PlantedDefectMark, InputSet, ModelDeclaration
from harness.core.outcome import Decision, Outcome
from harness.core.plan import Plan, Settings
from harness.core.probe import ModelResult, ProbeRequest, ProbeResult, ServingProfile
from harness.core.timeline import ProcessTrace
from harness.core.verdict import Judgement, Waiver
from harness.probing.facts import (
    Decided,
    Effects,
    Export,
    Failing,
    GroupRun,
    Initialized,
    OldAnswers,
    Provisioned,
    ScenarioResult,
    WithWorker,
)
from harness.probing.loaded_libraries import LoadedLibraries
from harness.checks.startup.launch import Launcher
from harness.serving.scenarios import INITIALIZATIONS
from harness.machine.progress import Progress

TODAY = datetime.date(2026, 11, 21)
FINGERPRINTS = {
    "old": Fingerprint(torch="2.1.2", git_revision="a"),
    "new": Fingerprint(torch="2.6.0", git_revision="b"),
}
NAMES = {"old": "torch 2.1.2", "new": "torch 2.6.0"}


def declared(name: str = "m", **changes: Any) -> ModelDeclaration:
    """Return a model's declaration."""
    defaults: dict[str, Any] = {
        "name": name,
        "package_root": "/p",
        "module": "fixtures.m",
        "factory": name,
        "source": "fixtures/m.py",
        "line": 1,
        "source_digest": "0",
    }
    return ModelDeclaration(**{**defaults, **changes})


def planted_defect(name: str = "slow", **changes: Any) -> ModelDeclaration:
    """Return a planted defect of twin ``healthy``."""
    return declared(
        name,
        tags=("planted",),
        planted_defect=PlantedDefectMark(**{"twin": "healthy", "expect": "values", **changes}),
    )


def artifact(name: str = "m", **changes: Any) -> Artifact:
    """Return an artifact with three input sets."""
    defaults: dict[str, Any] = {
        "model": name,
        "path": f"/a/{name}.pt",
        "digest": "d1",
        "size_bytes": 10,
        "operators": ("aten::add.Tensor",),
        "inputs_dir": "/a/inputs",
        "inputs_digest": "i1",
        "input_sets": (InputSet(name="example"), InputSet(name="other values"), InputSet(name="batch 3")),
    }
    return Artifact(**{**defaults, **changes})


def planned(*models: str, settings: Mapping[str, Any] | None = None, **changes: Any) -> Plan:
    """Return the plan of a run over ``models``, all in one server group."""
    names = models or ("m",)
    defaults: dict[str, Any] = {
        "settings": Settings(**{"old": "2.1.2", "new": "2.6.0", **(settings or {})}),
        "old": EnvSpec(name=NAMES["old"], release="2.1.2"),
        "new": EnvSpec(name=NAMES["new"], release="2.6.0"),
        "device": "cpu",
        "direction": "backward",
        "models": tuple(declared(name) for name in names),
        "planted_defects": (),
        "groups": {"misc": names},
    }
    return Plan(**{**defaults, **changes})


def result(name: str = "m", outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> ModelResult:
    """Return what became of a model in a process."""
    return ModelResult(model=name, outcome=outcome, **changes)


def probed(*models: ModelResult, side: str = "new", **changes: Any) -> ProbeResult:
    """Return what a process did."""
    defaults: dict[str, Any] = {"key": "k", "side": side, "outcome": Outcome.COMPLETED, "directory": "/run/probes/k"}
    return ProbeResult(**{**defaults, "models": models, **changes})


def measured(low: float, high: float, name: str = "m") -> LatencyMeasurement:
    """Return a benchmark that was confirmed by itself."""
    ratio = RatioEstimate(ratio=(low + high) / 2, low=low, high=high, pairs=3, detectable=1.02)
    return LatencyMeasurement(model=name, samples=(), steady=ratio, confirmation=ratio)


def in_scenario(name: str = "m", outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> ScenarioResult:
    """Return how a model came through a scenario in one release."""
    defaults: dict[str, Any] = {"directory": "/run/probes/g", "exit_detail": ""}
    return ScenarioResult(result=result(name, outcome), **{**defaults, **changes})


def initialized(
    new: Outcome = Outcome.COMPLETED, old: Outcome | None = None, name: str = "m", **changes: Any
) -> Initialized:
    """Return how a model came through a scenario in both releases; ``changes`` are those of the new one."""
    return Initialized(new=in_scenario(name, new, **changes), old=None if old is None else in_scenario(name, old))


def failing(
    outcome: Outcome,
    rounds: int = 1,
    name: str = "m",
    phase: str = "",
    of: tuple[str | None, int | None] = (None, None),
    **changes: Any,
) -> Failing:
    """Return one way in which a model failed, in a call ``of`` an input set."""
    defaults: dict[str, Any] = {"directory": "/run/probes/g", "exit_detail": ""}
    ended = result(name, outcome, phase=phase, input_set=of[0], call=of[1])
    return Failing(result=ended, rounds=rounds, **{**defaults, **changes})


def group_run(
    *rounds: Sequence[ProbeResult],
    scenario: str = "concurrent",
    group: str = "g",
    side: str = "new",
    members: Sequence[str] = ("a",),
) -> GroupRun:
    """Return a server group brought up, each round with its probes."""
    return GroupRun(scenario=scenario, group=group, side=side, members=tuple(members), rounds=tuple(map(tuple, rounds)))


def all_ran(plan: Plan) -> tuple[GroupRun, ...]:
    """Return the healthy runs of every planned initialization in the new release."""
    names = [model.name for model in plan.models]
    return tuple(
        group_run([probed(*map(result, names))], scenario=name, group="misc", members=names)
        for name in plan.scenarios
        if name in INITIALIZATIONS
    )


def decided(plan: Plan, **changes: Any) -> Decided:
    """Return the facts of a run in which every stage is done and found nothing, but for ``changes``."""
    nothing = Decided(
        plan=plan,
        fingerprints={},
        exports={},
        rollback_probes={},
        predictions={},
        static_notes=(),
        baselines={},
        alone={},
        worker="python",
        worker_notes=(),
        group_runs=(),
        initialized={},
        comparisons={},
        latency={},
        common=None,
        machine_states=(),
        verdicts={},
        attributions={},
        mitigations={},
        explained=(),
        unexplained=(),
        planted_defects=(),
        rollback=None,
        judgement=Judgement(decision=Decision.NOTHING_TESTED, reason="", exit_code=4, rows=()),
    )
    return replace(nothing, **changes)


def known(plan: Plan, **changes: Any) -> Decided:
    """Return facts of a run in which every model was exported and completes alone on both sides."""
    names = [model.name for model in plan.models]
    facts = decided(
        plan,
        fingerprints=FINGERPRINTS,
        exports={
            model.name: Export(declaration=model, outcome=Outcome.COMPLETED, artifact=artifact(model.name))
            for model in plan.models
        },
        baselines={name: OldAnswers(results=(result(name), result(name))) for name in names},
        alone={name: probed(result(name)) for name in names},
    )
    return replace(facts, **changes)


def continued(facts: Decided, after: Provisioned) -> Decided:
    """Return ``facts`` with what a stage has returned in place of what they held: a test goes on with any stage."""
    return replace(facts, **type(after).known(after))


class Runner:
    """A probe runner that answers from a function and remembers what it was asked."""

    def __init__(self, answer: Callable[[ProbeRequest], ProbeResult]) -> None:
        self._answer = answer
        self.native: dict[str, Path] = {}
        self.libtorch: dict[str, Mapping[str, Any]] = {}
        self.libraries: dict[str, LoadedLibraries] = {}
        self.companions: dict[str, tuple[str, ...]] = {}
        self.asked: list[ProbeRequest] = []
        self.lasting: list[ProbeRequest] = []
        self.begun: list[ProbeRequest] = []
        self.compiled: list[ProcessTrace] = []
        self.finished: list[ProbeResult] = []

    def use_native(self, side: str, binary: Path, companions: tuple[str, ...] = ()) -> None:
        self.native[side], self.companions[side] = binary, companions

    def __call__(self, request: ProbeRequest, *, lasting: bool = False) -> ProbeResult:
        self.asked.append(request)
        if lasting:
            self.lasting.append(request)
        return self._answer(request)

    def has(self, request: ProbeRequest) -> bool:
        return request in self.begun

    def preload(self, side: str, modules: tuple[str, ...]) -> None:
        pass

    def release(self, side: str) -> None:
        pass

    def sharing(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def models(self, side: str) -> list[list[str]]:
        """Return which models each request of ``side`` asked for, in order."""
        return [[run.artifact.model for run in item.runs] for item in self.asked if item.side == side]


def facts_of(
    *names: str,
    settings: Mapping[str, Any] | None = None,
    scenarios: Sequence[str] = ("alone", "concurrent"),
    **more: Any,
) -> Decided:
    """Return facts of models in one server group that is to be brought up in ``scenarios``."""
    return known(planned(*names, settings=settings, scenarios=tuple(scenarios)), **more)


def answering(sick: Mapping[str, Mapping[str, Outcome]], *, only_first: int | None = None) -> Runner:
    """Return a runner in which the first model that hangs or crashes keeps the later ones of its process from running.

    Args:
        sick: per side, name of a model or of a copy -> what becomes of it.
        only_first: processes of a side after so many are healthy.
    """
    started: dict[str, int] = {}
    lock = threading.Lock()

    def answer(request: ProbeRequest) -> ProbeResult:
        with lock:
            number = started[request.side] = started.get(request.side, 0) + 1
        table = sick.get(request.side, {}) if only_first is None or number <= only_first else {}
        found: list[ModelResult] = []
        ended = Outcome.COMPLETED
        for run in request.runs:
            name = run.artifact.model
            outcome = table.get(name, Outcome.COMPLETED) if ended is Outcome.COMPLETED else Outcome.NOT_RUN
            if outcome in (Outcome.HANG, Outcome.CRASH, Outcome.OUT_OF_MEMORY):
                ended = outcome
            found.append(result(name, outcome))
        directory = f"/run/{request.side}-{request.repeat}"
        return probed(*found, side=request.side, outcome=ended, directory=directory, exit_detail="x")

    return Runner(answer)


def launcher(runner: Runner, facts: WithWorker, scenario: str = "concurrent", side: str = "new") -> Launcher:
    """Return one side, ready to bring up models."""
    return Launcher(
        scenario=INITIALIZATIONS[scenario],
        side=side,
        profile=ServingProfile(name="p"),
        facts=facts,
        effects=effects(runner),
    )


def effects(
    runner: Runner | None = None,
    *,
    waivers: tuple[Waiver, ...] = (),
    sides: tuple[str, ...] = ("old", "new"),
    left_s: float | None = None,
) -> Effects:
    """Return effects that touch nothing; ``left_s``: of the budget of the run, None where it has none."""
    environments = {
        side: Environment(name=NAMES[side], interpreter="/python", spec=EnvSpec(name=NAMES[side])) for side in sides
    }
    return Effects(
        environments=environments,
        runner=cast(Any, runner or Runner(lambda request: pytest.fail(f"nobody expected {request.verb}"))),
        run_dir=cast(Any, Folder()),
        progress=Progress(io.StringIO(), enabled=False),
        golden=cast(Any, None),
        waivers=waivers,
        native_folder=Path("/envs/native"),
        today=TODAY,
        end_ns=None if left_s is None else time.monotonic_ns() + int(1e9 * left_s),
    )


class Folder:
    """Where a run would lie."""

    path = Path("/run")
    name = "run"

    def write(self, name: str, data: bytes) -> None:
        pass


def near(value: float) -> Any:
    """Return ``pytest.approx``, typed so that it may stand in a tuple."""
    return pytest.approx(value)
