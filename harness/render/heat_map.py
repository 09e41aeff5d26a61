"""A version matrix on a terminal: rows are exporters, columns loaders; then what is not green everywhere."""

import textwrap
from collections.abc import Iterator, Sequence

from harness.domain.matrix import Matrix
from harness.policy.matrix import MatrixVerdict
from harness.render.heat_grid import Cell, heat_grid
from harness.render.matrix_words import (
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
from harness.render.text_grid import draw
from harness.render.words import exit_words, prose, seconds, shorten, visible

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
