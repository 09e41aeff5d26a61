"""What a cell of a run is to pytest: the outcome of its item, and the text that a reader gets."""

from dataclasses import dataclass, replace
from enum import StrEnum

from harness.decision.commands import is_red, rerun_command
from harness.domain.outcome import Status
from harness.domain.prediction import ModelRollback, RollbackAnswer, RollbackReport
from harness.domain.report import RunReport
from harness.domain.text import prose, visible
from harness.domain.verdict import CellVerdict, RowVerdict
from harness.errors import ExitCode
from harness.report.ci.checks import waived_words
from harness.report.text.console import red_cell_text
from harness.report.words.phrases import scenario_words
from harness.report.words.predictions import closed_words, rollback_lines
from harness.report.words.red_cells import cell_words, red_cells
from harness.report.words.summary import count_words, decision_words, headline, missed_words, pair_words

WIDTH = 100


class Outcome(StrEnum):
    """What becomes of an item.

    XFAIL fails as its waiver expects; XPASS passes though a waiver expects it to fail.
    """

    PASS = "passed"  # noqa: S105  no password
    FAIL = "failed"
    SKIP = "skipped"
    XFAIL = "xfailed"
    XPASS = "xpassed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemResult:
    """One item: its name below its model, what becomes of it, and why.

    Attributes:
        text: of a failure, several lines; ``reason``: of a skip or a waiver, one line.
        rerun: the command that repeats it; empty where there is none.
    """

    name: str
    outcome: Outcome
    text: str = ""
    reason: str = ""
    cell: str = ""
    rerun: str = ""


def row_items(report: RunReport, row: RowVerdict, *, directory: str) -> tuple[ItemResult, ...]:
    """Return the items of one model: one per cell, and one for its rollback where that was judged."""
    doubt = why_no_pass_counts(report)
    told = [_told(report, row, cell, directory=directory, doubt=doubt) for cell in row.cells]
    back = [item for item in report.rollback.models if item.model == row.model] if report.rollback else []
    return (*told, *(_rollback(report.rollback, item, doubt) for item in back if report.rollback))


def decision(report: RunReport, *, directory: str) -> ItemResult:
    """Return the item of the whole run: it passes only where the exit code is 0."""
    judgement = report.judgement
    if judgement.exit_code == ExitCode.COMPATIBLE:
        return ItemResult(name="decision", outcome=Outcome.PASS)
    return ItemResult(
        name="decision", outcome=Outcome.FAIL, text="\n".join(decision_lines(report, directory=directory))
    )


def decision_lines(report: RunReport, *, directory: str) -> tuple[str, ...]:
    """Return what the run decided and why, and where its page lies."""
    return (
        f"{visible(headline(report))}: {prose(report.judgement.reason)}",
        f"  pair      {prose(pair_words(report))}",
        f"  models    {count_words(report)}",
        f"  means     {decision_words(report)}",
        f"  page      {visible(directory)}/report.html",
    )


def why_no_pass_counts(report: RunReport) -> str:
    """Return why what passed in this run shows nothing; empty where it does."""
    missed = [
        missed_words(planted_defect) for planted_defect in report.judgement.planted_defects if not planted_defect.caught
    ]
    return prose("; ".join([*filter(None, [report.judgement.vacuous]), *missed]))


def _told(report: RunReport, row: RowVerdict, cell: CellVerdict, *, directory: str, doubt: str) -> ItemResult:
    rerun = rerun_command(report, cell.cell)
    named = f"{visible(cell.model)}, {visible(scenario_words(cell.scenario))}"
    words = f"{named}: {prose(cell_words(cell, row.reason))}"
    outcome, text, why = Outcome.SKIP, "", f"{cell.status.value}: {words}"
    if cell.status is Status.XPASS:
        outcome, why = Outcome.XPASS, words
    elif is_red(cell):
        outcome, text, why = Outcome.FAIL, _red_text(report, row, cell, directory=directory), ""
    elif cell.status is Status.XFAIL:
        waived = "; ".join(prose(waived_words(item)) for item in cell.waived)
        outcome, why = Outcome.XFAIL, f"waived: {waived}" if waived else words
        text = f"{cell.status.value}  {words}\n  rerun     {visible(rerun)}"
    elif cell.status is Status.PASS and doubt:
        why = f"{named}: passed, and that shows nothing: {doubt}"
    elif cell.status is Status.PASS:
        outcome, why = Outcome.PASS, ""
    return ItemResult(
        name=visible(cell.scenario),
        outcome=outcome,
        text=text,
        reason=why,
        cell=visible(cell.cell),
        rerun=visible(rerun),
    )


def _red_text(report: RunReport, row: RowVerdict, cell: CellVerdict, *, directory: str) -> str:
    """Return what happened on one line, which is all that a summary shows, and then the cell as the console has it."""
    rows = (replace(row, cells=(cell,)),)  # alone: what it has in common with other cells, nobody has read before
    models = tuple(model for model in report.models if model.model == row.model)
    alone = replace(report, models=models, judgement=replace(report.judgement, rows=rows))
    (red,) = red_cells(alone, directory=directory)
    what = next(text for label, text in red.lines if label in ("what", "why"))
    return f"{prose(what)}\n{red_cell_text(red, width=WIDTH)}"


def _rollback(found: RollbackReport, item: ModelRollback, doubt: str) -> ItemResult:
    """Return the item of one model's rollback: red only where policy lets it decide."""
    if item.answer is RollbackAnswer.YES:
        if doubt:
            return ItemResult(name="rollback", outcome=Outcome.SKIP, reason=f"{visible(item.model)}, rollback: {doubt}")
        return ItemResult(name="rollback", outcome=Outcome.PASS)
    said = f"{visible(item.model)}: {closed_words(item.answer)}: {prose(item.reason)}"
    if not found.gates:
        return ItemResult(name="rollback", outcome=Outcome.SKIP, reason=said)
    lines = [*rollback_lines(item), *([("shows", item.command)] if item.command else [])]
    body = [f"  {label:<9} {prose(text)}" for label, text in lines]
    return ItemResult(name="rollback", outcome=Outcome.FAIL, text="\n".join([said, *body]), rerun=visible(item.command))
