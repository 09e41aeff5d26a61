"""What a red cell tells its reader: model, stage, what happened, since when, and how to see it again."""

import math
import shlex
from dataclasses import dataclass

from harness.domain.outcome import Status
from harness.domain.report import ModelReport, RunReport
from harness.domain.verdict import CellVerdict, Finding, Mitigation
from harness.render.summary import cure_words
from harness.render.table import TableRow, table_rows
from harness.render.words import change, counted, percent, scenario_words

RED = (Status.FAIL, Status.INCONCLUSIVE)
FINDINGS_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RedCell:
    """One cell that needs a reader, as labelled raw texts; a renderer escapes and lays them out.

    Attributes:
        lines: (label, text) in reading order; prose, may be wrapped.
        evidence: paths, never wrapped.
        rerun: the command, never wrapped.
    """

    cell: str
    model: str
    stage: str
    status: Status
    lines: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    rerun: str


def run_directory(report: RunReport, directory: str) -> str:
    """Return ``directory``, or the default place of the run's reports."""
    return (directory or f"reports/{report.run}").rstrip("/")


def red_cells(report: RunReport, *, directory: str = "") -> tuple[RedCell, ...]:
    """Return every FAIL and INCONCLUSIVE cell, in the order of the table and then of the row's cells."""
    where = run_directory(report, directory)
    found = []
    for row in table_rows(report):
        if row.verdict is None:
            continue
        red = [cell for cell in row.verdict.cells if cell.status in RED]
        red.sort(key=lambda cell: cell.status is not Status.FAIL)
        for index, cell in enumerate(red):
            reason = "" if index else row.verdict.reason
            found.append(_red_cell(report, row, cell, reason=reason, directory=where))
    return tuple(found)


def rerun_command(report: RunReport, cell: str) -> str:
    """Return the command that repeats just ``cell``; made from the run's name where the report has none."""
    made = f"python -m harness rerun {shlex.quote(report.run)} {shlex.quote(cell)}"
    return report.rerun.get(cell) or made


def finding_words(finding: Finding) -> str:
    """Return a finding on one line: kind, message, where, and the rule that decided."""
    place = finding.where if finding.where not in finding.message else ""
    rule = f"rule: {finding.rule}" if finding.rule else ""
    context = "; ".join(text for text in (place, rule) if text)
    return f"{finding.kind}: {finding.message}" + (f" [{context}]" if context else "")


def cell_words(cell: CellVerdict, reason: str = "") -> str:
    """Return all findings and the note of a cell on one line; else ``reason``, its row's; else its status."""
    said = [finding_words(finding) for finding in cell.findings]
    return "; ".join([*said, cell.note] if cell.note else said) or reason or cell.status.value


def _red_cell(report: RunReport, row: TableRow, cell: CellVerdict, *, reason: str, directory: str) -> RedCell:
    """Return one cell; ``reason`` is the row's, for the first red cell of a row, else empty."""
    mitigations = tuple(item for item in row.mitigations if item.cell == cell.cell)
    lines = [
        *_what(cell, reason),
        *_measured(cell, row.facts),
        *_since(report, cell, mitigations),
        *_tried(mitigations),
    ]
    evidence = dict.fromkeys(f"{directory}/{finding.evidence}" for finding in cell.findings if finding.evidence)
    return RedCell(
        cell=cell.cell,
        model=cell.model,
        stage=scenario_words(cell.scenario),
        status=cell.status,
        lines=tuple(lines),
        evidence=tuple(evidence)[:FINDINGS_SHOWN],
        rerun=rerun_command(report, cell.cell),
    )


def _what(cell: CellVerdict, reason: str) -> list[tuple[str, str]]:
    """Return what happened, after the row's reason where the findings do not say it already."""
    said = [finding_words(finding) for finding in cell.findings]
    news = bool(reason) and not any(finding.message in reason or reason in finding.message for finding in cell.findings)
    lines = said[:FINDINGS_SHOWN]
    if len(said) > FINDINGS_SHOWN:
        lines.append(f"and {len(said) - FINDINGS_SHOWN} more findings, in report.json")
    if cell.note:
        lines.append(cell.note)
    if not (lines or reason):
        lines = ["no reason was recorded"]
    return [*([("why", reason)] if news else []), *[("what", line) for line in lines]]


def _measured(cell: CellVerdict, facts: ModelReport | None) -> list[tuple[str, str]]:
    """Return the numbers behind a latency verdict, with what the run could have seen at all."""
    if cell.scenario != "latency" or facts is None or facts.latency is None:
        return []
    latency = facts.latency
    said = []
    if latency.steady:
        pairs = f" over {counted(latency.steady.pairs, 'process pair')}" if math.isfinite(latency.steady.high) else ""
        said.append(f"steady {change(latency.steady)}{pairs}")
    if latency.confirmation:
        said.append(f"confirmation {change(latency.confirmation)}")
    if latency.same_against_same:
        said.append(f"same against same {change(latency.same_against_same)}")
    if latency.steady:
        detectable = latency.steady.detectable
        said.append(f"detectable from {percent(detectable)}" if math.isfinite(detectable) else "nothing detectable")
    if latency.problem:
        said.append(latency.problem)
    return [("measured", "; ".join(said))] if said else []


def _since(report: RunReport, cell: CellVerdict, mitigations: tuple[Mitigation, ...]) -> list[tuple[str, str]]:
    """Return since which release, and under which switch it is gone. A search leaves ``since`` in the detail."""
    if cell.status is not Status.FAIL:
        return []
    searched = [finding.detail["since"] for finding in cell.findings if "since" in finding.detail]
    since = searched[0] if searched else f"{report.new.name}; {report.old.name} is fine"
    cured = [item.name for item in mitigations if item.cures]
    if cured:
        since += f"; gone with {' or '.join(cured)}"
    elif mitigations:
        since += "; every switch tried shows it too"
    return [("since", since)]


def _tried(mitigations: tuple[Mitigation, ...]) -> list[tuple[str, str]]:
    """Return each cure with its price, then the names of what did not cure."""
    lines = [("cure", cure_words(item)) for item in mitigations if item.cures]
    vain = [f"{item.name} ({item.note})" if item.note else item.name for item in mitigations if not item.cures]
    return [*lines, ("no cure", ", ".join(vain))] if vain else lines
