"""``fleet plan``: a store, two releases -> what will run, how long it takes on how many machines, what is known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import __version__
from harness.apps.fleet.results import WRITABLE, FleetResults, KeptResults
from harness.apps.fleet.stores.reading import read_store
from harness.apps.fleet.stores.sources import CACHE_BYTES, SourceFault, Store, listed_files, open_store
from harness.apps.fleet.units import RUN_S, Content, examined, machines_for, units_of, why_unusable
from harness.artifacts.owners import MANIFESTS, FleetManifest, load_fleet_manifest
from harness.checks.prediction.registries import registries_of
from harness.config.command_words import OTHER_SIDE
from harness.core.archive import OperatorRegistry
from harness.core.environment import Environment
from harness.core.errors import RunDirError, SelectionError
from harness.core.fleet import PLAN_SCHEMA, FleetPlan, FleetReport, PlannedOptions
from harness.core.plan import PolicySettings, Settings
from harness.environments.interpreters import inspect_interpreter
from harness.machine.files import make_ignored, plain_bytes, unwritable
from harness.machine.progress import Progress
from harness.probing import loaded_libraries
from harness.probing.provision import build_environments
from harness.probing.runner import worker_digest
from harness.project import Project, chosen_device
from harness.report.json.results import dump, load_fleet
from harness.store import codec
from harness.store.run_folder import require_own
from harness.worker import wire

OTHER_FOLDER = f"{WRITABLE}, or name another one with --into"
PLAN, ANSWER = "plan.json", "fleet.json"
STORE, RUNS, CACHE, UNPACKED = "store", "runs", "cache", "unpacked"


@dataclass(frozen=True, kw_only=True)
class PlannedFleet:
    """A plan and the folder that it and everything after it lies in."""

    plan: FleetPlan
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What a plan depends on, beside its artifacts, on this machine."""

    settings: Settings
    device: str
    environments: Mapping[str, Environment]
    registries: Mapping[str, OperatorRegistry]
    releases: Mapping[str, str]


def plan_fleet(
    options: Project,
    store_name: str,
    *,
    into: Path,
    manifest: str | None,
    within_s: float | None,
    progress: Progress,
    cache_bytes: int = CACHE_BYTES,
) -> PlannedFleet:
    """Write the plan of a store into a folder, and return it; no artifact is loaded.

    Args:
        into: where the plan, results and runs of this fleet lie; results of earlier plans there are known.
        manifest: a ``fleet.toml``; without one, the store's own if it has one.
        within_s: how long all may take: the plan says on how many machines.

    Raises:
        SelectionError: there is no such store, or nothing in it.
        ConfigError: the configuration, a release or a manifest is wrong.
        EnvironmentUnavailable: a release could not be provisioned or asked.
    """
    store = store_of(store_name, into, cache_bytes)
    _make(into)
    declared = _manifest(manifest, store)
    sides = sides_of(options, progress)
    contents = read_store(store, declared, sides.registries, scratch=into / CACHE / UNPACKED, progress=progress)
    common = content_common(sides, contents.profiles)
    artifacts = examined(contents.artifacts, common, declared.tiers)
    results = FleetResults(into / STORE)
    costs = results.costs()
    units = units_of(artifacts, costs, results.known([item.key for item in artifacts if item.key]))
    machines = 1 if within_s is None else machines_for(units, RUN_S, within_s)
    tiers = (*declared.tiers, *sorted({item.tier for item in artifacts} - {*declared.tiers}))
    plan = FleetPlan(
        harness_version=__version__,
        store=store.name,
        old=_name_of_side("old", sides),
        new=_name_of_side("new", sides),
        releases=sides.releases,
        options=_options(options),
        settings=common.settings,
        device=sides.device,
        profiles=contents.profiles,
        tiers=tiers,
        artifacts=artifacts,
        units=units,
        run_s=RUN_S,
        measured=costs.measured,
        within_s=within_s,
        machines=machines,
        notes=contents.notes,
        unjudged=contents.unjudged,
    )
    _write(into / PLAN, plan)
    return PlannedFleet(plan=plan, folder=into)


def store_of(name: str, folder: Path, cache_bytes: int = CACHE_BYTES) -> Store:
    return open_store(name, folder / CACHE, leave_out=(folder,), limit_bytes=cache_bytes)


def load_plan(name: str, *, to_run: bool = False) -> PlannedFleet:
    """Return the plan in a file, or in a folder.

    ``to_run``: what it names will be executed: it must be this user's. Raises ``RunDirError``: there is none, it is
    damaged, of another version, or somebody else's.
    """
    path = Path(name)
    path = (path / PLAN if path.is_dir() else path).absolute()
    if not path.is_file():
        raise RunDirError(f"there is no plan {name}", "make one: fleet plan STORE --old OLD --new NEW")
    if to_run:
        require_own(path, hint="plan again: what a plan names is executed")
    try:
        version = codec.read_json(path, dict[str, Any]).get("schema_version")
        plan = codec.read_json(path, FleetPlan) if version == PLAN_SCHEMA else None
    except RunDirError as error:
        raise RunDirError(error.message, "plan again") from error
    if plan is None:
        raise RunDirError(f"{path} is no plan of a fleet of this version (schema_version {version!r})", "plan again")
    why = why_unusable(plan)
    if why:
        raise RunDirError(f"{path} is damaged or was edited: {why}", "plan again")
    return PlannedFleet(plan=plan, folder=path.parent)


def _make(folder: Path) -> None:
    try:
        make_ignored(folder)
    except OSError as error:
        raise unwritable(f"{folder} cannot be made", error, OTHER_FOLDER) from error


def _write(path: Path, plan: FleetPlan) -> None:
    _make(path.parent)
    codec.write_atomically(path, dump(plan).encode(), parents=True, synced=True, hint=OTHER_FOLDER)


def earlier_answer(name: str) -> FleetReport:
    """Return the answer in a file, or in a fleet's folder. Raises ``RunDirError``: there is none of this version."""
    path = Path(name)
    path = path / ANSWER if path.is_dir() else path
    try:
        return load_fleet(plain_bytes(path), file=str(path))
    except OSError as error:
        raise RunDirError(
            f"--since {name}: {error.strerror}", "name a fleet.json of `fleet report`, or its folder"
        ) from error


def in_folder(planned: PlannedFleet, folder: Path) -> PlannedFleet:
    """Return a plan with another folder for results and runs, one machine's own, and make that."""
    FleetResults(folder / STORE)
    _write(folder / PLAN, planned.plan)
    return PlannedFleet(plan=planned.plan, folder=folder)


def known_in(plan: FleetPlan, *folders: Path) -> frozenset[str]:
    """Return which results of a plan lie, whole, in these folders of a fleet, whoever else may be writing there."""
    known: set[str] = set()
    for folder in folders:
        try:
            kept = KeptResults(folder / STORE)
        except RunDirError:  # of another version, or no store: nothing there is known
            continue
        known |= {unit.key for unit in plan.units if unit.key not in known and kept.holds(unit.key)}
    return frozenset(known)


def options_again(plan: FleetPlan, options: Project, assignments: tuple[str, ...] = ()) -> Project:
    """Return the options of a run of the plan: what was said when it was planned, in the project of today."""
    planned = plan.options
    return replace(
        options,
        overrides=planned.overrides,
        assignments=(*planned.assignments, *assignments),
        environments=planned.environments,
        libraries=planned.libraries,
        arguments=("fleet", "run"),
    )


def _options(options: Project) -> PlannedOptions:
    environments = (argument.partition("=") for argument in options.environments)
    return PlannedOptions(
        overrides=dict(options.overrides),
        assignments=tuple(options.assignments),
        environments=tuple(f"{name}={_absolute(path)}" for name, _, path in environments),
        libraries=tuple(_absolute(path) for path in options.libraries),
    )


def _name_of_side(side: str, sides: Sides) -> str:
    spec = sides.environments[side].spec
    named = sides.settings.old if side == "old" else sides.settings.new
    return sides.registries[side].torch if spec.release is None and spec.name in OTHER_SIDE else named


def _absolute(path: str) -> str:
    """Return a path that means the same in any working directory; a command that is found by its name stays."""
    return str(Path(path).absolute()) if "/" in path else path


def sides_of(options: Project, progress: Progress) -> Sides:
    """Return both releases on this machine, built if need be, with what each accepts."""
    settings, builder = options.settings, options.builder
    old, new = options.sides()
    progress.stage("environments")
    environments = build_environments({"old": old, "new": new}, builder)
    progress.stage("operators")
    registries = registries_of(environments, builder.root)
    releases = {side: _release(environments[side], registries[side]) for side in environments}
    return Sides(
        settings=settings,
        device=chosen_device(settings).name,
        environments=environments,
        registries=registries,
        releases=releases,
    )


def _release(environment: Environment, registry: OperatorRegistry) -> str:
    """Return what results of an environment are kept under: what it has installed, and nothing of where it lies."""
    spec = environment.spec
    python, beside = spec.python or "", sorted(spec.extras)
    if spec.release is None:
        facts = inspect_interpreter(environment.interpreter)
        python, beside = facts.python, list(facts.installed)
    libraries = loaded_libraries.identity(environment) if spec.libraries else []
    more = codec.digest([beside, libraries])[:8] if beside or libraries else ""
    return " ".join(filter(None, (f"torch {registry.torch}", f"python {python}" if python else "", more)))


def content_common(sides: Sides, profiles: Mapping[str, tuple[str, ...]]) -> Content:
    return Content(
        protocol=codec.digest([__version__, wire.PROTOCOL, worker_digest()])[:16],
        releases=sides.releases,
        device=sides.device,
        settings=settings_digest(sides.settings),
        profiles=profiles,
    )


def settings_digest(settings: Settings) -> str:
    limits = settings.limits
    plain = replace(
        settings,
        old="",
        new="",
        device="",
        jobs=0,
        explain=0.0,
        migrate=False,
        fixtures="",
        artifacts=(),
        groups={},
        policy=PolicySettings(accepted_mitigations=settings.policy.accepted_mitigations),
        policy_file="",
        limits=replace(limits, memory_gb=None) if limits.memory_is_derived else limits,
    )
    return codec.digest(plain)[:16]


def _manifest(name: str | None, store: Store) -> FleetManifest:
    path = Path(name) if name is not None else None
    if path is None:
        files = {item.path: item for item in listed_files(store)}
        own = next((file for file in MANIFESTS if file in files), None)
        if own is None:
            return FleetManifest()
        try:
            path, name = store.local(files[own]), f"{store.name}/{own}"
        except SourceFault as fault:
            raise SelectionError(f"{own} of {store.name}: {fault.text}", "plan again") from None
    return load_fleet_manifest(path, file=name or str(path))
