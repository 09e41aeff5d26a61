"""Golden records as markdown: a diff for a pull request, the gravest model first, within what a comment may hold."""

from collections.abc import Iterator

from harness.core.golden import RecordDiff, Review
from harness.core.text import counted
from harness.report.markdown.text import CELL_LIMIT, bullets, code, escape, folded, table_line
from harness.report.text.sparkline import sparkline
from harness.report.words.golden import HEADS, DiffRow, counts_words, rows_of, sides_of, structure_of

LIMIT_CHARACTERS = 60_000
"""GitHub refuses a comment above 65,536 characters."""
ROWS = 30


def render_review_markdown(review: Review) -> str:
    """Return a diff as GitHub-flavoured markdown, ending with a newline; says what it leaves out."""
    title = f"## Golden records: {counts_words(review.diffs) or 'nothing differs'}"
    head = [title, "", f"Old: {escape(review.old)}. New: {escape(review.new)}."]
    if review.diffs:
        lines = [
            table_line((code(found.model), found.change.value, escape(found.words, 300))) for found in review.diffs
        ]
        head += ["", *_table(("model", "change", "what"), lines)]
    text, left_out = "\n".join(head), 0
    if len(text) > LIMIT_CHARACTERS:
        text = f"{title}\n\n{counted(len(review.diffs), 'model')}: too many for one table; use --format html."
    for found in review.diffs:
        part = "\n".join(["", "", *_details(found)])
        if len(text) + len(part) > LIMIT_CHARACTERS:
            left_out += 1
        else:
            text += part
    if left_out:
        text += f"\n\nThe numbers of {counted(left_out, 'model')} are left out here; `--format html` has all."
    return text + "\n"


def _details(found: RecordDiff) -> Iterator[str]:
    yield f"### {escape(found.model)}: {found.change.value}"
    yield ""
    yield escape(found.words)
    yield ""
    yield from bullets(sides_of(found))
    if found.facts:
        lines = [
            table_line((name, escape(old, CELL_LIMIT), escape(new, CELL_LIMIT)))
            for name, (old, new) in found.facts.items()
        ]
        yield folded("What else differs", list(_table(("", "old", "new"), lines)))
    if found.comparison is None:
        return
    structure = structure_of(found.comparison)
    if structure:
        yield ""
        yield from (f"- {escape(text)}" for text in structure[:ROWS])
    rows = rows_of(found.comparison)
    if rows:
        yield ""
        yield from _table((*HEADS, "where the errors lie"), [_row(row) for row in rows[:ROWS]])
    left_out = max(0, len(rows) - ROWS) + max(0, len(structure) - ROWS)
    if left_out:
        yield ""
        yield f"{counted(left_out, 'output')} left out."


def _row(row: DiffRow) -> str:
    name, *numbers = row.cells
    drawn = code(sparkline(row.tensor)) if sum(row.tensor.error_histogram[1:]) else ""
    return table_line((escape(name, CELL_LIMIT), *map(escape, numbers), drawn))


def _table(heads: tuple[str, ...], lines: list[str]) -> Iterator[str]:
    yield table_line(heads)
    yield table_line(["---"] * len(heads))
    yield from lines
