"""Everything that a run has checked as one list, worst first: what the formats for machines in CI are made of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from harness.core.errors import ExitCode
from harness.core.outcome import Decision, Status
from harness.core.prediction import ModelRollback, RollbackAnswer, RollbackReport
from harness.core.report import CellChange, CellTrend, RunReport
from harness.core.verdict import CellVerdict, PlantedDefectResult, Waived
from harness.report.text.table import table_rows
from harness.report.words.phrases import scenario_words
from harness.report.words.policy import let_pass
from harness.report.words.predictions import closed_words, rollback_lines
from harness.report.words.red_cells import RedCell, cell_words, red_cells
from harness.report.words.summary import decision_words, headline, missed_words, pair_words
from harness.verdict.commands import is_red, rerun_command
from harness.verdict.counting import cell_word

WORSE = (CellTrend.NEW, CellTrend.GREW)
UNDECIDED = (Decision.INCONCLUSIVE, Decision.NOTHING_TESTED)
DECISION, PLANTED_DEFECTS, ROLLBACK = "gate", "planted_defects", "rollback"


class State(StrEnum):
    """What a check means for the run; the order is from worst to best."""

    RED = "red"
    """It failed, and keeps the run from being green."""
    OPEN = "open"
    """It could not be decided, and keeps the run from being green."""
    RULED = "let pass"
    """It fails, and the policy lets it pass: nobody answers for it until a day."""
    ASIDE = "aside"
    """It failed or is open, and does not decide the run."""
    BEFORE = "before"
    """It fails in the old release too."""
    WAIVED = "waived"
    """It fails, and a waiver covers it."""
    ABSENT = "absent"
    """It could not be tested in one of the releases."""
    GREEN = "green"


_PLACE = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]{0,8})", re.DOTALL)
_CELL_STATES = {
    Status.PASS: State.GREEN,
    Status.FAIL: State.RED,
    Status.XPASS: State.RED,  # its waiver must go
    Status.INCONCLUSIVE: State.OPEN,
    Status.SAME_FAIL: State.BEFORE,
    Status.XFAIL: State.WAIVED,
    Status.UNSUPPORTED: State.ABSENT,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that a run has checked, as raw texts: a renderer escapes them.

    Attributes:
        name: stable across runs: the id of the cell, the planted defect, the model, or ``"decision"``.
        suite: the scenario, or one of ``DECISION``, ``PLANTED_DEFECTS`` and ``ROLLBACK``.
        title: the whole of it in a few words.
        raw: the word of the gate itself: a ``Status``, an ``Answer``, a ``Decision``, ``"caught"`` or ``"missed"``.
        message: why, in words; for what is green too where there is something to say.
        lines: (label, text) in reading order, where there is more to tell.
        kinds: of the findings.
        evidence: paths.
        change: of a cell, how it has changed since the baseline; empty where it has not.
        seconds: what its probes took, as far as that is known.
    """

    name: str
    suite: str
    title: str
    state: State
    raw: str
    message: str = ""
    model: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ()
    waived: tuple[Waived, ...] = ()
    evidence: tuple[str, ...] = ()
    change: CellTrend | None = None
    seconds: float = 0.0


def checks(report: RunReport, *, directory: str = "") -> tuple[Check, ...]:
    """Return the decision, then all else: the worst first, of these what is new, and else in the order of the table.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
    """
    order = list(State)
    rest = (*_planted_defects(report), *_cells(report, directory), *_rollback_probes(report))
    ranked = sorted(rest, key=lambda check: (order.index(check.state), check.change not in WORSE))
    return (_decision(report), *ranked)


def declared(report: RunReport) -> dict[str, str]:
    """Return model -> where it is declared, as far as the report alone knows: the folder of a run knows more."""
    return {model.model: model.where for model in report.models if not model.where.startswith("/")}


def file_and_line(place: str) -> tuple[str, int]:
    """Return the two parts of ``file:line``; line 0 where there is none."""
    found = _PLACE.fullmatch(place)
    return (found["file"], int(found["line"])) if found is not None else (place, 0)


def _decision(report: RunReport) -> Check:
    """Return the whole run as a check; green only where the exit code is 0."""
    judgement = report.judgement
    undecided = judgement.decision in UNDECIDED
    green = judgement.exit_code == ExitCode.COMPATIBLE and not undecided
    return Check(
        name="decision",
        suite=DECISION,
        title=f"{headline(report)} ({pair_words(report)})",
        state=State.GREEN if green else State.OPEN if undecided else State.RED,
        raw=judgement.decision.value,
        message=judgement.reason,
        lines=(("means", decision_words(report)),),
    )


def _cells(report: RunReport, directory: str) -> Iterator[Check]:
    red = {cell.cell: cell for cell in red_cells(report, directory=directory)}
    owners = {model.model: model.owner for model in report.models}
    changes = {item.cell: item for item in (report.baseline.changes if report.baseline is not None else ())}
    for row in table_rows(report):
        for cell in row.cells:
            red_cell = red.get(cell.cell)
            reason = row.verdict.reason if row.verdict and cell.status is not Status.PASS else ""
            yield Check(
                name=cell.cell,
                suite=cell.scenario,
                title=f"{cell_word(cell)}: {cell.model}, {scenario_words(cell.scenario)}",
                state=_cell_state(cell),
                raw=cell_word(cell),
                message=_cell_message(cell, reason),
                model=cell.model,
                lines=(
                    *_cell_lines(report, cell, red_cell, owners.get(cell.model, "")),
                    *_change_lines(report, changes.get(cell.cell), red_cell),
                ),
                kinds=cell.kinds,
                waived=cell.waived,
                evidence=red_cell.evidence if red_cell is not None else (),
                change=changes[cell.cell].change if cell.cell in changes else None,
                seconds=report.durations_s.get(cell.cell, 0.0),
            )


def _cell_state(cell: CellVerdict) -> State:
    state = _CELL_STATES[cell.status]
    if state in (State.RED, State.OPEN) and not is_red(cell):
        return State.ASIDE
    return State.RULED if state is State.WAIVED and not cell.waived and let_pass(cell) else state


def _cell_message(cell: CellVerdict, reason: str) -> str:
    """Return why, in words; of a cell that passes what the policy let pass, or what was found and does not matter."""
    if cell.status is not Status.PASS:
        return cell_words(cell, reason)
    passed = let_pass(cell)
    return f"let pass by the policy: {passed}" if passed else cell_words(cell) if cell.findings else ""


def _cell_lines(report: RunReport, cell: CellVerdict, red: RedCell | None, owner: str) -> Iterator[tuple[str, str]]:
    """Yield the owner, the story of a red cell, who lets a waived one pass, and the command that shows either again."""
    if owner and cell.status is not Status.PASS:
        yield "owner", owner
    yield from red.lines if red is not None else ()
    yield from (("found", path) for path in (red.found if red is not None else ()))
    yield from (("waived", waived_words(item)) for item in cell.waived)
    if cell.status is not Status.PASS and let_pass(cell):
        yield "let pass", let_pass(cell)
    if cell.status is not Status.PASS:
        yield "rerun", rerun_command(report, cell.cell)


def _change_lines(report: RunReport, item: CellChange | None, red: RedCell | None) -> Iterator[tuple[str, str]]:
    """Yield how a cell has changed since the baseline; the lines of a red cell say so already."""
    if item is not None and report.baseline is not None and red is None:
        yield "baseline", f"{item.words} since {report.baseline.run}" + (f": {item.why}" if item.why else "")


def waived_words(item: Waived) -> str:
    """Return who answers for what until when, and why."""
    bound = f" up to {item.bound:g}" if item.bound is not None else ""
    issue = f" ({item.issue})" if item.issue else ""
    return f"{', '.join(item.kinds)}{bound} by {item.owner} until {item.expires}: {item.reason}{issue}"


def _planted_defects(report: RunReport) -> Iterator[Check]:
    """Yield the planted defects: one that is not caught is a failure of the gate itself."""
    for planted_defect in report.judgement.planted_defects:
        yield Check(
            name=planted_defect.name,
            suite=PLANTED_DEFECTS,
            title=f"planted defect {planted_defect.name}: {'caught' if planted_defect.caught else 'missed'}",
            state=State.GREEN if planted_defect.caught else State.RED,
            raw="caught" if planted_defect.caught else "missed",
            message="" if planted_defect.caught else missed_words(planted_defect),
            lines=_planted_lines(planted_defect),
            kinds=("planted_defect",),
        )


def _planted_lines(planted_defect: PlantedDefectResult) -> tuple[tuple[str, str], ...]:
    reported = ", ".join(planted_defect.reported) or "nothing"
    return () if planted_defect.caught else (("expected", planted_defect.expected or "nothing"), ("reported", reported))


def _rollback_probes(report: RunReport) -> Iterator[Check]:
    """Yield every model's rollback: red only where policy lets it decide."""
    found = report.rollback
    if found is None:
        return
    for item in found.models:
        yes = item.answer is RollbackAnswer.YES
        words = closed_words(item.answer)
        command = (("shows", item.command),) if item.command else ()
        yield Check(
            name=item.model,
            suite=ROLLBACK,
            title=f"{item.model}: can be rolled back" if yes else f"{item.model}: {words}",
            state=_rollback_state(found, item),
            raw=item.answer.value,
            message="" if yes else f"{words}: {item.reason}",
            model=item.model,
            lines=() if yes else (*rollback_lines(item), *command),
            kinds=() if yes else ("rollback",),
        )


def _rollback_state(found: RollbackReport, item: ModelRollback) -> State:
    if item.answer is RollbackAnswer.YES:
        return State.GREEN
    if not found.gates:
        return State.ASIDE
    return State.RED if item.answer is RollbackAnswer.NO else State.OPEN
