"""``gate``: a finished run, judged again by another policy; without torch, and without the environments."""

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

from harness.apps.report.baseline import beside, like_of, read_baseline
from harness.apps.report.files import Finished, read_report, refuse_an_older_run
from harness.config.policy import IN_CONFIG, Tagged, idle_rules, policy_of
from harness.core.errors import RunDirError
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import Cause
from harness.machine import clock
from harness.project import Project, in_command
from harness.serving.scenarios import TIMING
from harness.store.run_folder import LAST, REPORT
from harness.verdict.causes import cause_named, with_causes
from harness.verdict.commands import RED
from harness.verdict.enforce import WaiverContext
from harness.verdict.regate import regate
from harness.verdict.waivers.uses import ran_by

NAMED = 5


def gate(project: Project, run_name: str, *, waivers: str | None = None, baseline: str | None = None) -> Finished:
    """Return a run as today's policy and ``waivers`` (a file, else the project's) judge it; nothing is changed."""
    configured = project.settings
    settings, source = configured.policy, configured.policy_file or IN_CONFIG
    assignments = "".join(f" --set {text.removeprefix('policy.')}" for text in project.assignments)
    source += f" with{assignments}" if assignments else ""
    known = project.waivers(path=Path(waivers) if waivers is not None else None)
    finished = read_report(project, run_name)
    if run_name == LAST:
        refuse_an_older_run(project, finished.folder, "gate")
    report = finished.report
    twice = [name for name, count in Counter(row.model for row in report.judgement.rows).items() if count > 1]
    if twice:  # of reports that somebody has put together: one row would take the other's place
        raise RunDirError(f"{finished.folder / REPORT} has {twice[0]} twice", "judge the report of each run by itself")
    tags = {model.model: model.tags for model in report.models}
    models = [Tagged(row.model, tags.get(row.model, ())) for row in report.judgement.rows]
    judged = regate(
        report,
        settings,
        {model.name: policy_of(settings, model, source=source) for model in models},
        WaiverContext(waivers=known, ran=ran_by(report), today=clock.today()),
        source=source,
        notes=idle_rules(settings, models),
    )
    judged = with_causes(_with_reruns(judged, finished.folder, project))
    if baseline is not None:
        judged = beside(judged, read_baseline(project, baseline, like_of(judged)))
    return replace(finished, report=judged)


def with_cause(finished: Finished, project: Project, id_: str, run_name: str) -> tuple[Finished, Cause]:
    """Return a run and its cause of that id: as today's policy and waivers judge it, else as it was judged then."""
    today = gate(project, str(finished.folder))
    causes = {cause.id: (judged, cause) for judged in (finished, today) for cause in judged.report.causes}
    cause = cause_named([cause for _, cause in causes.values()], id_, run_name)
    return causes[cause.id]


def _with_reruns(report: RunReport, folder: Path, project: Project) -> RunReport:
    regated = report.policy.regated
    changed = [change for change in regated.changes if change.now in RED] if regated is not None else []
    policy = (
        f" --policy {shlex.quote(in_command(Path(project.policy_file)))}" if project.policy_file is not None else ""
    )
    policy += "".join(f" --set {shlex.quote(text.removeprefix('policy.'))}" for text in project.assignments)
    begin = project.command("rerun", in_command(folder))
    commands = {cell: f"{command}{policy}" for cell, command in report.rerun.items()}
    cells = {cell.cell: cell for cell in report.judgement.cells}
    for change in changed:
        longer = " --latency thorough" if cells[change.cell].scenario == TIMING else ""
        commands[change.cell] = f"{begin} {shlex.quote(change.cell)}{longer}{policy}"
    open_ = [cells[change.cell].model for change in changed if change.now is Status.INCONCLUSIVE]
    note = f"this policy leaves {counted(len(open_), 'cell')} to ask again ({first_few(open_, NAMED)})"
    notes = (f"{note}, in one command: {begin} --undecided{policy}",) if open_ else ()
    return replace(report, rerun=commands, notes=(*notes, *report.notes))
