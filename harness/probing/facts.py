"""What is known after each stage of a run, one class per stage, and what stages touch the world with."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Self

from harness.artifacts.old_outputs import Records
from harness.artifacts.tensors.outputs import Outputs
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import Attribution, Setting
from harness.core.environment import Environment, Fingerprint
from harness.core.hang import Evidence
from harness.core.machine import MachineState
from harness.core.measurement import CommonSlowdown, LatencyMeasurement
from harness.core.migration import RunMigration
from harness.core.models import Artifact, ArtifactKind, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.prediction import InspectedFile, RollbackReport
from harness.core.probe import Failure, ModelResult, ProbeResult, ServingProfile, Span
from harness.core.report import Explained
from harness.core.timeline import ProcessTrace
from harness.core.verdict import CellVerdict, Judgement, Mitigation, PlantedDefectResult, Provenance, Waiver
from harness.environments.native import NativeBuild
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.requests import Requests
from harness.probing.runner import ZygoteRunner, worker_digest
from harness.serving.scenarios import Scenario
from harness.serving.settings.mitigations import MITIGATIONS, applied
from harness.store import codec, probe_files
from harness.store.run_folder import COMPILED, RunDir
from harness.worker import wire


@dataclass(frozen=True, kw_only=True)
class Export:
    """How the export of one model went; ``artifact`` is None unless it completed.

    ``provenance``: of a given file that a search has rewritten.
    """

    declaration: ModelDeclaration
    outcome: Outcome
    artifact: Artifact | None = None
    failure: Failure | None = None
    uncovered: tuple[str, ...] = ()
    result: ProbeResult | None = None
    provenance: Provenance | None = None


@dataclass(frozen=True, kw_only=True)
class OldAnswers:
    """What the old side says: its results, repeated, the golden outputs, and a float64 reference if it can.

    ``results`` is empty and ``directory`` (of the probe with the golden outputs) blank where a golden record
    stands in for the old environment. ``numerics`` are the settings that change numbers, as its worker told them.
    """

    results: tuple[ModelResult, ...] = ()
    golden: Outputs | None = None
    repeats: tuple[Outputs, ...] = ()
    other_threads: tuple[Outputs, ...] = ()
    reference: Outputs | None = None
    directory: str = ""
    numerics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RollbackProbe:
    """One model on its rollback: the export in the new release, its artifact read, and probed where that was asked for.

    ``new`` are its runs in the new release, repeated; ``old``: the one in the old release, judged by them.
    """

    export: Export
    file: InspectedFile | None = None
    new: OldAnswers | None = None
    old: ProbeResult | None = None
    verdict: CellVerdict | None = None


@dataclass(frozen=True, kw_only=True)
class GroupRun:
    """One server group brought up by one side in one scenario; each round is its probes, the whole group's first.

    ``why_untimed``: why the times of its rounds say nothing; empty where they do.
    """

    scenario: str
    group: str
    side: str
    members: tuple[str, ...]
    rounds: tuple[tuple[ProbeResult, ...], ...]
    why_untimed: str = ""

    @property
    def probes(self) -> tuple[ProbeResult, ...]:
        return tuple(probe for probes in self.rounds for probe in probes)


@dataclass(frozen=True, kw_only=True)
class Failing:
    """One way in which a model failed in a scenario, and in how many rounds."""

    result: ModelResult
    directory: str
    exit_detail: str = ""
    evidence: Evidence | None = None
    rounds: int = 0


@dataclass(frozen=True, kw_only=True)
class ScenarioResult:
    """How one model came through all rounds of a scenario in one release.

    Attributes:
        result: the first failure, or a completed round; ``directory``, ``exit_detail`` and ``evidence`` belong to it.
        rounds: those that say something about the release; ``failed_rounds``: how many of them it failed in.
        failures: one per outcome and phase, those that say something about the release first.
        answers: (name of the copy, directory of the probe) wherever it completed.
        graph: what the worker measured of its captured graph, None without one.
        served_otherwise: where it answered otherwise while serving: ``{"calls", "first"}``.
    """

    result: ModelResult
    directory: str
    exit_detail: str = ""
    evidence: Evidence | None = None
    rounds: int = 1
    failed_rounds: int = 0
    answers: tuple[tuple[str, str], ...] = ()
    graph: Mapping[str, Any] | None = None
    failures: tuple[Failing, ...] = ()
    served_otherwise: Mapping[str, Any] | None = None
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Initialized:
    """One model in one initialization, ``old`` None beside golden records; ``old_differs``: unlike alone there too."""

    new: ScenarioResult
    old: ScenarioResult | None = None
    old_differs: bool = False


@dataclass(frozen=True, kw_only=True)
class Provisioned:
    """A plan whose environments are there; ``fingerprints`` are what they say of themselves, by side.

    Each class from here on holds what one more stage of a run has learnt, by model name or by model and scenario.
    A function takes the first one that has what it needs.
    """

    plan: Plan
    fingerprints: Mapping[str, Fingerprint]

    @classmethod
    def known(cls, facts: Self) -> dict[str, Any]:
        """Return the fields that this class has of ``facts``, for the constructor of a later one."""
        return {each.name: getattr(facts, each.name) for each in fields(cls)}

    @property
    def requests(self) -> Requests:
        """What may be asked of the probe runner under this plan, in these environments, with this worker."""
        return Requests(self.plan, self.fingerprints, worker_digest())

    @property
    def pair(self) -> tuple[str, str]:
        old, new = (self.fingerprints.get(side) for side in ("old", "new"))
        return (old.torch if old is not None else "", new.torch if new is not None else "")


@dataclass(frozen=True, kw_only=True)
class Exported(Provisioned):
    """The models are exported by the old release, or read from golden records."""

    exports: Mapping[str, Export]

    def artifact(self, name: str) -> Artifact:
        """Return the artifact of a model that was exported; asking for another one's is our mistake."""
        artifact = self.exports[name].artifact
        assert artifact is not None, name
        return artifact


@dataclass(frozen=True, kw_only=True)
class ExportedByBoth(Exported):
    """The new release has exported them as well, for the rollback; nothing where nobody asks for it."""

    rollback_probes: Mapping[str, RollbackProbe]


@dataclass(frozen=True, kw_only=True)
class Inspected(ExportedByBoth):
    """Every artifact is checked without being loaded; ``static_notes`` say why one was not."""

    predictions: Mapping[str, InspectedFile]
    static_notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Answered(Exported):
    """The old release has answered, or golden records in its place."""

    baselines: Mapping[str, OldAnswers]


@dataclass(frozen=True, kw_only=True)
class Probed(Answered):
    """The new release has loaded and called every model alone."""

    alone: Mapping[str, ProbeResult]

    def draws(self, name: str) -> bool:
        return name in self.alone and f"draws:{name}" in self.alone[name].data

    def served(self, name: str) -> Artifact | None:
        """Return the artifact of a model with the requests that both releases answer alone, which servers are asked.

        None where there is none, or where the new release fails in one that the old one answers: such a model would
        only hide its neighbours.
        """
        artifact = self.exports[name].artifact if name in self.alone else None
        if artifact is None:
            return None
        new, old = self.alone[name].models[0], self.baselines[name].results
        if not all(result.made_calls for result in (new, *old)):
            return None
        failed_before = {request.input_set for result in old for request in result.failed_requests}
        if any(request.input_set not in failed_before for request in new.failed_requests):
            return None
        kept = tuple(item for item in artifact.input_sets if item.name not in failed_before)
        if not kept or not failed_before:
            return artifact if kept else None
        schedule = tuple(call for call in self.requests.model_run(artifact).schedule if call[0] not in failed_before)
        return replace(artifact, input_sets=kept, schedule=schedule)

    def in_a_server(self, name: str) -> Artifact:
        """Return the artifact of a model as a server group has it: with all requests where only the old one fails."""
        return self.served(name) or self.artifact(name)

    def served_part(self, name: str, outputs: Outputs) -> Outputs:
        asked = {item.name for item in self.in_a_server(name).input_sets}
        calls = {key: tree for key, tree in outputs.calls.items() if key[0] in asked}
        return outputs if len(calls) == len(outputs.calls) else replace(outputs, calls=calls)


@dataclass(frozen=True, kw_only=True)
class WithWorker(Probed):
    """The runtime that initializes server groups is chosen and built.

    ``worker_notes`` say why it is not the one a reader would expect. ``for_python`` are the models that servers written
    in Python are asked about too. ``predictions``: what reading the artifacts has shown; empty where nobody read them.
    """

    worker: str
    worker_notes: tuple[str, ...]
    for_python: frozenset[str] = frozenset()
    predictions: Mapping[str, InspectedFile] = field(default_factory=dict)

    def can_do(self, *, native_only: bool) -> bool:
        """Whether this run's worker can do an initialization: some need the C++ one."""
        return self.worker == "libtorch" or not native_only

    def worker_of(self, scenario: Scenario, members: Iterable[str]) -> str:
        """Return the runtime that initializes ``members``: exported programs are loaded in Python alone."""
        in_python = scenario.python_only or (scenario.graphs and not self.plan.runs_on.nvidia)
        in_python = in_python or any(self.artifact(name).kind is ArtifactKind.PROGRAM for name in members)
        return "python" if in_python else self.worker


@dataclass(frozen=True, kw_only=True)
class NotBegun:
    """A part of a run that did not fit into its budget: a scenario of a server group, or the benchmark of all models.

    ``scenario`` is ``TIMING`` for the benchmark, whose ``group`` is empty; ``expected_s``: how long it would take.
    """

    scenario: str
    group: str
    expected_s: float


@dataclass(frozen=True, kw_only=True)
class Started(WithWorker):
    """The server groups were brought up in every planned initialization, but for those that are ``not_begun``."""

    group_runs: tuple[GroupRun, ...]
    initialized: Mapping[tuple[str, str], Initialized]
    not_begun: tuple[NotBegun, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compared(Started):
    """What the new release answered is compared with the golden outputs."""

    comparisons: Mapping[tuple[str, str], OutputComparison]


@dataclass(frozen=True, kw_only=True)
class StartupTimed(Compared):
    """The old release has brought up every server group too, where times are asked for."""


@dataclass(frozen=True, kw_only=True)
class Timed(Compared):
    """The benchmark is done; ``machine_states``: one per round; ``common``: all models' part, None of too few."""

    latency: Mapping[str, LatencyMeasurement]
    common: CommonSlowdown | None
    machine_states: tuple[MachineState, ...]


@dataclass(frozen=True, kw_only=True)
class Judged(Timed):
    """Every cell has its verdict."""

    verdicts: Mapping[str, tuple[CellVerdict, ...]]


@dataclass(frozen=True, kw_only=True)
class Attributed(Judged):
    """What each failing initialization needs in order to fail is searched for."""

    attributions: Mapping[tuple[str, str], Attribution]


@dataclass(frozen=True, kw_only=True)
class Mitigated(Attributed):
    """The mitigations are tried on red cells."""

    mitigations: Mapping[str, tuple[Mitigation, ...]]


@dataclass(frozen=True, kw_only=True)
class Diagnosed(Mitigated):
    """Red cells are explained, but for the models for which ``--explain`` or the run's budget left no time."""

    explained: tuple[Explained, ...]
    unexplained: tuple[str, ...]
    over_budget: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Complete(Diagnosed, Inspected):
    """All that a decision needs.

    ``loader_notes`` are about callers that load otherwise than the gate does; ``interrupted``: during what the run was,
    after which nothing is known; empty where it was not.
    """

    planted_defects: tuple[PlantedDefectResult, ...]
    rollback: RollbackReport | None
    loader_notes: tuple[str, ...] = ()
    interrupted: str = ""


@dataclass(frozen=True, kw_only=True)
class Decided(Complete):
    """The run is judged as a whole."""

    judgement: Judgement


@dataclass(frozen=True, kw_only=True)
class TakenOut(Decided):
    """Artifacts were taken out of TorchScript; no decision sees it; ``judged_by``: the probes before that."""

    migration: RunMigration | None
    judged_by: tuple[ProbeResult, ...]


@dataclass(frozen=True, kw_only=True)
class Effects:
    """What touches the world, handed to every stage.

    Attributes:
        spans: (what took time, begin, end) of what came before the first stage.
        import_cpu_s: CPU time of an import of torch.
        end_ns: on the monotonic clock, when a search or a stage that has this begins nothing further; None: they have
            limits of their own.
        prices_fixes: whether a search times what fixes a cell, also in a run that times nothing else.
    """

    environments: Mapping[str, Environment]
    runner: ZygoteRunner
    run_dir: RunDir
    progress: Progress
    golden: Records
    waivers: tuple[Waiver, ...]
    native_folder: Path
    today: date
    spans: tuple[tuple[str, int, int], ...] = ()
    import_cpu_s: float = 0.0
    end_ns: int | None = None
    prices_fixes: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until ``end_ns``, negative after it; infinite without one."""
        return math.inf if self.end_ns is None else (self.end_ns - clock.monotonic_ns()) * 1e-9

    def end_within(self, seconds: float) -> int:
        own = clock.monotonic_ns() + int(seconds * 1e9)
        return own if self.end_ns is None else min(own, self.end_ns)

    @property
    def environment_root(self) -> Path:
        return self.native_folder.parent

    def book_compilation(self, side: str, what: str, built: NativeBuild) -> None:
        """Keep when ``what`` was compiled, for the sums of times and the trace; nothing of what the cache had."""
        if built.cached:
            return
        span = Span(phase=wire.COMPILE, begin_ns=built.begin_ns, end_ns=built.begin_ns + int(1e9 * built.seconds))
        compiled = self.runner.compiled
        name, title = f"compiled/{len(compiled)}", f"{side}: compile {what}"
        compiled.append(ProcessTrace(name=name, side=side, title=title, outcome=Outcome.COMPLETED, spans=(span,)))
        self.run_dir.write(COMPILED, codec.canonical(compiled))

    def folder(self, name: str) -> Path:
        return self.run_dir.path / name

    def evidence(self, directory: str) -> str:
        """Return the stacks of a probe if it left any, else its folder, relative to the run."""
        folder = Path(directory)
        return self.shown(folder / wire.STACKS if probe_files.has_stacks(folder) else folder)

    def shown(self, path: Path) -> str:
        return str(path.relative_to(self.run_dir.path)) if path.is_relative_to(self.run_dir.path) else str(path)


def accepted_settings(plan: Plan) -> tuple[Setting, ...]:
    """Return the mitigations that policy accepts: the new side runs with these."""
    return tuple(MITIGATIONS[name] for name in plan.settings.policy.accepted_mitigations)


def profile_of(side: str, plan: Plan) -> ServingProfile:
    return new_profile(plan) if side == "new" else plan.settings.profile


def new_profile(plan: Plan) -> ServingProfile:
    """Return the new side's profile with accepted mitigations; orders of loads and calls are ``Launcher``'s."""
    return applied(plan.settings.new_profile or plan.settings.profile, accepted_settings(plan))
