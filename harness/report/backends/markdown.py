"""A document as GitHub-flavoured markdown: everything in it is inert, and what it has no room for is counted."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from urllib.parse import quote

from harness.core.text import prose, visible
from harness.report.document import (
    ALL,
    GOOD,
    PLAIN,
    QUIET,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    bytes_of,
    fitted,
    outside,
    runs_of,
)
from harness.report.words.phrases import shorten

LIMIT_BYTES = 400_000
"""GitHub drops the summary of a step over 1024 KiB as a whole, and nobody reads as much as this."""
CELL_LIMIT = 120
"""Characters of a text in a table."""
TEXT_LIMIT = 400
"""Of one in a table that has two columns or three."""
_PROSE_LIMIT = 2_000
_SPECIAL = re.compile(r"[\\`*\[\]|~#!$<&]|(?<!-)>|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
Escape = Callable[[str, int], str]


def escape(text: str, limit: int = _PROSE_LIMIT) -> str:
    """Return ``text`` as inert markdown on one line: no markup, no HTML, no table border, no control character."""
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shorten(prose(text), limit))


_LIVE = re.compile(r"@\w|#\d|://|\bwww\.|\bGH-\d", re.IGNORECASE)
_NOT_IN_CODE = re.compile(r"[|`]")  # it would end the cell or the span


def inert(text: str, limit: int = _PROSE_LIMIT) -> str:
    """Return a text that also notifies nobody and links to nothing: such words stand in code spans, where GitHub does
    not look for them.
    """
    words = shorten(prose(text), limit).split(" ")
    return " ".join(code(_NOT_IN_CODE.sub("?", word)) if _LIVE.search(word) else escape(word) for word in words)


def code(text: str) -> str:
    """Return ``text`` as a code span that no backtick inside it can close."""
    content = visible(text)
    quotes = fence(content, 1)
    pad = " " if content.startswith("`") or content.endswith("`") or not content.strip() else ""
    return f"{quotes}{pad}{content}{pad}{quotes}"


def command_block(text: str) -> list[str]:
    """Return a command as a block that can be copied."""
    lines = [visible(line) for line in text.splitlines()] or [""]
    quotes = fence("\n".join(lines), 3)
    return [f"{quotes}sh", *lines, quotes]


def fence(text: str, least: int) -> str:
    """Return backticks, more than any run of them in ``text``, and at least so many."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def bullets(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a bullet list of labelled texts."""
    return [f"- **{escape(label)}** {escape(text)}" for label, text in pairs]


def table_line(cells: Iterable[str]) -> str:
    """Return one line of a pipe table."""
    return f"| {' | '.join(cells)} |"


def render_markdown(document: Document, *, limit: int = LIMIT_BYTES, depth: int = 1, live: bool = True) -> str:
    """Return the document as markdown, ending with a newline.

    Args:
        limit: bytes; what is over it is left out, the least important first.
        depth: of its first heading.
        live: whether addresses and names of people may be links; a comment must not notify anybody.
    """
    lay_out = partial(_text, depth=depth, say=escape if live else inert)

    def size(less: Document) -> int:
        about = bytes_of(less, TEXT_LIMIT, 10)
        return about if about > 2 * limit else len(lay_out(less).encode())

    return lay_out(fitted(document, ALL - 1, size, limit))


def _text(document: Document, depth: int, say: Escape) -> str:
    verdict = document.verdict
    heading = f"{verdict.word}{verdict.condition}" if verdict.word else ""
    title = f"{heading}: {document.title}" if heading and document.title else heading or document.title
    lines = [f"{'#' * depth} {say(title, _PROSE_LIMIT)}"]
    means = f"**{say(verdict.means, _PROSE_LIMIT)}**" if verdict.means else ""
    reason = say(verdict.reason, _PROSE_LIMIT) if verdict.reason else ""
    lines += ["", ": ".join(filter(None, [means, reason]))] if means or reason else []
    for part in document.parts:
        lines += _part(part, depth + 1, document.full, say)
    return "\n".join(lines) + "\n"


def _part(part: Part, depth: int, full: str, say: Escape) -> Iterator[str]:
    """Yield a part below a heading of its depth; a fold has a summary in its place."""
    content = list(_content(part, depth, full, say))
    detail = f" ({part.detail})" if part.detail else ""
    title = f"{part.word}: {part.title}{detail}" if part.word else f"{part.title}{detail}"
    if part.folded:
        yield from ("", "<details>", f"<summary>{html.escape(shorten(prose(title), TEXT_LIMIT))}</summary>")
        yield from (*content, "", "</details>")
        return
    if title:
        yield from ("", f"{'#' * depth} {say(title, TEXT_LIMIT)}")
    yield from content


def _content(part: Part, depth: int, full: str, say: Escape) -> Iterator[str]:
    for run in runs_of(part.blocks):
        block = run[0]
        if isinstance(block, Fact):
            yield ""
            yield from _facts([item for item in run if isinstance(item, Fact)], say)
        elif isinstance(block, Table):
            yield from _table(block, full, say)
        elif isinstance(block, Part):
            yield from _part(block, depth + 1 if part.title else depth, full, say)
    if part.left:
        yield from ("", f"{part.left[0].upper()}{part.left[1:]}{_elsewhere(full)}.")


def _elsewhere(full: str) -> str:
    return f", in {code(full)}" if full else ""


def _facts(items: Sequence[Fact], say: Escape) -> Iterator[str]:
    """Yield a list; a command stands as a block below it, so that it can be copied."""
    before, numbered = "", False
    for item in items:
        numbered = item.label.isdecimal() or (numbered and not item.label and item.form == "path")
        if item.form == "command":
            yield from ("", *command_block(item.text))
        else:
            if before == "command":
                yield ""
            text = _linked(code(item.text) if item.form == "path" else say(item.text, _PROSE_LIMIT), item.link)
            if numbered:
                yield f"{item.label}. {text}" if item.label else f"   - {text}"
            else:
                yield f"- **{say(item.label, CELL_LIMIT)}** {text}" if item.label else f"- {text}"
        before = item.form


def _table(table: Table, full: str, say: Escape) -> Iterator[str]:
    if table.caption:
        yield from ("", f"{say(table.caption, TEXT_LIMIT)}:")
    if table.rows:
        limit = TEXT_LIMIT if len(table.heads) < 5 else CELL_LIMIT
        yield ""
        yield table_line(say(head, limit) for head in table.heads)
        yield table_line("---:" if at in table.numbers else "---" for at in range(len(table.heads)))
        yield from (_row(row, limit, say) for row in table.rows)
    if table.left:
        yield from ("", f"{table.left[0].upper()}{table.left[1:]}{_elsewhere(full)}.")


def _row(row: Row, limit: int, say: Escape) -> str:
    """Return one line; a word that needs somebody is bold."""
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row.cells]
    texts = [(_linked(say(cell.text, limit), cell.link), cell.tone) for cell in cells]
    return table_line(f"**{text}**" if tone not in (PLAIN, QUIET, GOOD) and text else text for text, tone in texts)


def _linked(text: str, link: str) -> str:
    """Return markup that leads to an address of the web; within a page's own places a text leads nowhere."""
    address = quote(outside(link), safe="%/:?#@!$&'*+,;=~")
    return f"[{text}]({address})" if address and text else text
