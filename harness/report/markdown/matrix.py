"""A version matrix as GitHub-flavoured markdown: ``matrix.md``, and the step summary of a CI job."""

from collections.abc import Iterator, Sequence

from harness.core.releases import Matrix
from harness.core.text import prose, visible
from harness.report.markdown.text import escape
from harness.report.words.matrix import (
    CELL_WORDS,
    CONFUSION_HEAD,
    LEGEND,
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
from harness.report.words.phrases import exit_words, seconds
from harness.verdict.matrix import MatrixVerdict

MOST_MODELS, MOST_WRONG = 100, 100
LONGEST = 600


def render_matrix_markdown(matrix: Matrix, verdict: MatrixVerdict, *, directory: str = "") -> str:
    """Return the matrix as markdown, what it amounts to first.

    Args:
        directory: where its results lie, as the reader would type it; left out if empty.
    """
    code = int(verdict.exit_code)
    lines = ["# Version matrix", ""]
    lines += [f"- {escape(sentence)}" for sentence in (*verdict.sentences, *matrix.notes)]
    lines += [f"- {escape(prediction_words(matrix))}", f"- exit code {code}: {exit_words(code)}", ""]
    columns = [release.name for release in matrix.releases]
    lines += _table(
        ["exported in / loaded in", *columns], [_overall(row, columns, verdict) for row in matrix.exporters]
    )
    lines += ["", escape(LEGEND, LONGEST)]
    found = troubles(matrix)
    for trouble in found[:MOST_MODELS]:
        lines += ["", *_model(trouble, columns)]
    if len(found) > MOST_MODELS:
        lines += ["", f"And {len(found) - MOST_MODELS} more models, in `matrix.json`."]
    lines += ["", "## The static check against what happened", "", *confusion_table(matrix)]
    lines += [f"- {escape(wrong_words(cell), LONGEST)}" for cell in wrong_predictions(matrix)[:MOST_WRONG]]
    where = f"; results in `{visible(directory)}`" if directory else ""
    lines += ["", f"{known_words(matrix)}; {seconds(matrix.wall_s)}{where}."]
    return "\n".join(lines) + "\n"


def confusion_table(matrix: Matrix) -> list[str]:
    """Return the lines of a table: what was predicted, and how often what happened."""
    return _table(CONFUSION_HEAD, confusion_rows(matrix), texts=2)


def _overall(row: str, columns: Sequence[str], verdict: MatrixVerdict) -> list[str]:
    pairs = [verdict.pairs[row, column] for column in columns]
    return [row, *(f"{pair_text(pair)} {pair_mark(pair)}".strip() for pair in pairs)]


def _model(trouble: Trouble, columns: Sequence[str]) -> Iterator[str]:
    yield f"## {escape(trouble.model)}"
    yield ""
    cells = {(cell.exporter, cell.loader): cell for cell in trouble.cells}
    rows = []
    for row in dict.fromkeys(row for row, _ in cells):
        found = [cells[row, column] for column in columns]
        words = (f"{CELL_WORDS[cell.status]} {cell_mark(cell)}".strip() if cell.exported else "-" for cell in found)
        rows.append([row, *words])
    yield from _table(["exported in / loaded in", *columns], rows)
    yield ""
    for reason in trouble.reasons:
        yield f"- {escape(reason.what)}: {escape(pairs_words(reason), LONGEST)}: {escape(reason.text, LONGEST)}"
        if reason.predicted:
            yield f"  - static check: {escape(reason.predicted, LONGEST)}"
        if reason.command:
            yield ""
            yield f"      {prose(reason.command)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int | None = None) -> list[str]:
    """Return a table whose first ``texts`` columns are no numbers; without, none is."""
    texts = len(head) if texts is None else texts
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return [
        f"| {' | '.join(escape(text) for text in head)} |",
        f"| {' | '.join(rule)} |",
        *(f"| {' | '.join(escape(text) for text in row)} |" for row in rows),
    ]
