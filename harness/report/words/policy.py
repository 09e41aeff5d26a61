"""The policy that decided a run, as labelled texts; console, markdown and JUnit only lay them out."""

from collections.abc import Container, Iterator

from harness.core.outcome import Status
from harness.core.plan import SEVERITIES, PolicySettings
from harness.core.policy import PolicyReport
from harness.core.report import RunReport
from harness.core.text import counted
from harness.core.verdict import CellVerdict, RowVerdict
from harness.report.text.table import table_rows
from harness.report.words.phrases import scenario_words
from harness.verdict.commands import is_red
from harness.verdict.enforce import ruled_words

LISTED = 10
LET_PASS, STRICTER = "let pass", "stricter"


def policy_lines(
    report: RunReport, *, listed: int = LISTED, shown: Container[str] = frozenset()
) -> tuple[tuple[str, str], ...]:
    """Return what a reader should know of the policy; nothing where none was written and the run was judged once.

    Args:
        listed: how many cells are listed one by one, of those that it judged otherwise.
        shown: ids of the cells of which the text says elsewhere what the policy made of them.
    """
    policy = report.policy
    if policy.settings == PolicySettings() and policy.regated is None:
        return ()
    return (
        ("policy", _summary(policy)),
        *(("policy", note) for note in policy.notes),  # a rule that does nothing by mistake is read before the rest
        *_run_itself(policy, listed, shown),
        *(("asks" if item.met else "lacks", f"{item.what}: {item.found}") for item in policy.demands),
        *_bounded(list(_ruled(report, shown)), listed),
    )


def let_pass(cell: CellVerdict) -> str:
    """Return what the policy lets pass in a cell, in words; empty where it lets pass nothing."""
    lighter = [item for item in cell.ruled if SEVERITIES.index(item.now) > SEVERITIES.index(item.was)]
    return ruled_words(lighter)


def is_noted(cell: CellVerdict) -> bool:
    """Whether the note of a cell says what the policy made of it."""
    return bool(cell.ruled) and ruled_words(cell.ruled) in cell.note


def telling_cells(row: RowVerdict) -> list[CellVerdict]:
    """Return the cells of a row that have a block of their own, else the one that its reason is about."""
    red = [cell for cell in row.cells if is_red(cell)]
    return red or [cell for cell in row.cells if cell.decides and cell.status is row.status][:1]


def shown_above(report: RunReport) -> frozenset[str]:
    """Return the cells of which a block, or a row's reason, has said what the policy made of them."""
    return frozenset(
        cell.cell
        for row in report.judgement.rows
        if row.status is not Status.PASS
        for cell in telling_cells(row)
        if is_noted(cell)
    )


def _summary(policy: PolicyReport) -> str:
    """Return where the policy stands, and how much it says."""
    settings = policy.settings
    said = [
        *([counted(len(settings.limits), "limit")] if settings.limits else []),
        *([f"severities of {counted(len(settings.severity), 'kind')}"] if settings.severity else []),
        *([counted(len(settings.rules), "rule")] if settings.rules else []),
    ]
    return f"{policy.source}{': ' if said else ''}{', '.join(said)}"


def _run_itself(policy: PolicyReport, listed: int, shown: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield what the run had decided where it is judged again, and the cells that are judged otherwise now."""
    before = policy.regated
    if before is None:
        return
    yield "run said", f"{before.decision.value} (exit code {before.exit_code}): {before.reason}"
    yield "now", before.why
    changes = [(f"{item.cell}: {item.was.value} -> {item.now.value}", item) for item in before.changes]
    lines = [("changed", text if item.cell in shown else f"{text}: {item.why}") for text, item in changes]
    yield from _bounded(lines, listed)


def _ruled(report: RunReport, shown: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield what the policy made of findings: what it lets pass before what it is stricter with."""
    rows = [row.verdict for row in table_rows(report) if row.verdict is not None]
    cells = [cell for row in rows for cell in row.cells if cell.ruled and cell.cell not in shown]
    for cell in cells:
        if let_pass(cell):
            yield LET_PASS, f"{cell.model}, {scenario_words(cell.scenario)} ({cell.status.value}): {let_pass(cell)}"
    for cell in cells:
        heavier = [item for item in cell.ruled if SEVERITIES.index(item.now) < SEVERITIES.index(item.was)]
        if heavier:
            stage = scenario_words(cell.scenario)
            yield STRICTER, f"{cell.model}, {stage} ({cell.status.value}): {ruled_words(heavier)}"


def _bounded(lines: list[tuple[str, str]], listed: int) -> list[tuple[str, str]]:
    rest = len(lines) - listed
    return [*lines[:listed], *([("", f"and {counted(rest, 'more cell')}, in report.json")] if rest > 0 else [])]
