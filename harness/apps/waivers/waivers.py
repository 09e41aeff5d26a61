"""Waivers by command: written from a red cell, listed with what they did in a run, taken out when they are over."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.apps.gate.gate import with_cause
from harness.apps.report.files import read_report
from harness.config.policy import IN_CONFIG, Tagged
from harness.config.selection import parse_expression
from harness.core.errors import ConfigError, SelectionError
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import first_few
from harness.core.verdict import CellVerdict, Waiver, WaiverState, WaiverUse
from harness.machine import clock
from harness.project import Project, shown_path
from harness.verdict.waivers import file as waivers_file
from harness.verdict.waivers.apply import (
    Ran,
    before_waivers,
    concerns,
    counting,
    covering_waiver,
    failing_findings,
    is_about,
)
from harness.verdict.waivers.entries import NEW_FILE, parse_waivers, with_waivers, without_entries
from harness.verdict.waivers.making import one_per_kind, waivers_for
from harness.verdict.waivers.uses import ran_by, uses_without_run, waiver_uses

NAMED = 4


@dataclass(frozen=True, kw_only=True)
class WaiverReport:
    """Waivers with what they did, their file, and the run that was named (else empty), as a user types these.

    ``project``: whose they are; of a run that was named, the one that the run belongs to. ``policy``: the file by which
    that run was judged, empty where it was none.
    """

    file: str
    uses: tuple[WaiverUse, ...]
    project: Project
    run: str = ""
    policy: str = ""


@dataclass(frozen=True, kw_only=True)
class ToWaive:
    """What is to be waived: a cell by its id or a model by its name, what has a cause, or what an expression means."""

    name: str | None = None
    cause: str | None = None
    models: str | None = None


def add(
    project: Project,
    run_name: str,
    which: ToWaive,
    *,
    owner: str,
    reason: str,
    issue: str = "",
    expires: dt.date | None = None,
    bound: float | None = None,
) -> WaiverReport:
    """Write a waiver for each model and failure of the cells named; return what was written."""
    finished = read_report(project, run_name)
    project = project.of_run(finished.folder)
    source, ids = finished.report.policy.source, tuple[str, ...]()
    if which.cause is not None:
        finished, cause = with_cause(finished, project, which.cause, run_name)
        ids = cause.cells
    report = finished.report
    cells = _cells(report, run_name, which, ids)
    ran, today = ran_by(report), clock.today()
    latencies = {model.model: model.latency for model in report.models}
    path, wanted = project.waivers_path, list[Waiver]()
    file = shown_path(path)
    made = {
        cell.cell: waivers_for(
            cell,
            ran,
            owner=owner,
            reason=reason,
            issue=issue,
            expires=expires,
            bound=bound,
            today=today,
            latency=latencies.get(cell.model),
        )
        for cell in cells
    }

    def edit(text: str) -> str:
        known = parse_waivers(text, file=file)
        fresh = [item for cell in cells for item in _not_yet(made[cell.cell], cell, known, ran, today)]
        if not fresh:
            raise _all_waived(cells, known, file, ran)
        wanted[:] = one_per_kind(fresh)
        return with_waivers(text or NEW_FILE, wanted, file=file)

    waivers_file.change(path, edit)
    return WaiverReport(
        file=file,
        uses=waiver_uses(cells, wanted, ran, today),
        project=project,
        run=shown_path(finished.folder),
        policy=_policy_file(source, project),
    )


def _policy_file(source: str, project: Project) -> str:
    """Return the file of a run's policy as it is typed here: as the run had it, in its project, else as it was named.

    That one does not lie here, and a command with it says so; without it another policy would judge the run.
    """
    if source == IN_CONFIG:
        return ""
    return next((shown_path(path) for path in (Path(source), project.folder / source) if path.is_file()), source)


def _not_yet(
    made: Sequence[Waiver], cell: CellVerdict, known: Sequence[Waiver], ran: Ran, today: dt.date
) -> list[Waiver]:
    valid = counting(known, cell, ran, today)
    open_still = [item for item in failing_findings(cell) if covering_waiver(item, valid) is None]
    return [item for item in made if any(is_about(item, finding) for finding in open_still)]


def _all_waived(cells: Sequence[CellVerdict], known: Sequence[Waiver], file: str, ran: Ran) -> ConfigError:
    who = ", ".join(dict.fromkeys(item.owner for item in known if any(concerns(item, cell, ran) for cell in cells)))
    more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
    are = "are" if more else "is"
    return ConfigError(
        f"{cells[0].cell}{more} {are} waived in {file} already, by {who}", "to renew it, edit its entry there"
    )


def _cells(report: RunReport, run_name: str, which: ToWaive, ids: Sequence[str]) -> list[CellVerdict]:
    """Return the cells that are named, each without waivers, which may have ended; ``ids``: of a named cause."""
    cells = [before_waivers(cell) for cell in report.judgement.cells]
    if which.cause is not None:
        chosen = [cell for cell in cells if cell.cell in ids]
    elif which.models is not None:
        matches, tags = parse_expression(which.models), {model.model: model.tags for model in report.models}
        chosen = [cell for cell in cells if matches(Tagged(cell.model, tags.get(cell.model, ())))]
    elif any(cell.model == which.name for cell in cells):
        chosen = [cell for cell in cells if cell.model == which.name]
    else:
        return [_cell(report, run_name, which.name or "")]
    failing = [cell for cell in chosen if cell.status is Status.FAIL and cell.decides]
    if not failing:
        named = which.cause or which.models or which.name
        raise SelectionError(f"nothing of {named} fails in {run_name}", _red_words(report))
    return failing


def _cell(report: RunReport, run_name: str, cell_id: str) -> CellVerdict:
    matching = next((cell for cell in report.judgement.cells if cell.cell == cell_id), None)
    if matching is None:
        raise SelectionError(f"{run_name} has no cell and no model {cell_id}", _red_words(report))
    return before_waivers(matching)


def _red_words(report: RunReport) -> str:
    red = [cell.cell for cell in report.judgement.cells if cell.status is Status.FAIL]
    return f"its red cells: {first_few(red, NAMED)}" if red else "it has no red cell"


def known(project: Project, run_name: str | None = None) -> WaiverReport:
    finished = read_report(project, run_name) if run_name is not None else None
    project = project.of_run(finished.folder) if finished is not None else project
    path = project.waivers_path
    waivers, today = parse_waivers(waivers_file.read(path), file=shown_path(path)), clock.today()
    if finished is None:
        return WaiverReport(file=shown_path(path), uses=uses_without_run(waivers, today), project=project)
    uses = _uses(finished.report, waivers, today)
    return WaiverReport(file=shown_path(path), uses=uses, project=project, run=shown_path(finished.folder))


def _uses(report: RunReport, waivers: Sequence[Waiver], today: dt.date) -> tuple[WaiverUse, ...]:
    return waiver_uses(report.judgement.cells, waivers, ran_by(report), today)


def prune(project: Project, run_name: str | None = None, *, write: bool) -> WaiverReport:
    """Return the waivers that are over or, in a named run, were not needed; ``write`` takes them out of the file."""
    finished = read_report(project, run_name) if run_name is not None else None
    project = project.of_run(finished.folder) if finished is not None else project
    path, today = project.waivers_path, clock.today()
    file = shown_path(path)
    gone = list[WaiverUse]()

    def edit(text: str) -> str:
        waivers = parse_waivers(text, file=file)
        uses = _uses(finished.report, waivers, today) if finished is not None else uses_without_run(waivers, today)
        over = {at: use for at, use in enumerate(uses) if use.state in (WaiverState.EXPIRED, WaiverState.UNUSED)}
        gone[:] = over.values()
        return without_entries(text, over, file=file) if over else text

    if write:
        waivers_file.change(path, edit)
    else:
        edit(waivers_file.read(path))
    run = shown_path(finished.folder) if finished is not None else ""
    return WaiverReport(file=file, uses=tuple(gone), project=project, run=run)
