"""Waivers: what each did in the run, and the cells that they cover."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.decision.waivers.entries import TOLD_OF_WAIVERS
from harness.decision.waivers.uses import SOON_DAYS, days_words
from harness.domain.findings import MEASURES, SEVERITY, Severity
from harness.domain.outcome import Status
from harness.domain.report import RunReport
from harness.domain.text import joined, prose, visible
from harness.domain.verdict import WaiverState, WaiverUse
from harness.report.page.shapes import LINES_SHOWN, TableLine
from harness.report.page.tones import BAD, GOOD, OPEN, QUIET, outside, place, tone
from harness.report.text.table import table_rows
from harness.report.words.phrases import percent, scenario_words, shorten
from harness.report.words.red_cells import finding_words

CELLS_SHOWN = 6
_TEXT_LIMIT = 300
_STATES = {
    WaiverState.USED: GOOD,
    WaiverState.EXCEEDED: BAD,
    WaiverState.EXPIRED: BAD,
    WaiverState.OTHER_PAIR: QUIET,
    WaiverState.UNUSED: OPEN,
    WaiverState.NOT_JUDGED: QUIET,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverView:
    """One waiver: whom it is for, what it covers and what was seen, and what it did.

    ``cells`` are stages and where they are told, ``more`` of them are not listed; ``soon``: it ends within days.
    """

    model: str
    kind: str
    covers: str
    seen: str
    cells: tuple[tuple[str, str], ...]
    more: int
    broad: str
    owner: str
    until: str
    soon: bool
    reason: str
    issue: str
    state: str
    tone: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiversView:
    """The section: every waiver, and the cells that are known failures or were."""

    uses: tuple[WaiverView, ...]
    cells: tuple[TableLine, ...]


def waivers_view(report: RunReport) -> WaiversView:
    """Return the section about waivers; both parts are empty where a run has none."""
    stages = {cell.cell: visible(scenario_words(cell.scenario)) for cell in report.judgement.cells}
    uses = tuple(_use(use, stages) for use in _ranked(report.waivers))
    return WaiversView(uses=uses, cells=tuple(_cells(report)))


def _ranked(uses: Sequence[WaiverUse]) -> Sequence[WaiverUse]:
    """Return the waivers that need somebody first, each group in the order of the file."""
    order = {BAD: 0, OPEN: 1, GOOD: 2, QUIET: 3}
    return sorted(uses, key=lambda use: (order[waiver_tone(use)], not is_soon(use)))[:LINES_SHOWN]


def waiver_tone(use: WaiverUse) -> str:
    """Return the tone of what a waiver did; one that has expired and that nothing needed is only to be removed."""
    return OPEN if use.state is WaiverState.EXPIRED and not use.cells else _STATES[use.state]


def is_soon(use: WaiverUse) -> bool:
    """Return whether a waiver ends within days."""
    return 0 <= use.days_left <= SOON_DAYS


def _use(use: WaiverUse, stages: Mapping[str, str]) -> WaiverView:
    waiver = use.waiver
    pair = " → ".join(text or "any" for text in (waiver.old, waiver.new))
    covers = [f"up to {_size(waiver.kind, waiver.bound)}" if waiver.bound is not None else ""]
    covers += [f"torch {pair}" if waiver.old or waiver.new else "", scenario_words(waiver.scenario)]
    covers += [waiver.device, f"profile {waiver.profile}" if waiver.profile else ""]
    return WaiverView(
        model=shorten(visible(waiver.model), 80),
        kind=visible(waiver.kind),
        covers=shorten(prose(", ".join(text for text in covers if text)), _TEXT_LIMIT),
        seen=_size(waiver.kind, use.size) if use.size is not None else "",
        cells=tuple((stages.get(cell, visible(cell)), place(cell)) for cell in use.cells[:CELLS_SHOWN]),
        more=max(0, len(use.cells) - CELLS_SHOWN),
        broad=shorten(prose(", ".join(use.broad)), _TEXT_LIMIT),
        owner=shorten(prose(waiver.owner), 80),
        until=f"{waiver.expires.isoformat()}, {days_words(use.days_left)}",
        soon=is_soon(use),
        reason=shorten(prose(waiver.reason), _TEXT_LIMIT),
        issue=outside(waiver.issue),
        state=use.state.value,
        tone=waiver_tone(use),
    )


def _size(kind: str, size: float) -> str:
    return percent(size) if MEASURES.get(kind) == "ratio" else f"{size:.3g} of the largest value"


def _cells(report: RunReport) -> Iterator[TableLine]:
    """Yield the cells that a waiver covers, or covered until it expired."""
    for row in table_rows(report):
        for cell in row.verdict.cells if row.verdict is not None else ():
            told = [item.message for item in cell.findings if item.kind in TOLD_OF_WAIVERS]
            if told or cell.status in (Status.XFAIL, Status.XPASS):
                news = [message for message in told if message not in cell.note]
                words = joined(cell.note, *news)
                said = "; ".join(finding_words(item) for item in cell.findings if _is_failing(item.kind))
                texts = (
                    shorten(visible(cell.model), 80),
                    visible(scenario_words(cell.scenario)),
                    shorten(prose(said), _TEXT_LIMIT),
                    shorten(prose(words), 2 * _TEXT_LIMIT),
                )
                yield TableLine(texts=texts, status=cell.status.value, tone=tone(cell.status))


def _is_failing(kind: str) -> bool:
    return SEVERITY.get(kind) is Severity.FAIL
