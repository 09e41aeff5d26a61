"""The main job: plan, run, resume, render again."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.commands.baseline import beside, beside_kept, keep_baseline, read_baseline
from harness.commands.doctor import machine_notes
from harness.commands.golden_source import golden_source, records_of
from harness.commands.options import (
    CONFIG,
    Options,
    builder_for,
    check_computes_in,
    golden_store,
    known_models,
    other_policy,
    own_command,
    read_waivers,
    settings_of,
    shown_path,
)
from harness.commands.run_files import Finished, stored_report, write_reports
from harness.commands.second_look import look, seen_again
from harness.config.selection import select
from harness.domain.environment import EnvSpec
from harness.domain.plan import DEFAULT_SCENARIOS, SCENARIOS, Plan, Settings
from harness.domain.report import RunReport
from harness.domain.text import first_few
from harness.environments.compiler import INSTALL, find_compiler, why_no_compiler
from harness.environments.sides import direction_of, env_spec, env_specs
from harness.errors import ConfigError, EnvironmentUnavailable, GateError, SelectionError
from harness.models import declared
from harness.report.json.matrix import load_matrix
from harness.run.pipeline import run
from harness.startup.groups import assign_groups
from harness.startup.scenarios import INITIALIZATIONS
from harness.store.run_folder import RunDir, find_run
from harness.system import clock
from harness.system.progress import Progress

GPU_NODE = Path("/dev/nvidiactl")


def make_plan(options: Options) -> Plan:
    """Return the plan of a new run; nothing has been built or started yet.

    Raises:
        ConfigError: the configuration, a name or a file is wrong.
        EnvironmentUnavailable: the GPU was asked for and there is none.
    """
    table, settings = settings_of(options)
    known = known_models(options, settings)
    models = select(known.models, options.expression)
    check_computes_in(options, settings, known)
    device = chosen_device(settings.device)
    if settings.runtime == "libtorch" and find_compiler() is None:
        raise EnvironmentUnavailable(f"--runtime libtorch: {why_no_compiler()}", INSTALL)
    kept = golden_source(models, options, golden_store(options, options.golden), device, settings.profile)
    old: EnvSpec | None
    if kept is None:
        old, new = env_specs(
            table, settings, options.environments, file=CONFIG, libraries=options.libraries, project=options.project
        )
    else:
        old, new = (
            None,
            env_spec(
                table,
                settings,
                "new",
                options.environments,
                file=CONFIG,
                libraries=options.libraries,
                project=options.project,
            ),
        )
        models = kept.models
        settings = replace(settings, computes_in={**kept.computes_in, **settings.computes_in})
    scenarios = _scenarios(options.scenarios, settings, device)
    planted_defects = declared.read_fixtures(declared.PLANTED_DEFECTS, subfolders=False)
    return Plan(
        settings=settings,
        old=old,
        new=new,
        device=device,
        direction=direction_of(old.release if old is not None else None, new.release),
        models=models,
        planted_defects=tuple(item for item in planted_defects if device in item.devices),
        groups=assign_groups(models, settings.groups),
        scenarios=scenarios,
        golden=kept.folder if kept is not None else None,
        arguments=tuple(options.arguments),
        notes=(
            *known.notes,
            *(kept.notes if kept else ()),
            *_left_out(options.scenarios or settings.scenarios, scenarios),
        ),
    )


def compat(options: Options, progress: Progress, *, baseline: str | None = None) -> Finished:
    """Run the main job, or go on with an interrupted one, and write its reports.

    Args:
        baseline: an earlier run; the report tells what has changed since.
    """
    earlier = read_baseline(options, baseline) if baseline is not None else None
    if options.resume is not None:
        return _resume(options, progress, options.resume, earlier)
    plan = make_plan(options)
    _refuse_planted_defects(plan)
    plan = replace(plan, notes=(*plan.notes, *machine_notes(plan)))
    title = f"{_short(plan.old)}-to-{_short(plan.new)}"
    with RunDir.create(options.reports, title, clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        if earlier is not None:
            keep_baseline(run_dir, earlier)
        try:
            return execute(plan, run_dir, options, progress)
        except GateError:
            run_dir.discard_if_empty()
            raise


def _refuse_planted_defects(plan: Plan) -> None:
    """Refuse models by the names of the defects that the run plants itself: nobody could tell which is which."""
    planted = {planted_defect.name for planted_defect in plan.planted_defects}
    named = [model.name for model in plan.models if model.name in planted]
    if named:
        raise SelectionError(
            f"{first_few(named, 3)}: planted defects of the gate, which every run plants",
            "name other models, or rename yours; fixtures/breaks has models that fail",
        )


def _resume(options: Options, progress: Progress, name: str, earlier: RunReport | None) -> Finished:
    with RunDir.open(options.reports, name) as run_dir:
        if run_dir.search:
            hint = f"go on with it: {run_dir.search} --resume {name}"
            raise ConfigError(f"{run_dir.name} is a run of {run_dir.search}", hint)
        plan = run_dir.load_plan()
        _refuse_other_options(options, plan)
        changed = declared.changed_sources((*plan.models, *plan.planted_defects))
        if changed:
            raise ConfigError(f"{', '.join(changed)} changed since this run was planned", "start a new run")
        if earlier is not None:
            keep_baseline(run_dir, earlier)
        plan = replace(plan, notes=(*plan.notes, *other_policy(plan, options)))
        return execute(plan, run_dir, options, progress)


def read_report(
    options: Options, run_name: str, matrix_file: str | None = None, baseline: str | None = None
) -> Finished:
    """Return the stored report of a run, with the matrix in ``matrix_file``, and beside the run ``baseline``.

    Raises:
        ConfigError: there is no such file.
        SelectionError: there is no such run.
        RunDirError: it was interrupted before a report was written, or the report is damaged.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    report = stored_report(folder)
    matrix = None
    if matrix_file is not None:
        try:
            matrix = load_matrix(Path(matrix_file).read_bytes(), file=matrix_file)
        except OSError as error:
            raise ConfigError(f"--matrix {matrix_file}: {error.strerror}", "name a matrix.json") from error
    if baseline is not None:
        report = beside(report, read_baseline(options, baseline))
    return Finished(report=report, folder=folder, matrix=matrix, project=options.project)


def execute(plan: Plan, run_dir: RunDir, options: Options, progress: Progress) -> Finished:
    """Run a plan in its folder and write its reports there."""
    before = look(plan, run_dir)
    try:
        report = run(
            plan,
            run_dir=run_dir,
            builder=builder_for(options, progress),
            progress=progress,
            golden=records_of(plan, options),
            waivers=read_waivers(options.project),
            today=clock.today(),
            command=own_command(),
            rerun_prefix=f"{own_command()} rerun {shlex.quote(shown_path(run_dir.path))}",
        )
    except KeyboardInterrupt:
        progress.note(f"interrupted; finished results are kept, go on with: --resume {run_dir.name}{options.out_again}")
        raise
    report = beside_kept(seen_again(report, before, look(plan, run_dir)), run_dir.path)
    finished = Finished(report=report, folder=run_dir.path, project=options.project)
    write_reports(finished, run_dir)
    return finished


def _refuse_other_options(options: Options, plan: Plan) -> None:
    """Refuse another command line than that of the stored plan; the same one, or none, is fine."""
    asked, planned = _what_was_asked(options.arguments), _what_was_asked(plan.arguments)
    if len(asked) > 1 and asked != planned:
        raise ConfigError(
            f"--resume goes on with the plan of that run ({shlex.join(planned)})",
            "drop the other options, or start a new run",
        )


def _what_was_asked(arguments: Sequence[str]) -> list[str]:
    """Return a command line without what names the run and where it is kept."""
    words, rest = iter(arguments), []
    for word in words:
        if word in ("--resume", "--out", "--project", "--baseline"):
            next(words, None)
        elif not word.startswith(("--resume=", "--out=", "--project=", "--baseline=")):
            rest.append(word)
    return rest


def chosen_device(wanted: str) -> str:
    """Return the device of a run; ``auto`` is a GPU where there is one.

    Raises:
        EnvironmentUnavailable: the GPU was asked for and there is none.
    """
    if wanted == "cuda" and not GPU_NODE.exists():
        raise EnvironmentUnavailable("--device cuda: this machine shows no NVIDIA GPU", "run with --device cpu")
    return "cuda" if wanted != "cpu" and GPU_NODE.exists() else "cpu"


def _scenarios(wanted: Sequence[str], settings: Settings, device: str) -> tuple[str, ...]:
    """Return the scenarios of a run in the order of the report; ``alone`` is always among them."""
    named = set(wanted or settings.scenarios)
    unknown = sorted(named - {*SCENARIOS, "all"})
    if unknown:
        raise SelectionError(f"there is no scenario {unknown[0]!r}", f"one of: {', '.join(SCENARIOS)}")
    if not wanted and device == "cuda" and settings.scenarios == DEFAULT_SCENARIOS:
        named.add("cuda_graphs")  # what production does there
    if "all" in named:
        named.remove("all")
        runtime = settings.runtime if find_compiler() is not None else "python"
        named.update(name for name in SCENARIOS if not _impossible(name, runtime, device))
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


def _impossible(scenario: str, runtime: str, device: str) -> str:
    """Return why this run cannot do the scenario; empty if it can, as far as one knows before anything is built."""
    found = INITIALIZATIONS.get(scenario)
    if found is not None and found.gpu_only and device != "cuda":
        return "needs a GPU"
    return 'needs the C++ worker, and runtime = "python"' if found and found.native_only and runtime == "python" else ""


def _short(spec: EnvSpec | None) -> str:
    if spec is None:
        return "golden"
    text = spec.release or spec.name
    return "".join(character if character.isalnum() or character in ".-" else "-" for character in text)
