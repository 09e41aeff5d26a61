"""A run executed: a new one, or one that goes on where it was interrupted."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from harness.apps.doctor.preflight import look, machine_notes, with_machine_changes
from harness.artifacts import fixture_folders
from harness.config.durations import seconds_of
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError, GateError, SelectionError
from harness.core.plan import Plan
from harness.core.report import RunReport
from harness.core.text import first_few
from harness.machine import clock
from harness.machine.progress import Progress
from harness.report.json.report import dump_report
from harness.run.baseline import beside_kept, keep_baseline, read_baseline
from harness.run.files import Finished, write_reports
from harness.run.golden.source import records_of
from harness.run.options import (
    Options,
    builder_for,
    other_policy,
    own_command,
    read_waivers,
)
from harness.run.pipeline import run
from harness.run.plan import ending_at, make_plan
from harness.store.run_folder import REPORT, RunDir

NOT_OF_A_PLAN = ("--resume", "--out", "--project", "--baseline", "--until", "--more")


def compat(options: Options, progress: Progress, *, baseline: str | None = None) -> Finished:
    """Run the main job, or go on with an interrupted one, and write its reports.

    Args:
        baseline: an earlier run; the report tells what has changed since.
    """
    earlier = read_baseline(options, baseline) if baseline is not None else None
    if options.more and options.resume is None:
        raise ConfigError("--more goes on with a run that has rounds", "name it: --resume last --more 10min")
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
    more_s = seconds_of(options.more, "--more") if options.more else 0.0
    if more_s and options.until:
        raise ConfigError(f"--more would answer nothing: --until {options.until} ends before timing", "leave one out")
    with RunDir.open(options.reports, name, trusted=options.trusted) as run_dir:
        if run_dir.search:
            hint = f"go on with it: {run_dir.search} --resume {name}"
            raise ConfigError(f"{run_dir.name} is a run of {run_dir.search}", hint)
        plan = run_dir.load_plan()
        _refuse_other_options(options, plan)
        if more_s and not plan.is_timed:
            message = f"--more goes on with timing, and {run_dir.name} was planned without it"
            raise ConfigError(message, "start a new run without --latency off")
        changed = fixture_folders.changed_sources((*plan.models, *plan.planted_defects))
        if changed:
            raise ConfigError(f"{', '.join(changed)} changed since this run was planned", "start a new run")
        if earlier is not None:
            keep_baseline(run_dir, earlier)
        plan = replace(plan, more_s=more_s, notes=(*plan.notes, *other_policy(plan, options)))
        return execute(plan, run_dir, options, progress)


def execute(plan: Plan, run_dir: RunDir, options: Options, progress: Progress) -> Finished:
    """Run a plan in its folder, as far as the command line says, and write its reports there."""
    if options.until:
        plan = ending_at(plan, options.until)
    before = look(plan, run_dir)
    try:
        report = run(
            plan,
            run_dir=run_dir,
            builder=builder_for(options, progress),
            progress=progress,
            golden=records_of(plan, options),
            waivers=read_waivers(options.project, plan.settings),
            today=clock.today(),
            command=own_command(options.project),
        )
    except KeyboardInterrupt:
        progress.note(f"interrupted; finished results are kept, go on with: --resume {run_dir.name}{options.out_again}")
        raise
    run_dir.write(REPORT, dump_report(report))  # before anything else that may fail
    report = beside_kept(with_machine_changes(report, before, look(plan, run_dir)), run_dir.path)
    finished = Finished(report=report, folder=run_dir.path, project=options.project)
    for note in write_reports(finished, run_dir):
        progress.note(note)
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
    """Return a command line without what names the run, where it is kept, how far it goes now and how it is shown."""
    words, rest = iter(arguments), []
    for word in words:
        if word in NOT_OF_A_PLAN:
            next(words, None)
        elif word not in ("--verbose", "--trust") and not word.startswith(tuple(f"{name}=" for name in NOT_OF_A_PLAN)):
            rest.append(word)
    return rest


def _short(spec: EnvSpec | None) -> str:
    if spec is None:
        return "golden"
    text = spec.release or spec.name
    return "".join(character if character.isalnum() or character in ".-" else "-" for character in text)
