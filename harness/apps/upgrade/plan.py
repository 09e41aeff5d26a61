"""The plan of a run: what the command line and the project say is tested, before anything is built or started."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.apps.golden.source import golden_source
from harness.artifacts import fixture_folders
from harness.artifacts.given import GivenModels
from harness.checks.startup.groups import assign_groups
from harness.core.devices import Device
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError, EnvironmentUnavailable, SelectionError
from harness.core.models import ModelDeclaration
from harness.core.plan import DEFAULT_SCENARIOS, Plan, Settings
from harness.environments.native import INSTALL, find_compiler, why_no_compiler
from harness.environments.pins import pin_notes
from harness.environments.sides import direction_of
from harness.project import Project, chosen_device
from harness.serving.scenarios import INITIALIZATIONS, SCENARIOS, TIMING


def make_plan(project: Project, given: GivenModels | None = None) -> Plan:
    """Return the plan of a new run; nothing has been built or started yet.

    Args:
        given: the models, where something else than the command line and the configuration says which.
    """
    settings = project.settings
    selected = project.selected(given)
    models = selected.models
    device = chosen_device(settings)
    if settings.runtime in ("libtorch", "both") and find_compiler() is None:
        raise EnvironmentUnavailable(f"--runtime {settings.runtime}: {why_no_compiler()}", INSTALL)
    kept = golden_source(models, project, project.golden_store(project.golden), device.name, settings.profile)
    old: EnvSpec | None
    if kept is None:
        old, new = project.sides()
    else:
        old, new = None, project.side("new")
        models = kept.models
        settings = replace(settings, computes_in={**kept.computes_in, **settings.computes_in})
    if not device.is_cpu:  # where a driver may compile kernels for minutes that the old release had at hand
        deadlines = replace(settings.deadlines, fast_floor_s=settings.deadlines.floor_s)
        settings = replace(settings, deadlines=deadlines)
    scenarios = _scenarios(project.scenarios, settings, device)
    _refuse_what_answers_nothing(project, scenarios, models)
    planted_defects = fixture_folders.read_fixtures(fixture_folders.PLANTED_DEFECTS, subfolders=False)
    return Plan(
        settings=settings,
        old=old,
        new=new,
        device=device.name,
        direction=direction_of(old.release if old is not None else None, new.release),
        models=models,
        planted_defects=tuple(item for item in planted_defects if _is_planted(item, device, scenarios)),
        groups=assign_groups(models, settings.groups),
        scenarios=scenarios,
        golden=kept.folder if kept is not None else None,
        arguments=tuple(project.arguments),
        unjudged=selected.unjudged,
        notes=(
            *pin_notes(project.folder, (old and old.release) or settings.old, new.release or ""),
            *selected.notes,
            *(kept.notes if kept else ()),
            *_left_out(project.scenarios or settings.scenarios, scenarios),
        ),
    )


def plan_of_probes(project: Project, selected: GivenModels, settings: Settings, *, old: EnvSpec, new: EnvSpec) -> Plan:
    """Return the plan of what loads and calls models alone, and is no run: a matrix, a migration, a search."""
    return Plan(
        settings=settings,
        old=old,
        new=new,
        device=chosen_device(settings).name,
        direction="backward",
        models=selected.models,
        planted_defects=(),
        groups=assign_groups(selected.models, settings.groups),
        scenarios=("alone",),
        arguments=tuple(project.arguments),
        notes=selected.notes,
    )


def _is_planted(declaration: ModelDeclaration, device: Device, scenarios: Collection[str]) -> bool:
    """Return whether a planted defect can show here: what one scenario alone shows is planted only for that one."""
    mark = declaration.planted_defect
    shown_in = INITIALIZATIONS.get(mark.scenario) if mark is not None else None
    asked = shown_in is None or not (shown_in.on_request or shown_in.graphs) or shown_in.name in scenarios
    return asked and device.takes(declaration.devices)


def ending_at(plan: Plan, until: str) -> Plan:
    """Return the plan of a run that ends at ``until``; the one that is stored stays whole, for ``--resume``."""
    latency = replace(plan.settings.latency, budget="off")
    return replace(plan, until=until, settings=replace(plan.settings, latency=latency))


def _refuse_what_answers_nothing(
    project: Project, scenarios: Sequence[str], models: Sequence[ModelDeclaration]
) -> None:
    """Refuse options whose answer the others of the same command line rule out, before anything is built."""
    latency = project.overrides.get("latency", "off")
    initializes = any(name in INITIALIZATIONS for name in scenarios)
    beside: Sequence[tuple[bool, str, str]] = (
        (
            latency != "off" and bool(project.until),
            f"--latency {latency}",
            f"--until {project.until} ends before timing",
        ),
        (latency != "off" and project.golden is not None, f"--latency {latency}", "golden records have no speed"),
        ("init_rounds" in project.overrides and not initializes, "--init-rounds", "no scenario initializes anything"),
        ("init_threads" in project.overrides and not initializes, "--init-threads", "no scenario initializes anything"),
    )
    for useless, option, why in beside:
        if useless:
            raise ConfigError(f"{option} would answer nothing: {why}", "leave one of the two out")
    if latency != "off" and not any(model.timed for model in models):
        raise ConfigError(
            f"--latency {latency} would answer nothing: every model that is selected says timed=False",
            "select one that is timed, or leave --latency out",
        )


def _scenarios(wanted: Sequence[str], settings: Settings, device: Device) -> tuple[str, ...]:
    """Return the scenarios of a run in the order of the report; ``alone`` is always among them.

    Timing was one of them once: who still names it gets what the budget of the benchmark says.
    """
    named = set(wanted or settings.scenarios) - {TIMING}
    unknown = sorted(named - {*SCENARIOS, "all"})
    if unknown:
        raise SelectionError(f"there is no scenario {unknown[0]!r}", f"one of: {', '.join(SCENARIOS)}")
    if not wanted and device.graphs and settings.scenarios == DEFAULT_SCENARIOS:
        named.add("cuda_graphs")  # what production does there
    if "all" in named:
        named.remove("all")
        runtime = settings.runtime if find_compiler() is not None else "python"
        named.update(name for name in SCENARIOS if not _impossible(name, runtime, device))
    if settings.runtime != "libtorch":
        named.update(item.name for item in INITIALIZATIONS.values() if item.variant_of in named)
    for name in named:
        why = _impossible(name, settings.runtime, device)
        if why:
            possible = [item for item in SCENARIOS if not _impossible(item, settings.runtime, device)]
            raise SelectionError(f"the scenario {name} {why}", f"leave it out; possible are: {', '.join(possible)}")
    return tuple(name for name in SCENARIOS if name in named or name == "alone")


def _left_out(wanted: Sequence[str], planned: Sequence[str]) -> tuple[str, ...]:
    """Return a note on what ``all`` does not mean on this machine."""
    missing = [name for name in SCENARIOS if name not in planned] if "all" in wanted else []
    return (f"impossible here, so not tested: {', '.join(missing)}",) if missing else ()


def _impossible(scenario: str, runtime: str, device: Device) -> str:
    """Return why this run cannot do the scenario; empty if it can, as far as one knows before anything is built."""
    found = INITIALIZATIONS.get(scenario)
    if found is not None and found.graphs and not device.graphs:
        return "needs a GPU" if device.is_cpu else f"needs graphs, and {device.name} has none"
    if found is not None and found.forks and device.contexts:
        return f"forks a process that has a context on {device.name}, which no fork can use"
    if found is not None and runtime == "libtorch" and (found.python_only or (found.graphs and not device.nvidia)):
        return 'needs the Python worker, and runtime = "libtorch"'
    return 'needs the C++ worker, and runtime = "python"' if found and found.native_only and runtime == "python" else ""
