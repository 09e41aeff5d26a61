"""A version matrix on a terminal: rows are exporters, columns loaders; then the models not green everywhere."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.core.releases import Matrix
from harness.core.text import prose, visible
from harness.report.text.grid import draw
from harness.report.words.matrix import (
    CELL_WORDS,
    CONFUSION_HEAD,
    LEGEND,
    Reason,
    Trouble,
    cell_mark,
    confusion_rows,
    known_words,
    pair_mark,
    pair_text,
    pairs_words,
    prediction_words,
    troubles,
    wrong_predictions,
    wrong_words,
)
from harness.report.words.phrases import exit_words, seconds, shorten
from harness.verdict.matrix import MatrixVerdict

LONGEST_NAME = 14
GAP = 2
CORNER = "exported in"
# By mark: an upgrade breaks, a rollback does, undecided, broken where it comes from too, green, nothing to load.
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


LEAST_WIDTH = 80
# On a terminal; the JSON has all.
MOST_MODELS, MOST_WRONG = 20, 20
LONGEST_PAIRS, LONGEST_TEXT = 400, 600


def render_heat_map(matrix: Matrix, verdict: MatrixVerdict, *, width: int = 100, colour: bool = False) -> str:
    """Return the whole text, ending with a newline. Control characters of hostile names are escaped.

    Args:
        width: columns, fewer than 80 count as 80; only commands, which are copied, may be longer.
        colour: whether cells are shaded; their marks say the same without.
    """
    width = max(width, LEAST_WIDTH)
    columns = [release.name for release in matrix.releases]

    def overall(row: str, column: str) -> Cell:
        pair = verdict.pairs[row, column]
        return pair_text(pair), pair_mark(pair)

    parts = [heat_grid(matrix.exporters, columns, overall, width=width, colour=colour), _wrapped(LEGEND, width)]
    found = troubles(matrix)
    parts += [list(_model(trouble, columns, width, colour=colour)) for trouble in found[:MOST_MODELS]]
    if len(found) > MOST_MODELS:
        parts.append([f"and {len(found) - MOST_MODELS} more models that are not green everywhere: matrix.json"])
    parts += [list(_predictions(matrix, width)), list(_foot(matrix, verdict, width))]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _model(trouble: Trouble, columns: Sequence[str], width: int, *, colour: bool) -> Iterator[str]:
    yield shorten(visible(trouble.model), width)
    cells = {(cell.exporter, cell.loader): cell for cell in trouble.cells}

    def one(row: str, column: str) -> Cell:
        found = cells[row, column]
        return CELL_WORDS[found.status] if found.exported else "-", cell_mark(found)

    rows = list(dict.fromkeys(row for row, _ in cells))
    for line in heat_grid(rows, columns, one, width=width - 2, colour=colour):
        yield f"  {line}".rstrip()
    for reason in trouble.reasons:
        yield from _reason(reason, width)


def _reason(reason: Reason, width: int) -> Iterator[str]:
    yield from _wrapped(f"  {prose(reason.what)}: {shorten(prose(pairs_words(reason)), LONGEST_PAIRS)}", width)
    if reason.text:
        yield from _wrapped(f"    {shorten(prose(reason.text), LONGEST_TEXT)}", width)
    if reason.predicted:
        yield from _wrapped(f"    static check: {shorten(prose(reason.predicted), LONGEST_TEXT)}", width)
    if reason.command:
        yield f"    {visible(reason.command)}"


def _predictions(matrix: Matrix, width: int) -> Iterator[str]:
    if any(cell.predicted for cell in matrix.cells):
        yield "what the static check said, and what became of loading"
        yield from draw([CONFUSION_HEAD, *confusion_rows(matrix)], heads=1, gap=2, right=(2, 3, 4)).splitlines()
        yield ""
    yield from _wrapped(prediction_words(matrix), width)
    wrong = wrong_predictions(matrix)
    for cell in wrong[:MOST_WRONG]:
        yield from _wrapped(f"  {shorten(prose(wrong_words(cell)), LONGEST_TEXT)}", width)
    if len(wrong) > MOST_WRONG:
        yield f"  and {len(wrong) - MOST_WRONG} more: matrix.json"


def _foot(matrix: Matrix, verdict: MatrixVerdict, width: int) -> Iterator[str]:
    for note in (*matrix.notes, *verdict.sentences):
        yield from _wrapped(prose(note), width)
    yield from _wrapped(f"{known_words(matrix)}; {seconds(matrix.wall_s)}", width)
    code = int(verdict.exit_code)
    yield f"exit code {code}: {exit_words(code)}"


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", break_long_words=True, break_on_hyphens=False)
