"""Text layout for a terminal: column widths, tables, and wrapped lines."""

import textwrap
from collections.abc import Callable, Sequence

from tabulate import DataRow, TableFormat, tabulate

Lines = Sequence[Sequence[str]]


def filled(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return the text in lines of ``width`` columns; a longer word stays whole: it is a path or a command to copy.

    Args:
        first, rest: what the first line, and each of the others, begins with.
    """
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def needed(lines: Lines, gap: int) -> int:
    """Return the columns that the table would take."""
    widths = _widths(lines)
    return sum(widths) + gap * (len(widths) - 1)


def draw(
    lines: Lines,
    *,
    heads: int,
    gap: int,
    right: Sequence[int],
    paint: Callable[[str], str] = str,
    painted: Lines | None = None,
) -> str:
    """Return the table, ruled below its first ``heads`` lines; trailing blanks are cut.

    The heads go in as rows, because tabulate widens a column for its header and lays out headers of several lines
    only for the formats it knows.

    Args:
        lines: heads and rows, of equal length.
        right: numbers of the columns that stand to the right.
        paint: adds colour to the last text of each row; may only add escape sequences.
    """
    rule = ["-" * width for width in _widths(lines)]
    if painted is None:
        painted = [(*texts[:-1], paint(texts[-1])) for texts in lines[heads:]]
    row = DataRow("", " " * gap, "")
    plain = TableFormat(
        lineabove=None,
        linebelowheader=None,
        linebetweenrows=None,
        linebelow=None,
        headerrow=row,
        datarow=row,
        padding=0,
        with_header_hide=None,
    )
    align = ["right" if index in right else "left" for index in range(len(rule))]
    text = tabulate([*lines[:heads], rule, *painted], tablefmt=plain, colalign=align, disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _widths(lines: Lines) -> list[int]:
    """Return the width of each column."""
    return [max(len(text) for text in column) for column in zip(*lines, strict=True)]
