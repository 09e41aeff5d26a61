"""A map of exporters and loaders in text: cells with a mark each, in blocks of columns that fit the width."""

from collections.abc import Callable, Mapping, Sequence

from harness.render.words import shorten, visible

LONGEST_NAME = 14
GAP = 2
CORNER = "exported in"
# By mark: an upgrade breaks, a way back does, undecided, broken where it comes from too, green, nothing to load.
COLOURS = {"X": "1;31", "x": "31", "?": "33", "=": "36", "": "32", "-": "2"}

Cell = tuple[str, str]
"""Text and mark."""


def heat_grid(
    rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], Cell], *, width: int, colour: bool
) -> list[str]:
    """Return the lines of the map; long names are shortened.

    Args:
        cell: (row, column) -> text and mark, a key of ``COLOURS``.
        colour: whether cells are shaded by their marks, which are printed anyway.
    """
    cells = {row: {name: cell(row, name) for name in columns} for row in rows}
    label = max(len(CORNER), *(len(short(row)) for row in rows))
    widths = {name: max(len(short(name)), *(len(_marked(cells[row][name])) for row in rows)) for name in columns}
    blocks: list[list[str]] = [[]]
    room = width - label
    for name in columns:
        room -= widths[name] + GAP
        if room < 0 and blocks[-1]:
            blocks.append([])
            room = width - label - widths[name] - GAP
        blocks[-1].append(name)
    lines: list[str] = []
    for block in blocks:
        lines += [""] * bool(lines) + _block(cells, block, label, widths, colour=colour)
    return lines


def short(name: str) -> str:
    """Return the name of a release as it stands beside or above the map."""
    return shorten(visible(name), LONGEST_NAME)


def _block(
    cells: Mapping[str, Mapping[str, Cell]],
    names: Sequence[str],
    label: int,
    widths: Mapping[str, int],
    *,
    colour: bool,
) -> list[str]:
    gap = " " * GAP
    head = [CORNER.ljust(label), *(short(name).ljust(widths[name]) for name in names)]
    rule = ["-" * label, *("-" * widths[name] for name in names)]
    lines = [" " * (label + GAP) + "loaded in", gap.join(head), gap.join(rule)]
    for row, found in cells.items():
        texts = [_painted(found[name], widths[name], colour=colour) for name in names]
        lines.append(gap.join([short(row).ljust(label), *texts]))
    return [line.rstrip() for line in lines]


def _marked(cell: Cell) -> str:
    text, mark = cell
    return f"{text} {mark}".rstrip() if mark != text else text


def _painted(cell: Cell, width: int, *, colour: bool) -> str:
    text = _marked(cell)
    blanks = " " * (width - len(text))
    return f"\x1b[{COLOURS[cell[1]]}m{text}\x1b[0m{blanks}" if colour else text + blanks
