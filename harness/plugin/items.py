"""The items of a run: ``torchscript-compat::MODEL::SCENARIO`` and ``torchscript-compat::decision``."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import pytest

from harness.apps.report.files import stored_report
from harness.core.errors import ExitCode
from harness.core.outcome import Status
from harness.core.prediction import ModelRollback, RollbackAnswer, RollbackReport
from harness.core.report import RunReport
from harness.core.text import prose, visible
from harness.core.verdict import CellVerdict, RowVerdict
from harness.project import shown_path
from harness.report.backends.terminal import part_lines
from harness.report.ci.checks import waived_words
from harness.report.documents.models import cell_part
from harness.report.words.phrases import scenario_words
from harness.report.words.predictions import closed_words, rollback_lines
from harness.report.words.red_cells import cell_words, red_cells
from harness.report.words.summary import count_words, decision_words, headline, missed_words, pair_words
from harness.store.run_folder import REPORT
from harness.verdict.commands import is_red, rerun_command
from harness.verdict.counting import cell_word

WIDTH = 100


class Outcome(StrEnum):
    """What becomes of an item. XFAIL fails as its waiver expects; XPASS passes though a waiver expects it to fail."""

    PASS = "passed"  # noqa: S105  no password
    FAIL = "failed"
    SKIP = "skipped"
    XFAIL = "xfailed"
    XPASS = "xpassed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemResult:
    """One item: its name below its model, what becomes of it, and why.

    ``text``: of a failure, several lines; ``reason``: of a skip or a waiver, one line; ``rerun``: the command that
    repeats it; empty where there is none.
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
    cells = [_cell_item(report, row, cell, directory=directory, doubt=doubt) for cell in row.cells]
    back = [item for item in report.rollback.models if item.model == row.model] if report.rollback else []
    return (*cells, *(_rollback(report.rollback, item, doubt) for item in back if report.rollback))


def decision(report: RunReport, *, directory: str) -> ItemResult:
    """Return the item of the whole run: it passes only where the exit code is 0."""
    judgement = report.judgement
    if judgement.exit_code == ExitCode.COMPATIBLE:
        return ItemResult(name="decision", outcome=Outcome.PASS)
    return ItemResult(
        name="decision", outcome=Outcome.FAIL, text="\n".join(decision_lines(report, directory=directory))
    )


def decision_lines(report: RunReport, *, directory: str) -> tuple[str, ...]:
    return (
        f"{visible(headline(report))}: {prose(report.judgement.reason)}",
        f"  pair      {prose(pair_words(report))}",
        f"  models    {count_words(report)}",
        f"  means     {decision_words(report)}",
        f"  page      {visible(directory)}/report.html",
    )


def why_no_pass_counts(report: RunReport) -> str:
    """Return why a pass of this run proves nothing; empty if it does."""
    missed = [
        missed_words(planted_defect) for planted_defect in report.judgement.planted_defects if not planted_defect.caught
    ]
    return prose("; ".join([*filter(None, [report.judgement.vacuous]), *missed]))


def _cell_item(report: RunReport, row: RowVerdict, cell: CellVerdict, *, directory: str, doubt: str) -> ItemResult:
    rerun = rerun_command(report, cell.cell)
    named = f"{visible(cell.model)}, {visible(scenario_words(cell.scenario))}"
    words = f"{named}: {prose(cell_words(cell, row.reason))}"
    outcome, text, why = Outcome.SKIP, "", f"{cell_word(cell)}: {words}"
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
    rows = (replace(row, cells=(cell,)),)  # alone, so that nothing refers to other cells that the reader has not seen
    models = tuple(model for model in report.models if model.model == row.model)
    alone = replace(report, models=models, judgement=replace(report.judgement, rows=rows))
    (red,) = red_cells(alone, directory=directory)
    what = next(text for label, text in red.lines if label in ("what", "why"))
    part = replace(cell_part(report, cell, red), title=f"{red.model}: {red.stage}")
    return f"{prose(what)}\n{part_lines(part, width=WIDTH)}"


def _rollback(rollback: RollbackReport, item: ModelRollback, doubt: str) -> ItemResult:
    """Return the item of one model's rollback: red only if policy lets it decide."""
    if item.answer is RollbackAnswer.YES:
        if doubt:
            return ItemResult(name="rollback", outcome=Outcome.SKIP, reason=f"{visible(item.model)}, rollback: {doubt}")
        return ItemResult(name="rollback", outcome=Outcome.PASS)
    answered = f"{visible(item.model)}: {closed_words(item.answer)}: {prose(item.reason)}"
    if not rollback.gates:
        return ItemResult(name="rollback", outcome=Outcome.SKIP, reason=answered)
    lines = [*rollback_lines(item), *([("shows", item.command)] if item.command else [])]
    body = [f"  {label:<9} {prose(text)}" for label, text in lines]
    return ItemResult(
        name="rollback", outcome=Outcome.FAIL, text="\n".join([answered, *body]), rerun=visible(item.command)
    )


class Check(pytest.Item):
    """One check of one model, or the decision; judged already."""

    result: ItemResult
    report_path: Path

    def runtest(self) -> None:
        """Fail with the text of the red cell."""
        if self.result.outcome in (Outcome.FAIL, Outcome.XFAIL):
            pytest.fail(self.result.text, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.report_path, 0, self.nodeid


class Model(pytest.Collector):
    """The checks of one model."""

    row: RowVerdict
    folder: Path

    def collect(self) -> Iterator[Check]:
        suite = self.parent
        assert isinstance(suite, Suite)
        return (item for item in _all_of(self) if _is_chosen(item.nodeid, suite.chosen))


class Suite(pytest.Collector):
    """Everything that a run says."""

    folder: Path
    chosen: Sequence[str]

    def collect(self) -> Iterator[pytest.Collector | pytest.Item]:
        """Yield models in table order, then the decision. Raises ``CollectError``: a named item is none of them."""
        report = report_in(self.folder)
        models = []
        for row in report.judgement.rows:
            model = Model.from_parent(self, name=_part_of_id(row.model))
            model.row, model.folder = row, self.folder
            models.append(model)
        last = _check(self, decision(report, directory=shown_path(self.folder)), self.folder)
        if self.chosen:
            known = {self.nodeid, last.nodeid, *(item.nodeid for model in models for item in (model, *_all_of(model)))}
            unknown = ", ".join(visible(word) for word in self.chosen if word not in known)
            if unknown:
                raise self.CollectError(f"the run in {shown_path(self.folder)} has no {unknown}")
        yield from models
        if _is_chosen(last.nodeid, self.chosen):
            yield last


def suite_of(session: pytest.Session, name: str, folder: Path, chosen: Sequence[str]) -> Suite:
    """Return the collector of the run in ``folder``; only node ids in ``chosen`` count, if there are any."""
    suite = Suite.from_parent(session, name=name, nodeid=name)
    suite.folder, suite.chosen = folder, chosen
    return suite


def _all_of(model: Model) -> Iterator[Check]:
    """Yield the items of a model, with its tags as words for ``-k``."""
    report = report_in(model.folder)
    tags = next((facts.tags for facts in report.models if facts.model == model.row.model), ())
    for result in row_items(report, model.row, directory=shown_path(model.folder)):
        item = _check(model, result, model.folder)
        item.extra_keyword_matches.update(visible(tag) for tag in tags)
        yield item


def _check(parent: pytest.Collector, result: ItemResult, folder: Path) -> Check:
    item = Check.from_parent(parent, name=_part_of_id(result.name))
    item.result, item.report_path = result, folder / REPORT
    if result.outcome is Outcome.SKIP:
        item.add_marker(pytest.mark.skip(reason=result.reason))
    if result.outcome in (Outcome.XFAIL, Outcome.XPASS):
        item.add_marker(pytest.mark.xfail(reason=result.reason, strict=True))
    item.user_properties += [(key, value) for key, value in (("cell", result.cell), ("rerun", result.rerun)) if value]
    return item


def _is_chosen(nodeid: str, chosen: Sequence[str]) -> bool:
    return not chosen or any(nodeid == word or nodeid.startswith(word + "::") for word in chosen)


def _part_of_id(name: str) -> str:
    return re.sub("::+", ":", visible(name))


@functools.cache
def report_in(folder: Path) -> RunReport:
    return stored_report(folder)


def last_words(folder: Path) -> Sequence[str]:
    return decision_lines(report_in(folder), directory=shown_path(folder))
