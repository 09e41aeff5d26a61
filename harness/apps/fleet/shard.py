"""``fleet run``: the part of a plan that one machine does. Each of its runs is an ordinary one; results are kept."""

import difflib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.apps.fleet.faults import blind, label_of
from harness.apps.fleet.plan import (
    CACHE,
    OTHER_FOLDER,
    RUNS,
    STORE,
    UNPACKED,
    PlannedFleet,
    content_common,
    options_again,
    sides_of,
    store_of,
)
from harness.apps.fleet.results import FleetResults
from harness.apps.fleet.stores.reading import foreign_code, sha256_of
from harness.apps.fleet.stores.sources import UNREACHABLE, Listed, SourceFault, Store
from harness.apps.fleet.stores.torchserve import unpacked
from harness.apps.fleet.units import content_of, key_of, runs_of, shard_of
from harness.apps.report.files import Finished, stored_report
from harness.apps.upgrade.command import EXPLAIN_S
from harness.apps.upgrade.execute import execute
from harness.apps.upgrade.plan import make_plan
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.given import GivenModels, source_digest
from harness.core.errors import ConfigError, DiskFull, RunDirError, SelectionError
from harness.core.fleet import Examination, Fault, FleetArtifact, FleetResult, FleetUnit, ShardDone, StoreKind
from harness.core.measurement import LatencyMeasurement
from harness.core.models import GivenArtifact, ModelDeclaration
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.core.report import RunReport
from harness.core.text import first_few
from harness.core.verdict import RowVerdict
from harness.machine import clock
from harness.machine.progress import Progress
from harness.project import Project
from harness.serving.scenarios import TIMING
from harness.store import codec
from harness.store.run_folder import PLAN as RUN_PLAN
from harness.store.run_folder import REPORT, RunDir

# What failed for a reason of the machine is tried once more at once, and again whenever the command is repeated.
TRIES = 2
# What is examined in full is loaded and called alone, whoever took it over.
SHARED = {Examination.FULL: ("adopt",), Examination.WEIGHTS: ("adopt", "run")}
TRUST = "if you would run it, repeat the command with --trust"
KEPT = "kept"
"""A file in the folder of a run whose results are kept: what it left without one is tried in another run."""


class _Ready(NamedTuple):
    """A unit whose artifact lies on this machine as it was planned."""

    unit: FleetUnit
    declaration: ModelDeclaration


def run_shard(
    options: Project,
    planned: PlannedFleet,
    *,
    shard: tuple[int, int] = (1, 1),
    known_elsewhere: Collection[str] = (),
    trust: bool = False,
    progress: Progress,
) -> ShardDone:
    """Run what is not known of one machine's part, and keep its results; a part that is known starts nothing.

    Args:
        shard: (index from 1, count).
        known_elsewhere: keys whose results lie in another folder of this fleet.
        trust: whether programs run here that the store holds, where it is no folder of this machine.

    Raises:
        ConfigError: the configuration, a release or the gate is another one than when it was planned.
        EnvironmentUnavailable: a release could not be provisioned.
        RunDirError: another process does this part, or a folder cannot be written.
    """
    plan, folder = planned.plan, planned.folder
    mine = shard_of(plan.units, *shard)
    results = FleetResults(folder / STORE)
    known = results.known([unit.key for unit in mine]) | {unit.key for unit in mine if unit.key in known_elsewhere}
    open_units = [unit for unit in mine if unit.key not in known]
    if not open_units:
        return ShardDone(units=len(mine), known=len(known), made=0)
    runner = _Shard(options, planned, results, progress, open_units, trust=trust)
    for _ in range(TRIES):
        open_units = runner.run(open_units)
    faults = tuple(fault for unit in open_units if (fault := results.fault(unit.key)) is not None)
    made = len(mine) - len(known) - len(open_units)
    return ShardDone(units=len(mine), known=len(known), made=made, faults=faults, runs=tuple(runner.runs))


def time_more(
    options: Project, planned: PlannedFleet, *, more_s: float, trust: bool = False, progress: Progress
) -> ShardDone:
    """Go on timing, on the machine that ran them, the programs whose latency is undecided; rounds of before count too.

    ``more_s`` is for each run that left something undecided; the rest is as of ``run_shard``.
    """
    results = FleetResults(planned.folder / STORE)
    runner = _Shard(options, planned, results, progress, (), trust=trust)
    runs = runner.undecided()
    runner.require_same_gate([unit for _, units in runs for unit in units])
    made = sum(runner.time_more(folder, units, more_s) for folder, units in runs)
    return ShardDone(units=sum(len(units) for _, units in runs), known=0, made=made, runs=tuple(runner.runs))


def explain(options: Project, planned: PlannedFleet, name: str, *, trust: bool = False, progress: Progress) -> Finished:
    """Run one artifact of a plan again, in full and asked as the plan says, and search for what is behind red cells.

    It is a run of its own below the fleet's folder; the fleet's results stay what they are. Raises ``SelectionError``:
    the plan has no such artifact, or its file is gone or another one; the rest is as of ``run_shard``.
    """
    artifact = next((item for item in planned.plan.artifacts if item.name == name), None)
    if artifact is None or artifact.left_out:
        near = difflib.get_close_matches(name, [item.name for item in planned.plan.artifacts if not item.left_out], 3)
        why = f"is not run: {artifact.left_out}" if artifact is not None else "is no artifact of this plan"
        raise SelectionError(f"{name} {why}", f"name one of fleet report: {', '.join(near)}" if near else "")
    runner = _Shard(options, planned, FleetResults(planned.folder / STORE), progress, (), trust=trust)
    return runner.explain(artifact)


class _Shard:
    def __init__(
        self,
        options: Project,
        planned: PlannedFleet,
        results: FleetResults,
        progress: Progress,
        mine: Sequence[FleetUnit],
        *,
        trust: bool,
    ) -> None:
        self._options, self._plan, self._folder = options, planned.plan, planned.folder
        self._results, self._progress, self._trust = results, progress, trust
        self._artifacts = {artifact.name: artifact for artifact in planned.plan.artifacts}
        self._store = store_of(planned.plan.store, planned.folder)
        sides = sides_of(options_again(planned.plan, options), progress)
        self._common = content_common(
            sides, {name: tuple(assignments) for name, assignments in planned.plan.profiles.items()}
        )
        self._memory_is_derived = sides.settings.limits.memory_is_derived
        for what, then, now in (
            ("the old release", planned.plan.releases["old"], sides.releases["old"]),
            ("the new release", planned.plan.releases["new"], sides.releases["new"]),
            ("the device", planned.plan.device, sides.device),
            ("the configuration", planned.plan.settings, self._common.settings),
        ):
            if then != now:
                raise ConfigError(f"{what} is another one than when this was planned: {then}, now {now}", "plan again")
        self.require_same_gate(mine)
        self.runs: list[str] = []

    def require_same_gate(self, units: Sequence[FleetUnit]) -> None:
        """Raise ``ConfigError`` where results would be kept under another key now: the gate is another one."""
        keys = (key_of(content_of(self._artifacts[unit.artifact], unit.examination, self._common)) for unit in units)
        if any(key != unit.key for key, unit in zip(keys, units, strict=True)):
            raise ConfigError("the gate is another one than when this was planned: its workers differ", "plan again")

    def run(self, units: Sequence[FleetUnit]) -> list[FleetUnit]:
        try:
            listed = {item.path: item for item in self._store.files()} if units else {}
        except SourceFault as fault:
            return [self._faulty(unit, fault.label, fault.text) for unit in units]
        left: list[FleetUnit] = []
        silent = ""  # a store that does not answer is not waited for again, for each of thousands
        for group in runs_of(units):
            ready = []
            for unit in group:
                try:
                    if silent:
                        raise SourceFault(UNREACHABLE, silent)
                    ready.append(_Ready(unit, self._declaration(unit, listed)))
                except SourceFault as fault:
                    left.append(self._faulty(unit, fault.label, fault.text))
                    silent = fault.text if fault.label == UNREACHABLE else ""
            if ready:
                left += self._run(ready)
        return left

    def _faulty(self, unit: FleetUnit, label: str, text: str) -> FleetUnit:
        self._results.add_fault(Fault(key=unit.key, label=label, text=text))
        return unit

    def _declaration(self, unit: FleetUnit, listed: Mapping[str, Listed]) -> ModelDeclaration:
        """Return the model of a unit, its files fetched. Raises ``SourceFault``: they are gone, or not as planned."""
        artifact = self._artifacts[unit.artifact]
        serving = artifact.serving
        code = foreign_code(self._store, artifact)
        if code and not self._trust:
            raise SourceFault("spurious-untrusted", f"{artifact.path}: {code}: {TRUST}")
        path = _fetched(self._store, listed, artifact.path)
        inputs = _fetched(self._store, listed, serving.inputs) if serving.inputs else None
        try:
            if artifact.kind is StoreKind.TORCHSERVE:
                path = unpacked(path, artifact.member, self._folder / CACHE / UNPACKED)
            digests = sha256_of(path), sha256_of(inputs) if inputs is not None else ""
        except (CannotRead, OSError) as error:
            raise SourceFault("spurious-vanished", f"{artifact.path}: {error}") from None
        if digests != (artifact.sha256, artifact.inputs_sha256):
            text = f"{artifact.path} has changed since it was planned ({artifact.sha256[:12]}, now {digests[0][:12]})"
            raise SourceFault("spurious-changed", f"{text}: plan again")
        declaration = ModelDeclaration(
            name=artifact.name,
            package_root=str(path.parent),
            source=path.name,
            how="file",
            tags=artifact.tags,
            owner=artifact.owner,
            tolerance=serving.tolerance,
            reset=serving.reset,
            seed=serving.seed,
            unordered=tuple(serving.unordered),
            timed=serving.timed and unit.examination is Examination.FULL,
            shares=SHARED[unit.examination],
            given=GivenArtifact(
                path=str(path),
                inputs=str(inputs) if inputs is not None else "",
                requests=tuple(serving.requests),
                methods=tuple(serving.methods),
                kind=artifact.loaded_as,
            ),
        )
        return replace(declaration, source_digest=source_digest(declaration))

    def explain(self, artifact: FleetArtifact) -> Finished:
        unit = FleetUnit(
            key=artifact.key,
            artifact=artifact.name,
            artifacts=(artifact.name,),
            examination=Examination.FULL,
            profile=artifact.serving.profile,
            risk=0,
            cost_s=0.0,
        )
        try:
            ready = _Ready(unit, self._declaration(unit, {item.path: item for item in self._store.files()}))
        except SourceFault as fault:
            raise SelectionError(fault.text, "where the store has changed, plan again") from None
        plan = self._plan_of([ready], unit.profile)
        plan = replace(plan, settings=replace(plan.settings, explain=float(EXPLAIN_S)))
        runs = self._folder / RUNS
        options = replace(options_again(self._plan, self._options), out=str(runs), progress=self._progress)
        with RunDir.create(runs, f"explain-{artifact.name}", clock.utc_now()) as run_dir:
            run_dir.save_plan(plan)
            return execute(plan, run_dir, options)

    def _run(self, ready: Sequence[_Ready]) -> list[FleetUnit]:
        """Run units in one run, or go on with the one that was interrupted; return those that have no result."""
        profile = ready[0].unit.profile
        title = f"fleet-{codec.digest([(item.unit.key, item.unit.artifact) for item in ready])[:12]}"
        runs = self._folder / RUNS
        try:
            with self._run_dir(runs, title) as run_dir:
                self.runs.append(str(run_dir.path))
                known = stored_report(run_dir.path) if (run_dir.path / REPORT).is_file() else None
                if known is not None and not known.judgement.interrupted:  # ended before its results were kept
                    report = known
                else:
                    if (run_dir.path / RUN_PLAN).is_file():
                        plan = run_dir.load_plan()
                    else:
                        plan = self._plan_of(ready, profile)
                        run_dir.save_plan(plan)
                    options = replace(options_again(self._plan, self._options), out=str(runs), progress=self._progress)
                    report = execute(plan, run_dir, options).report
                left = self._keep([item.unit for item in ready], report)
                run_dir.write(KEPT, b"")
        except DiskFull as error:
            return [self._faulty(item.unit, "spurious-disk", error.message) for item in ready]
        except RunDirError as error:
            hint = OTHER_FOLDER if error.hint == codec.OTHER_FOLDER else error.hint
            raise RunDirError(error.message, hint) from error
        return left

    def _run_dir(self, runs: Path, title: str) -> RunDir:
        for path in sorted(runs.glob(f"*-{title}*")):
            if (path / RUN_PLAN).is_file() and not (path / KEPT).exists():
                return RunDir.open(runs, str(path))
        return RunDir.create(runs, title, clock.utc_now())

    def _plan_of(self, ready: Sequence[_Ready], profile: str) -> Plan:
        options = options_again(self._plan, self._options, tuple(self._plan.profiles[profile]))
        plan = make_plan(options, GivenModels(models=tuple(item.declaration for item in ready)))
        settings = replace(plan.settings, rollback="off", migrate=False)  # no answer over a fleet is made of these
        if profile:
            settings = replace(settings, profile=replace(settings.profile, name=profile))
        if not any(item.declaration.timed for item in ready):
            settings = replace(settings, latency=replace(settings.latency, budget="off"))
        full = [item.unit.artifact for item in ready if item.unit.examination is Examination.FULL]
        return replace(plan, settings=settings, groups={name: (name,) for name in full})

    def undecided(self) -> list[tuple[Path, list[FleetUnit]]]:
        """Return the runs here whose timing left units undecided; rounds of an interrupted call are kept first."""
        units = {unit.artifact: unit for unit in self._plan.units}
        undecided = []
        for mark in sorted((self._folder / RUNS).glob(f"*/{KEPT}")):
            report = stored_report(mark.parent)
            timed = {model.model: model.latency for model in report.models}
            rows = {row.model: row for row in report.judgement.rows if row.model in units}
            mine = [units[name] for name in rows if self._goes_on_from(units[name], timed[name])]
            unkept = [unit for unit in mine if self._rounds(unit) < _count(timed[unit.artifact])]
            if unkept and not blind(report.judgement):
                self._keep(unkept, report, replaces=True)
            still_open = [unit for unit in mine if _is_open(rows[unit.artifact])]
            if still_open:
                undecided.append((mark.parent, still_open))
        return undecided

    def _rounds(self, unit: FleetUnit) -> int:
        result = self._results.read(unit.key)
        return _count(result.facts.latency) if result is not None else 0

    def _goes_on_from(self, unit: FleetUnit, timed: LatencyMeasurement | None) -> bool:
        """Whether the result of a unit has the first rounds of this measurement, or all: so it is of this run."""
        result = self._results.read(unit.key)
        known = result.facts.latency if result is not None else None
        return known is not None and timed is not None and timed.samples[: len(known.samples)] == known.samples

    def time_more(self, folder: Path, units: Sequence[FleetUnit], more_s: float) -> int:
        """Go on timing what a run left undecided; return how many units have more rounds now.

        Rounds are those of all artifacts of the run: where one is another file now, none of them would be gone on from.
        """
        try:
            listed = {item.path: item for item in self._store.files()}
            for unit in units:  # fetched again where need be, and still what was planned
                self._declaration(unit, listed)
        except SourceFault as fault:
            self._progress.note(f"{folder.name} is not timed further: {fault.text}")
            return 0
        changed = _changed(RunDir(folder).load_plan().models)
        if changed:
            what = f"its rounds were measured beside {first_few(changed, 3)}, which changed since"
            self._progress.note(f"{folder.name} is not timed further: {what}")
            return 0
        with RunDir.open(self._folder / RUNS, str(folder)) as run_dir:
            self.runs.append(str(run_dir.path))
            plan = replace(run_dir.load_plan(), more_s=more_s)
            options = replace(
                options_again(self._plan, self._options), out=str(self._folder / RUNS), progress=self._progress
            )
            report = execute(plan, run_dir, options).report
        why_blind = blind(report.judgement)
        if why_blind:
            self._progress.note(f"rounds of {folder.name} do not count: {why_blind}")
            return 0
        timed = {model.model: model.latency for model in report.models}
        further = [unit for unit in units if _count(timed[unit.artifact]) > self._rounds(unit)]
        self._keep(further, report, replaces=True)
        return len(further)

    def _keep(self, units: Sequence[FleetUnit], report: RunReport, *, replaces: bool = False) -> list[FleetUnit]:
        """Keep what a run found; return the units without a usable result. ``replaces``: results there are replaced."""
        why_blind = blind(report.judgement)
        if why_blind:
            return [self._faulty(unit, "spurious-gate", why_blind) for unit in units]
        frame = frame_of(report)
        frame_key = codec.digest(frame)
        rows = {row.model: row for row in report.judgement.rows}
        facts = {model.model: model for model in report.models}
        left = []
        seconds: dict[str, float] = defaultdict(float)
        for cell, value in report.durations_s.items():
            seconds[cell.partition("/")[0]] += value
        for unit in units:
            name = unit.artifact
            label, why = label_of(rows[name], memory_is_derived=self._memory_is_derived)
            if label:
                left += [] if replaces else [self._faulty(unit, label, why)]
                continue
            artifact = self._artifacts[name]
            result = FleetResult(
                key=unit.key,
                content=content_of(artifact, unit.examination, self._common),
                name=name,
                examination=unit.examination,
                frame=frame_key,
                row=rows[name],
                facts=facts[name],
                scenarios=tuple(item for item in report.scenarios if item.group == name),
                explained=tuple(item for item in report.explained if item.model == name),
                seconds=round(seconds[name], 3),
            )
            self._results.save(result, frame, replaces=replaces)
        return left


def _count(timed: LatencyMeasurement | None) -> int:
    return len(timed.samples) if timed is not None else 0


def _changed(models: Sequence[ModelDeclaration]) -> list[str]:
    """Return the paths of artifacts that are gone, or other files than a run was planned for."""

    def is_planned(path: str, sha256: str | None) -> bool:
        try:
            return sha256 is None or sha256_of(Path(path)) == sha256
        except CannotRead:
            return False

    given = [model.given for model in models if model.given is not None]
    return [item.path for item in given if not is_planned(item.path, item.sha256)]


def _is_open(row: RowVerdict) -> bool:
    return any(cell.scenario == TIMING and cell.status is Status.INCONCLUSIVE for cell in row.cells)


def _fetched(store: Store, listed: Mapping[str, Listed], path: str) -> Path:
    if path not in listed:
        raise SourceFault("spurious-vanished", f"{path} is no longer in the store")
    return store.local(listed[path])


def frame_of(report: RunReport) -> RunReport:
    return replace(
        report,
        run="",
        started_at="",
        wall_s=0.0,
        judgement=replace(report.judgement, rows=(), reason="", mitigation=""),
        models=(),
        scenarios=(),
        time_shares_s={},
        notes=(),
        rerun={},
        arguments=(),
        rollback=None,
        migration=None,
        explained=(),
        timelines=(),
        baseline=None,
        during_run=None,
        waivers=(),
        trust=(),
        causes=(),
        common=None,
        durations_s={},
    )
