"""How much is said of each cell, so that a page of many red models stays small."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.domain.report import RunReport
from harness.domain.verdict import CellVerdict

TEXT_BYTES = 1_000_000
"""Of all that is said of cells: with 500 models there is room for charts beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What is said of one cell: at most so many findings, so many lines of its story, and characters of each."""

    findings: int
    lines: int
    text: int


ROOMS = (
    Room(findings=8, lines=60, text=900),
    Room(findings=3, lines=12, text=400),
    Room(findings=2, lines=4, text=200),
    Room(findings=1, lines=0, text=120),
)


def room_of(report: RunReport) -> Room:
    """Return the roomiest in which all cells fit."""
    cells = report.judgement.cells
    return next((room for room in ROOMS if sum(_bytes(cell, room) for cell in cells) <= TEXT_BYTES), ROOMS[-1])


def _bytes(cell: CellVerdict, room: Room) -> int:
    """Return what is said of a cell, as bytes of the page."""
    found = cell.findings[: room.findings]
    story = [text for item in found for _, text in item.story][: room.lines]
    return _sum((*(item.message for item in found), *story), room.text)


def _sum(texts: Iterable[str], most: int) -> int:
    return sum(len(text[:most].encode("ascii", "xmlcharrefreplace")) for text in texts)
