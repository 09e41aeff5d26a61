"""Waivers by command: written from a red cell, listed with what they did in a run, taken out when they are over."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from harness.decision.waivers import file as waivers_file
from harness.decision.waivers.apply import Pair, before_waivers, concerns, covering_waiver, failing_findings, is_for
from harness.decision.waivers.entries import NEW_FILE, parse_waivers, with_waivers, without_entries
from harness.decision.waivers.making import waivers_for
from harness.decision.waivers.uses import pair_of, uses_without_run, waiver_uses
from harness.domain.outcome import Status
from harness.domain.report import RunReport
from harness.domain.text import first_few
from harness.domain.verdict import CellVerdict, Waiver, WaiverState, WaiverUse
from harness.errors import ConfigError, SelectionError
from harness.run.files import read_report
from harness.run.options import Options, shown_path, waivers_path
from harness.system import clock

NAMED = 4


@dataclass(frozen=True, kw_only=True)
class WaiverReport:
    """Waivers, their file and the folder of the run that needs them, as a user would type these, and what they did.

    ``run`` is empty where no run was named.
    """

    file: str
    uses: tuple[WaiverUse, ...]
    run: str = ""


def add(
    options: Options,
    run_name: str,
    cell_id: str,
    *,
    owner: str,
    reason: str,
    issue: str = "",
    expires: dt.date | None = None,
    bound: float | None = None,
) -> WaiverReport:
    """Write a waiver for each kind of finding that fails a cell of a finished run; return what was written.

    Raises:
        SelectionError: there is no such run or cell.
        ConfigError: the cell is not red, is waived already, or an argument is wrong; nothing was written.
    """
    finished = read_report(options, run_name)
    cell = before_waivers(_cell(finished.report, run_name, cell_id))  # which may have ended since the run
    pair, today = pair_of(finished.report), clock.today()
    made = waivers_for(
        cell,
        pair,
        owner=owner,
        reason=reason,
        issue=issue,
        expires=expires,
        bound=bound,
        today=today,
        latency=next((model.latency for model in finished.report.models if model.model == cell.model), None),
    )
    path, wanted = waivers_path(options.project), list[Waiver]()
    file = shown_path(path)

    def edit(text: str) -> str:
        known = parse_waivers(text, file=file)
        wanted[:] = _not_yet(made, cell, known, pair, today, file=file)
        return with_waivers(text or NEW_FILE, wanted, file=file)

    waivers_file.change(path, edit)
    return WaiverReport(file=file, uses=waiver_uses([cell], wanted, pair, today), run=shown_path(finished.folder))


def _not_yet(
    made: Sequence[Waiver], cell: CellVerdict, known: Sequence[Waiver], pair: Pair, today: dt.date, *, file: str
) -> list[Waiver]:
    """Return those of the new waivers whose kind the file does not cover already."""
    valid = [item for item in known if concerns(item, cell) and item.expires >= today and is_for(item, pair)]
    open_still = {item.kind for item in failing_findings(cell) if covering_waiver(item, valid) is None}
    if not open_still:
        who = ", ".join(dict.fromkeys(item.owner for item in valid))
        raise ConfigError(f"{cell.cell} is waived in {file} already, by {who}", "to renew it, edit its entry there")
    return [item for item in made if item.kind in open_still]


def _cell(report: RunReport, run_name: str, cell_id: str) -> CellVerdict:
    cells = report.judgement.cells
    found = next((cell for cell in cells if cell.cell == cell_id), None)
    if found is not None:
        return found
    red = [cell.cell for cell in cells if cell.status is Status.FAIL]
    hint = f"its red cells: {first_few(red, NAMED)}" if red else "it has no red cell"
    raise SelectionError(f"{run_name} has no cell {cell_id}", hint)


def known(options: Options, run_name: str | None = None) -> WaiverReport:
    """Return the waivers of the project, with what each did in a finished run where one is named."""
    path = waivers_path(options.project)
    waivers, today = parse_waivers(waivers_file.read(path), file=shown_path(path)), clock.today()
    if run_name is None:
        return WaiverReport(file=shown_path(path), uses=uses_without_run(waivers, today))
    finished = read_report(options, run_name)
    return WaiverReport(
        file=shown_path(path), uses=_uses(finished.report, waivers, today), run=shown_path(finished.folder)
    )


def _uses(report: RunReport, waivers: Sequence[Waiver], today: dt.date) -> tuple[WaiverUse, ...]:
    return waiver_uses(report.judgement.cells, waivers, pair_of(report), today)


def prune(options: Options, run_name: str | None = None, *, write: bool) -> WaiverReport:
    """Return the waivers that are over, and those that a finished run did not need where one is named.

    Args:
        write: whether they are taken out of the file.
    """
    path, today = waivers_path(options.project), clock.today()
    file = shown_path(path)
    finished = read_report(options, run_name) if run_name is not None else None
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
    return WaiverReport(file=file, uses=tuple(gone), run=shown_path(finished.folder) if finished is not None else "")
