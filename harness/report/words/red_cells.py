"""What the report says of a red cell: model, stage, what happened, since when, and how to repeat it."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.findings import SEVERITY, Severity, weight
from harness.core.outcome import Status
from harness.core.report import Explained, RunReport
from harness.core.text import counted, prose
from harness.core.verdict import CellVerdict, Finding, Mitigation
from harness.report.text.sparkline import error_lines
from harness.report.text.table import TableRow, table_rows
from harness.report.words.phrases import NO_REASON, STATUS_ORDER, path_in_run, phrase, scenario_words, shorten
from harness.report.words.predictions import Line, static_lines
from harness.report.words.quantities import limits_of, measured_lines
from harness.report.words.since import change_of_cell, machine_lines
from harness.report.words.summary import mitigation_words
from harness.search.explained_cells import SINCE
from harness.verdict.causes import cause_of
from harness.verdict.commands import RED, bisect_command, is_red, more_command, rerun_command
from harness.verdict.mitigation import fix_line

FINDINGS_SHOWN = 3
LABEL_LIMIT, STORY_LABEL_LIMIT = 12, 9
# How a mitigation is noted if it is unknown whether it mitigates.


@dataclass(frozen=True, kw_only=True, slots=True)
class RedCell:
    """One cell that needs a reader, as labelled raw texts; a renderer escapes and lays them out.

    Attributes:
        lines: (label, text) in reading order; prose, may be wrapped.
        evidence: paths, never wrapped; ``found``: those that searches about the cell have left.
        rerun: the command, never wrapped; ``bisect``: the one that looks for the operator, empty where none is.
    """

    cell: str
    model: str
    stage: str
    status: Status
    lines: tuple[Line, ...]
    evidence: tuple[str, ...]
    rerun: str
    bisect: str = ""
    found: tuple[str, ...] = ()


def run_directory(report: RunReport, directory: str) -> str:
    """Return ``directory``, or the default place of the run's reports."""
    return (directory or f"reports/{report.run}").rstrip("/")


def red_cells(report: RunReport, *, directory: str = "") -> tuple[RedCell, ...]:
    """Return every cell that is red, in the order of the table, and in each row the worst status first."""
    where = run_directory(report, directory)
    found = []
    for row in table_rows(report):
        if row.verdict is None:
            continue
        red = [cell for cell in row.verdict.cells if is_red(cell)]
        for index, cell in enumerate(sorted(red, key=lambda cell: STATUS_ORDER.index(cell.status))):
            reason = "" if index else row.verdict.reason
            found.append(_red_cell(report, row, cell, reason=reason, directory=where))
    return tuple(found)


def described_cell(report: RunReport, row: TableRow, cell: CellVerdict) -> RedCell:
    """Return a cell that is not red in the same words."""
    return _red_cell(report, row, cell, reason="", directory=run_directory(report, ""))


def quiet_cells(row: TableRow) -> tuple[CellVerdict, ...]:
    """Return the cells of a row that are neither PASS nor red: known trouble, and what does not decide."""
    cells = row.cells
    return tuple(cell for cell in cells if cell.status is not Status.PASS and not is_red(cell))


def side_lines(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return what a reader should know of cells that are not red: what does not decide, what is closer, warnings."""
    open_cells: dict[tuple[str, bool], list[CellVerdict]] = {}
    closer: dict[str, None] = {}
    warnings = []
    in_causes = {cell for cause in report.causes for cell in cause.cells}
    for row in table_rows(report):
        for cell in row.cells:
            stage = scenario_words(cell.scenario)
            if cell.status in RED and not cell.decides:
                open_cells.setdefault((stage, cell.status is Status.FAIL), []).append(cell)
            if not is_red(cell):
                elsewhere = [*(item.kind for item in cell.ruled), "changed_operator"]  # with the policy; of their own
                told = (Severity.WARN,) if cell.cell in in_causes else (Severity.NAMED, Severity.WARN)
                found = [item for item in cell.findings if SEVERITY.get(item.kind) in told]
                found = [item for item in found if item.kind not in elsewhere]
                warnings += [("warning", f"{cell.model}, {stage}: {phrase(item)}") for item in found]
                closer |= dict.fromkeys(cell.model for item in cell.findings if item.kind == "closer_to_reference")
    undecided = [line for (stage, _), cells in open_cells.items() for line in _open_lines(report, stage, cells)]
    words = f"{counted(len(closer), 'model')}, beyond tolerance and no further from float64 than before: "
    nearer = [("float64", words + ", ".join(closer))] if closer else []
    return (*undecided, *nearer, *warnings)


def _open_lines(report: RunReport, stage: str, cells: Sequence[CellVerdict]) -> list[tuple[str, str]]:
    """Return which models are open in a stage; of a latency also how far the worst one may be, and what tells.

    Args:
        cells: all failed, or all undecided.
    """
    names, failed = ", ".join(cell.model for cell in cells), cells[0].status is Status.FAIL
    why = f" ({cells[0].note})" if failed and cells[0].note else ""
    said = f"{stage} of {counted(len(cells), 'model')}, does not decide the run{why}: {names}"
    lines = [("slower" if failed and cells[0].scenario == "latency" else "undecided", said)]
    highs = {model.model: model.latency.shown.high for model in report.models if model.latency and model.latency.shown}
    timed = [cell for cell in cells if cell.scenario == "latency" and cell.findings and cell.model in highs]
    if timed:
        worst = max(timed, key=lambda cell: highs[cell.model])
        lines.append(("worst", f"{worst.model}: {worst.findings[0].message}"))
        lines += [] if failed else [("longer", more_command(report) or rerun_command(report, worst.cell))]
    return lines


def cell_words(cell: CellVerdict, reason: str = "") -> str:
    """Return all findings and the note of a cell on one line; else ``reason``, its row's; else its status."""
    return "; ".join([*_findings(cell), *_note(cell)]) or reason or cell.status.value


def _findings(cell: CellVerdict) -> list[str]:
    """Return the findings of a cell in words, the heaviest first; a kind that policy does not know counts as heavy."""
    return [phrase(finding) for finding in _heaviest_first(cell)]


def _heaviest_first(cell: CellVerdict) -> list[Finding]:
    order = {severity: index for index, severity in enumerate(Severity)}
    return sorted(cell.findings, key=lambda finding: order[weight(cell, finding.kind)])


def _note(cell: CellVerdict) -> list[str]:
    """Return the note of a cell, unless a finding says it already."""
    return [cell.note] if cell.note and not any(cell.note in finding.message for finding in cell.findings) else []


def _red_cell(report: RunReport, row: TableRow, cell: CellVerdict, *, reason: str, directory: str) -> RedCell:
    """Return one cell; ``reason`` is the row's, for the first red cell of a row, else empty."""
    mitigations = tuple(item for item in row.mitigations if item.cell == cell.cell)
    what = [*_what(cell, reason), *static_lines(cell, row.facts)]
    heaviest = _heaviest_first(cell)
    explained = [item for item in report.explained if item.cell == cell.cell]
    evidence = dict.fromkeys(f"{directory}/{finding.evidence}" for finding in cell.findings if finding.evidence)
    return RedCell(
        cell=cell.cell,
        model=cell.model,
        stage=scenario_words(cell.scenario),
        status=cell.status,
        lines=(
            *what,
            *error_lines(heaviest[:FINDINGS_SHOWN], row.facts.comparisons if row.facts else (), cell.scenario),
            *_story(heaviest),
            *_cause(report, cell),
            *change_of_cell(report, cell),
            *machine_lines(report, cell),
            *measured_lines(cell, row.facts, limits_of(report, row.facts)),
            *_explained(explained, known=what),
            *_since(
                report, cell, mitigations, [text for item in explained for label, text in item.lines if label == SINCE]
            ),
            *_tried(mitigations),
        ),
        evidence=tuple(evidence)[:FINDINGS_SHOWN],
        rerun=rerun_command(report, cell.cell),
        bisect=bisect_command(report, cell),
        found=tuple(dict.fromkeys(path_in_run(directory, path) for item in explained for path in item.paths)),
    )


def _story(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """Return what threads did and what that means, of the first finding that tells it."""
    lines = next((finding.story for finding in findings if finding.story), ())
    return tuple((shorten(prose(label), STORY_LABEL_LIMIT), text) for label, text in lines)


def _cause(report: RunReport, cell: CellVerdict) -> list[Line]:
    """Return what a cell has in common with others: the id of its cause, by which commands name it."""
    found = cause_of(report.causes, cell.cell)
    if found is None:
        return []
    others = len(found.models) - 1
    return [("cause", found.id + (f", as of {counted(others, 'other model')}" if others else ""))]


def _explained(found: Sequence[Explained], *, known: Sequence[Line]) -> list[Line]:
    """Return what searches about the cell say; ``known``: lines that stand above, whose labels say the rest."""
    static = any(label == "static" for label, _ in known)  # the same refusals, from the same file
    lines = [
        (shorten(prose(label), LABEL_LIMIT), text)  # whoever has written the file
        for item in found
        for label, text in item.lines
        if label != SINCE and not (static and label == "refused")
    ]
    lines += [("rewrite" if fix.rewrites else "mitigation", fix_line(fix)) for item in found for fix in item.fixes]
    return list(dict.fromkeys(lines))  # mitigate tells the rewrites of bisect as well


def _what(cell: CellVerdict, reason: str) -> list[tuple[str, str]]:
    """Return what happened, after the row's reason where the findings do not say it already."""
    said = _findings(cell)
    texts = [text for text in (*(finding.message for finding in cell.findings), cell.note) if text]
    news = bool(reason) and not any(text in reason or reason in text for text in texts)
    lines = said[:FINDINGS_SHOWN]
    if len(said) > FINDINGS_SHOWN:
        lines.append(f"and {counted(len(said) - FINDINGS_SHOWN, 'more finding')}, in report.json")
    note = _note(cell)
    lines = [f"{lines[0]}; {note[0]}"] if note and len(lines) == 1 else [*lines, *note]
    if not (lines or reason):
        lines = [NO_REASON]
    return [*([("why", reason)] if news else []), *[("what", line) for line in lines]]


def _since(
    report: RunReport, cell: CellVerdict, mitigations: tuple[Mitigation, ...], searched: Sequence[str]
) -> list[tuple[str, str]]:
    """Return since which release, and under which switch it is gone; ``searched``: what searches say of that."""
    if cell.status is not Status.FAIL or not cell.findings:
        return []
    since = searched[0] if searched else _pair_since(report)
    mitigated = [item.name for item in mitigations if item.mitigates]
    if mitigated:
        since += f"; gone with {' or '.join(mitigated)}"
    elif mitigations and not any(item.untestable for item in mitigations):
        since += "; every switch tried shows it too"
    return [("since", since)]


def _pair_since(report: RunReport) -> str:
    """Return what the pair itself shows: cells that were broken before are SAME_FAIL, never FAIL."""
    if "-to-" in report.profile:  # the sides have different serving profiles
        before, after = report.profile.split("-to-", 1)
        return (
            f"{report.new.name} with profile {after}; {report.old.name} with {before} is fine: release and profile "
            "changed at once, and which of them it is was not told apart"
        )
    fine = f"judged by {report.old.name}" if report.old.golden else f"{report.old.name} is fine"
    return f"{report.new.name}; {fine}"


def _tried(mitigations: tuple[Mitigation, ...]) -> list[tuple[str, str]]:
    """Return each mitigation with its price, then the names of what did not mitigate."""
    lines = [("mitigation", mitigation_words(item)) for item in mitigations if item.mitigates]
    vain: dict[str, list[str]] = {}
    for item in mitigations:
        if not item.mitigates:
            vain.setdefault(item.note, []).append(item.name)
    said = [f"{', '.join(names)} ({note})" if note else ", ".join(names) for note, names in vain.items()]
    return [*lines, ("tried", ", ".join(said))] if said else lines
