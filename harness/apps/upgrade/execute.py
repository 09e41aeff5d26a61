"""A run executed: a new one, or one that goes on where it was interrupted."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from harness.apps.doctor.preflight import look, machine_notes, with_machine_changes
from harness.apps.report.baseline import Like, beside_kept, keep_baseline, read_baseline
from harness.apps.report.files import Finished, with_explanations, write_reports
from harness.apps.upgrade.pipeline import InterruptedRun, run
from harness.apps.upgrade.plan import ending_at, make_plan
from harness.artifacts import fixture_folders
from harness.artifacts.given import renamed_notes
from harness.config.durations import seconds_of
from harness.config.policy import IN_CONFIG
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError, GateError, SelectionError
from harness.core.plan import Plan
from harness.core.report import RunReport
from harness.core.text import first_few
from harness.machine import clock
from harness.project import Project, in_command, shown_path
from harness.report.json.report import dump_report
from harness.report.text.so_far import RED
from harness.store.run_folder import REPORT, RunDir

NOT_OF_A_PLAN = ("--resume", "--out", "--project", "--baseline", "--until", "--budget", "--more")

EXPLAIN = "--explain"  # its seconds may be left out
WITH_VALUES = tuple(f"{name}=" for name in (*NOT_OF_A_PLAN, EXPLAIN))


def compat(project: Project, *, baseline: str | None = None) -> Finished:
    """Run the main job, or go on with an interrupted one, and write its reports.

    Args:
        baseline: an earlier run; the report tells what has changed since.
    """
    _budget_s(project)  # a word that is none is refused before anything is planned
    if project.more and project.resume is None:
        raise ConfigError("--more goes on with a run that has rounds", "name it: --resume last --more 10min")
    if project.resume is not None:
        return _resume(project, project.resume, baseline)
    plan = make_plan(project)
    earlier = _earlier(project, plan, baseline)
    known = {row.model for row in earlier.judgement.rows} if earlier is not None else set()
    given = project.models.with_known(known)
    plan = plan if given == project.models else make_plan(project, given)
    _refuse_planted_defects(plan)
    renamed = renamed_notes(given.models, known | {waiver.model for waiver in project.waivers()})
    plan = replace(plan, notes=(*renamed, *plan.notes, *machine_notes(plan)))
    title = f"{_short(plan.old)}-to-{_short(plan.new)}"
    with RunDir.create(project.reports, title, clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        if earlier is not None:
            keep_baseline(run_dir, earlier)
        try:
            return execute(plan, run_dir, project)
        except GateError:
            run_dir.discard_if_empty()
            raise


def _earlier(project: Project, plan: Plan, baseline: str | None, run: str = "") -> RunReport | None:
    if baseline is None:
        return None
    old, new = (spec.name if spec is not None and spec.release is not None else "" for spec in (plan.old, plan.new))
    models = frozenset(model.name for model in plan.models)
    return read_baseline(project, baseline, Like(old, new, is_golden=plan.old is None, models=models, run=run))


def other_policy(plan: Plan, project: Project) -> tuple[str, ...]:
    """Return a note where the policy says something else than it did when a run was planned."""
    if any(word.startswith("--set") for word in plan.arguments) and not project.assignments:
        return ()  # which may have said some of it
    try:
        now = replace(project, policy_file=plan.settings.policy_file or None).settings
    except ConfigError:
        return ()
    where = plan.settings.policy_file or IN_CONFIG
    note = f"{where} has changed since this run was planned, and judged it as it was then: gate judges it by today's"
    return () if now.policy == plan.settings.policy else (note,)


def _refuse_planted_defects(plan: Plan) -> None:
    """Refuse models by the names of the defects that the run plants itself: nobody could tell which is which."""
    planted = {planted_defect.name for planted_defect in plan.planted_defects}
    named = [model.name for model in plan.models if model.name in planted]
    if named:
        raise SelectionError(
            f"{first_few(named, 3)}: planted defects of the gate, which every run plants",
            "name other models, or rename yours; fixtures/breaks has models that fail",
        )


def _resume(project: Project, name: str, baseline: str | None) -> Finished:
    more_s = seconds_of(project.more, "--more") if project.more else 0.0
    if more_s and project.until:
        raise ConfigError(f"--more would answer nothing: --until {project.until} ends before timing", "leave one out")
    with RunDir.open(project.reports, name, trusted=project.trusted) as run_dir:
        if run_dir.search:
            hint = f"go on with it: {project.command(run_dir.search, '--resume', in_command(run_dir.path))}"
            raise ConfigError(f"{run_dir.name} is a run of {run_dir.search}", hint)
        plan = run_dir.load_plan()
        _refuse_other_options(project, plan)
        if more_s and not plan.is_timed:
            message = f"--more goes on with timing, and {run_dir.name} was planned without it"
            raise ConfigError(message, "start a new run without --latency off")
        changed = fixture_folders.changed_sources((*plan.models, *plan.planted_defects))
        if changed:
            raise ConfigError(f"{', '.join(changed)} changed since this run was planned", "start a new run")
        earlier = _earlier(project, plan, baseline, run=run_dir.name)
        if earlier is not None:
            keep_baseline(run_dir, earlier)
        if "explain" in project.overrides:
            plan = replace(plan, settings=replace(plan.settings, explain=project.settings.explain))
        plan = replace(plan, more_s=more_s, notes=(*plan.notes, *other_policy(plan, project)))
        return execute(plan, run_dir, project)


def execute(plan: Plan, run_dir: RunDir, project: Project) -> Finished:
    """Run a plan in its folder, as far as the command line says, and write its reports there."""
    if project.until:
        plan = ending_at(plan, project.until)
    plan = replace(plan, budget_s=_budget_s(project))
    before = look(plan, run_dir)
    waived = {waiver.model for waiver in project.waivers(plan.settings) if waiver.expires >= clock.today()}
    project.progress.waived = waived

    def finish(report: RunReport) -> Finished:
        run_dir.write(REPORT, dump_report(report))  # before anything else that may fail
        report = with_explanations(with_machine_changes(report, before, look(plan, run_dir)), run_dir.path)
        finished = Finished(report=beside_kept(report, run_dir.path), folder=run_dir.path, project=project.folder)
        for note in write_reports(finished, run_dir):
            project.progress.note(note)
        return finished

    try:
        return finish(run(plan, run_dir, project))
    except KeyboardInterrupt as stop:
        known = stop.report.judgement.rows if isinstance(stop, InterruptedRun) else None
        judged = [row.model for row in known or () if row.status in RED]
        begun = [f"{name} (has a waiver)" if name in waived else name for name in project.progress.red_names]
        red = begun if known is None else judged
        if red:
            project.progress.note(f"red so far: {first_few(red, 10)}")
        if isinstance(stop, InterruptedRun):
            finish(stop.report)
            project.progress.note(f"what is known so far is in {shown_path(run_dir.path)}/")
        again = project.command("compat", "--resume", in_command(run_dir.path))
        project.progress.note(f"finished results are kept, go on with: {again}")
        raise


def _budget_s(project: Project) -> float:
    return seconds_of(project.budget, "--budget") if project.budget else 0.0


def _refuse_other_options(project: Project, plan: Plan) -> None:
    """Refuse another command line than that of the stored plan; the same one, or none, is fine."""
    asked, planned = _what_was_asked(project.arguments), _what_was_asked(plan.arguments)
    if len(asked) > 1 and asked != planned:
        raise ConfigError(
            f"--resume goes on with the plan of that run ({shlex.join(planned)})",
            "drop the other options, or start a new run",
        )


def _what_was_asked(arguments: Sequence[str]) -> list[str]:
    """Return a command line without what names the run, where it is kept, how far it goes now and how it is shown."""
    words, rest = list(arguments), []
    while words:
        word = words.pop(0)
        if word in NOT_OF_A_PLAN or (word == EXPLAIN and not "".join(words[:1]).startswith("-")):
            del words[:1]
        elif word not in ("--verbose", "--trust", EXPLAIN) and not word.startswith(WITH_VALUES):
            rest.append(word)
    return rest


def _short(spec: EnvSpec | None) -> str:
    if spec is None:
        return "golden"
    text = spec.release or spec.name
    return "".join(character if character.isalnum() or character in ".-" else "-" for character in text)
