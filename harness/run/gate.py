"""``gate``: a finished run, judged again by another policy; without torch, and without the environments."""

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

from harness.config.policy import IN_CONFIG, Tagged, idle_rules, policy_of
from harness.core.errors import RunDirError
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import Cause
from harness.machine import clock
from harness.run.baseline import beside, read_baseline
from harness.run.files import Finished, read_report
from harness.run.options import Options, own_command, settings_of, waivers_in, waivers_path
from harness.store.run_folder import LAST, REPORT, begun_since
from harness.verdict.causes import cause_named, with_causes
from harness.verdict.commands import RED
from harness.verdict.enforce import WaiverContext
from harness.verdict.regate import regate
from harness.verdict.waivers.uses import pair_of

NAMED = 5


def gate(options: Options, run_name: str, *, waivers: str | None = None, baseline: str | None = None) -> Finished:
    """Return a finished run as the policy and the waivers of today judge it; its folder stays as it is.

    Args:
        waivers: a file in place of the project's ``golden/waivers.toml``.

    Raises:
        ConfigError: the policy or the waivers are wrong.
        SelectionError: there is no such run.
        RunDirError: it has no report, or one with a model twice; or a later one has none, and ``last`` was asked for.
    """
    _, configured = settings_of(options)
    settings, source = configured.policy, configured.policy_file or IN_CONFIG
    said = "".join(f" --set {text.removeprefix('policy.')}" for text in options.assignments)
    source += f" with{said}" if said else ""
    at = Path(waivers) if waivers is not None else waivers_path(options.project)
    found = waivers_in(at, configured, needed=waivers is not None)
    finished = read_report(options, run_name)
    if run_name == LAST:
        _refuse_if_another_began(options.reports, finished.folder)
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
        WaiverContext(waivers=found, pair=pair_of(report), today=clock.today()),
        source=source,
        notes=idle_rules(settings, models),
    )
    judged = with_causes(_with_reruns(judged, finished.folder, options))
    if baseline is not None:
        judged = beside(judged, read_baseline(options, baseline))
    return replace(finished, report=judged)


def with_cause(finished: Finished, options: Options, id_: str, run_name: str) -> tuple[Finished, Cause]:
    """Return a run and its cause of that id: as today's policy and waivers judge it, else as it was judged then.

    Raises:
        ConfigError: the policy or the waivers are wrong.
        SelectionError: neither has such a cause; lists those of both.
    """
    today = gate(options, str(finished.folder))
    causes = {cause.id: (one, cause) for one in (finished, today) for cause in one.report.causes}
    cause = cause_named([cause for _, cause in causes.values()], id_, run_name)
    return causes[cause.id]


def _refuse_if_another_began(reports: Path, found: Path) -> None:
    """Refuse an older run's report where the newest run has none: a job would pass by yesterday's."""
    newest = begun_since(reports, found)
    if newest is None:
        return
    why, do = "it ended before that", f"finish it: compat --resume {newest.name}"
    if newest.is_running:
        why, do = "it is still running", "wait for it"
    hint = f"{do}; or name the run to judge: gate {found.name}"
    raise RunDirError(f"the last run, {newest.path}, has no {REPORT}: {why}", hint)


def _with_reruns(report: RunReport, folder: Path, options: Options) -> RunReport:
    """Return the report with commands that repeat its cells under this policy, and what is to be timed again for it."""
    regated = report.policy.regated
    changed = [change for change in regated.changes if change.now in RED] if regated is not None else []
    policy = f" --policy {shlex.quote(str(Path(options.policy).absolute()))}" if options.policy is not None else ""
    policy += "".join(f" --set {shlex.quote(text.removeprefix('policy.'))}" for text in options.assignments)
    begin = own_command(options.project, "rerun", str(folder.absolute()))
    commands = {cell: f"{command}{policy}" for cell, command in report.rerun.items()}
    for change in changed:
        longer = " --latency thorough" if change.cell.split("/")[2:3] == ["latency"] else ""
        commands[change.cell] = f"{begin} {shlex.quote(change.cell)}{longer}{policy}"
    open_ = [change.cell.split("/")[0] for change in changed if change.now is Status.INCONCLUSIVE]
    note = f"this policy leaves {counted(len(open_), 'cell')} to ask again ({first_few(open_, NAMED)})"
    notes = (f"{note}, in one command: {begin} --undecided{policy}",) if open_ else ()
    return replace(report, rerun=commands, notes=(*notes, *report.notes))
