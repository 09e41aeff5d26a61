"""Texts as inert GitHub-flavoured markdown: escaped, in code spans, lists, tables and folds."""

import html
import re
from collections.abc import Iterable, Sequence

from harness.core.text import prose, visible
from harness.report.words.phrases import shorten

CELL_LIMIT = 120
"""Characters of a text in a table."""
_PROSE_LIMIT = 2_000
_SPECIAL = re.compile(r"[\\`*\[\]|~#!$<&]|(?<!-)>|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def escape(text: str, limit: int = _PROSE_LIMIT) -> str:
    """Return ``text`` as inert markdown on one line: no markup, no HTML, no table border, no control character."""
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shorten(prose(text), limit))


def code(text: str) -> str:
    """Return ``text`` as a code span that no backtick inside it can close."""
    inside = visible(text)
    quotes = fence(inside, 1)
    pad = " " if inside.startswith("`") or inside.endswith("`") or not inside.strip() else ""
    return f"{quotes}{pad}{inside}{pad}{quotes}"


def command_block(text: str) -> list[str]:
    """Return a command as a block that can be copied."""
    command = visible(text)
    quotes = fence(command, 3)
    return [f"{quotes}sh", command, quotes]


def fence(text: str, least: int) -> str:
    """Return backticks, more than any run of them in ``text``, and at least so many."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def bullets(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a bullet list of labelled texts."""
    return [f"- **{escape(label)}** {escape(text)}" for label, text in pairs]


def table_line(cells: Iterable[str]) -> str:
    """Return one line of a pipe table."""
    return f"| {' | '.join(cells)} |"


def folded(summary: str, lines: Sequence[str]) -> str:
    """Return lines behind a summary that opens on a click, as one piece."""
    return "\n".join(["", "<details>", f"<summary>{html.escape(summary)}</summary>", "", *lines, "", "</details>"])
