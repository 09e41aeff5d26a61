"""What needs somebody: each cause once, with its evidence, its cure, its commands, and the models behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.core.report import CellTrend, RunReport
from harness.core.text import counted, prose, visible
from harness.core.verdict import Cause
from harness.report.excess import factor_words
from harness.report.page.parts import CHANGE_TONES, Fact, anchor, cause_tone, place
from harness.report.words.phrases import shorten
from harness.report.words.red_cells import RedCell
from harness.verdict.counting import cause_word

CELLS_SHOWN, NAMED = 60, 5
"""Cells behind one cause, and models named beside it; the table, filtered by the cause, has all."""
CELLS_MOST = 300
"""Of all causes together."""
_TITLE_LIMIT, _WHAT_LIMIT, _TEXT_LIMIT = 160, 420, 600


@dataclass(frozen=True, kw_only=True, slots=True)
class RedView:
    """One red cell in short; ``place`` is where its stage is told.

    ``since`` is what it came to since the baseline, with its tone; empty without one, and where nothing has changed.
    """

    model: str
    anchor: str
    stage: str
    place: str
    since: str
    since_tone: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CauseView:
    """One cause: ``named`` are (model, link) of the clearest ones, ``cells`` all of it as far as there is room.

    ``brief`` is its cure, else the first of its evidence, for the first screen.
    """

    id: str
    status: str
    tone: str
    title: str
    count: str
    excess: str
    brief: str
    named: tuple[Fact, ...]
    more: int
    evidence: tuple[Fact, ...]
    commands: tuple[Fact, ...]
    cells: tuple[RedView, ...]
    left_out: int


def cause_views(report: RunReport, causes: Sequence[Cause], red: Mapping[str, RedCell]) -> tuple[CauseView, ...]:
    """Return the causes in their order; ``red`` has the red cells by their ids."""
    changes = {item.cell: item.change for item in report.baseline.changes} if report.baseline is not None else {}
    views, room = [], CELLS_MOST
    for cause in causes:
        view = _view(cause, red, changes, min(room, CELLS_SHOWN))
        views.append(view)
        room -= len(view.cells)
    return tuple(views)


def _view(cause: Cause, red: Mapping[str, RedCell], changes: Mapping[str, CellTrend], room: int) -> CauseView:
    cells = [red[cell] for cell in cause.cells if cell in red]
    evidence = [*cause.evidence, *((("cure", cause.cure),) if cause.cure else ())]
    count = counted(len(cause.models), "model")
    return CauseView(
        id=visible(cause.id),
        status=cause_word(cause),
        tone=cause_tone(cause),
        title=shorten(prose(cause.title), _TITLE_LIMIT),
        count=count if len(cause.cells) == len(cause.models) else f"{count}, {counted(len(cause.cells), 'cell')}",
        excess=f"{factor_words(cause.excess)} its limit" if cause.excess is not None else "",
        brief=shorten(prose(_brief(cause, evidence)), _TITLE_LIMIT),
        named=tuple((shorten(visible(model), 80), f"#{anchor(model)}") for model in cause.models[:NAMED]),
        more=max(0, len(cause.models) - NAMED),
        evidence=tuple((visible(label), shorten(prose(text), _TEXT_LIMIT)) for label, text in evidence if text),
        commands=tuple((visible(label), visible(command)) for label, command in cause.commands),
        cells=tuple(_red(cell, changes.get(cell.cell)) for cell in cells[:room]),
        left_out=max(0, len(cells) - room),
    )


def _brief(cause: Cause, evidence: Sequence[Fact]) -> str:
    return f"cure: {cause.cure}" if cause.cure else next((text for _, text in evidence if text), "")


def _red(cell: RedCell, change: CellTrend | None) -> RedView:
    by_label = dict(reversed(cell.lines))
    changed = change is not None and change is not CellTrend.UNCHANGED
    return RedView(
        model=shorten(visible(cell.model), 80),
        anchor=anchor(cell.model),
        stage=visible(cell.stage),
        place=place(cell.cell),
        since=change.words if change is not None and changed else "",
        since_tone=CHANGE_TONES[change] if change is not None else "",
        what=shorten(prose(by_label.get("what") or by_label.get("why", "")), _WHAT_LIMIT),
    )
