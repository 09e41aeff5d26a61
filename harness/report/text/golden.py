"""Golden records on a terminal: diffs as tables and histograms, the state of all records, what gc would remove."""

import textwrap
from collections.abc import Iterator, Sequence

from harness.core.golden import GoldenStatus, LeftOver, RecordDiff, Review, Trust
from harness.core.text import amount, counted, prose
from harness.report.text.grid import draw
from harness.report.text.sparkline import ASCII, sparkline, tolerance_words
from harness.report.words.golden import (
    HEADS,
    RIGHT,
    DiffRow,
    bar_width,
    bars,
    counts_words,
    rows_of,
    side_words,
    structure_of,
)
from harness.report.words.phrases import shorten

WIDTH = 80
ROWS, DRAWN, FACT = 12, 3, 56
"""Outputs in a table, those of them with a line of their own that shows where errors lie, and columns of a fact."""
_NAME = 26
_BAR = 28


def render_review(review: Review, *, every_row: bool = False) -> str:
    """Return a diff as text of at most 80 columns, ending with a newline.

    Args:
        every_row: no output is left out, however many there are.
    """
    if not review.diffs:
        return f"nothing differs: {prose(review.old)} and {prose(review.new)} are the same\n"
    lines = [f"{counted(len(review.diffs), 'model')}: {counts_words(review.diffs)}"]
    lines += _filled(f"old: {prose(review.old)}; new: {prose(review.new)}", "")
    for found in review.diffs:
        lines += ["", *_diff(found, every_row=every_row)]
    return "\n".join(lines) + "\n"


def _diff(found: RecordDiff, *, every_row: bool) -> Iterator[str]:
    yield f"{shorten(prose(found.model), 48)}  {found.change.value}"
    yield from _filled(f"  {prose(found.words)}", "  ")
    for label, facts in (("old", found.old), ("new", found.new)):
        if facts is not None:
            yield from _filled(f"  {label}  {prose(side_words(facts))}", " " * 7)
    for name, (old, new) in found.facts.items():
        yield from _filled(f"  {name}: {shorten(prose(old), FACT)} -> {shorten(prose(new), FACT)}", " " * 7)
    if found.comparison is None:
        return
    for text in structure_of(found.comparison)[: None if every_row else ROWS]:
        yield from _filled(f"  {prose(text)}", " " * 7)
    yield from _table(rows_of(found.comparison), every_row=every_row)


def _table(rows: Sequence[DiffRow], *, every_row: bool) -> Iterator[str]:
    if not rows:
        return
    shown = rows if every_row else rows[:ROWS]
    cells = [(shorten(prose(row.cells[0]), _NAME), *row.cells[1:]) for row in shown]
    yield ""
    yield from (f"  {line}" for line in draw([HEADS, *cells], heads=1, gap=1, right=RIGHT).splitlines())
    if len(shown) < len(rows):
        yield f"  and {len(rows) - len(shown)} more outputs: --all, or --format json"
    drawn = [row for row in shown if sum(row.tensor.error_histogram[1:])]
    if drawn:
        yield ""
        yield from _histogram(drawn[0])
    for row in drawn[1:DRAWN]:
        yield from _filled(f"  {prose(row.place)}: {sparkline(row.tensor, ASCII)}", " " * 7)


def _histogram(row: DiffRow) -> Iterator[str]:
    """Yield the errors of one tensor: a bar per decade, its length the logarithm of how many there are."""
    head = f"errors of {prose(row.place)}, of its largest value"
    yield from _filled(f"  {', '.join(part for part in (head, tolerance_words(row.tensor)) if part)}", " " * 7)
    drawn = bars(row.tensor)
    most = max(count for _, count, _ in drawn)
    for decade, count, beyond in drawn:
        mark = " beyond" if beyond and count else ""
        yield f"    {decade:>14} {count:>9} {'#' * bar_width(count, most, _BAR)}{mark}".rstrip()


def render_status(status: GoldenStatus) -> str:
    """Return the state of all records, ending with a newline."""
    lines = list(_accepted(status.accepted))
    lines += render_changes(status.waiting)
    for problem in status.problems:
        lines += ["", *_filled(f"PROBLEM   {prose(problem.message)}", " " * 10, whole=True)]
        lines += _filled(f"          do this: {prose(problem.hint)}", " " * 10, whole=True)
    return "\n".join([*lines, *([""] if lines else []), *_filled(_state(status), "")]) + "\n"


def _accepted(trusted: Sequence[Trust]) -> Iterator[str]:
    """Yield the accepted records, those together that one person accepted for one reason."""
    groups: dict[tuple[str, str, str], list[Trust]] = {}
    for trust in trusted:
        groups.setdefault((trust.accepted.isoformat(), trust.by, trust.reason), []).append(trust)
    for (day, by, reason), members in sorted(groups.items()):
        yield from _filled(f"accepted {day}{' by ' if by else ''}{prose(by)}: {prose(reason)}", " " * 9)
        for trust in members:
            release = f"torch {shorten(prose(trust.release), 16):16}"
            yield f"  {shorten(prose(trust.model), 40):40} {release} {shorten(prose(trust.record[:12]), 12)}"


def _state(status: GoldenStatus) -> str:
    if status.problems:
        what = counted(len(status.problems), "problem")
        return f"{prose(status.folder)}: NOT AS ACCEPTED, {what}; no run judges by these records until it is mended"
    if not status.accepted and not status.waiting:
        return "no golden records yet: golden propose RUN"
    parts = [
        f"{prose(status.folder)}: {counted(len(status.accepted), 'record')} as accepted",
        f"{counted(len(status.waiting), 'proposal')} waiting",
    ]
    if status.left_over:
        parts.append(f"golden gc would remove {counted(status.left_over, 'thing')}")
    return "; ".join(parts)


def render_left_over(found: Sequence[LeftOver], *, removed: bool) -> str:
    """Return what gc removed or would remove, ending with a newline."""
    if not found:
        return "nothing is left over\n"
    lines = []
    for item in found:
        word = "removed" if removed else "would remove"
        size = amount(item.size_bytes, "bytes")
        lines += _filled(f"{word}  {prose(item.path)}  ({size}): {prose(item.why)}", " " * 4, whole=True)
    if not removed:
        lines.append("nothing was removed; --yes removes it")
    return "\n".join(lines) + "\n"


def render_changes(diffs: Sequence[RecordDiff]) -> Iterator[str]:
    """Yield a few lines per proposal: what it changes."""
    for found in diffs:
        yield f"proposed  {shorten(prose(found.model), 34):34} {found.change.value}"
        yield from _filled(f"          {prose(found.words)}", " " * 10)


def _filled(text: str, indent: str, *, whole: bool = False) -> list[str]:
    """Return ``text`` wrapped; with ``whole``, paths and commands that are to be copied stay in one piece."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=not whole)
