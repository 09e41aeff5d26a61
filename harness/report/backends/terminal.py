"""A document on a terminal: what matters most comes last, where it stays on the screen; the verdict is its end."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.core.text import prose, visible
from harness.report.document import (
    ALL,
    BAD,
    DETAIL,
    GOOD,
    OPEN,
    QUIET,
    Block,
    Cell,
    Document,
    Fact,
    Part,
    Table,
    Verdict,
    cell_text,
    cut,
    fitted,
    runs_of,
    tone_of,
)
from harness.report.text.grid import draw, filled, needed
from harness.report.text.sparkline import ASCII, BLOCKS
from harness.report.words.phrases import ending, shorten

MOST_LINES, LEAST_WIDTH = 60, 80
NUMBER, LABEL, WIDEST_LABEL, INDENT = 3, 10, 14, "  "
LINES_OF_TEXT = 2
"""Of one text, where room is short."""
LONGEST, LONGEST_HEAD = 1200, 200
COLOURS = {BAD: "1;31", OPEN: "33", QUIET: "36", GOOD: "32"}

# A number stays with its unit and an interval stays whole where lines wrap. Visible text has no NUL.
_GLUE = "\0"
_GLUED = re.compile(
    r"(?<=\d) (?=(?:%|[mun]?s|min|h|x|of|bytes|[KM]iB)(?:\W|$))|(?<=[%\d]) (?=\[[-+\d])|(?<=\d,) (?=[-+\d])"
    r"|(?<=\bof) (?=\d)"
)
PLAIN_LEVELS = str.maketrans(BLOCKS, ASCII)
"""Of histograms: nobody knows what a terminal can show."""
Paint = Callable[[str, str], str]
"""(word, tone) -> the word, with colour or without."""


def render_terminal(
    document: Document, *, width: int = 100, colour: bool = False, verbose: bool = False, most_lines: int = 0
) -> str:
    """Return the text, ending with the verdict and a newline.

    Args:
        width: columns, fewer than 80 count as 80; only what is copied may be longer.
        colour: ANSI colour on words with a tone, and nowhere else.
        verbose: nothing but the details of a page is left out, however long it becomes.
        most_lines: otherwise, where it is not 0; texts are cut to two lines where not all fits.
    """
    width = max(width, LEAST_WIDTH)

    def paint(word: str, tone: str) -> str:
        return f"\x1b[{COLOURS[tone]}m{word}\x1b[0m" if colour and tone in COLOURS and word.strip() else word

    whole = _Layout(width, paint, brief=False)
    if verbose:
        return whole.text(cut(document, ALL - 1)).translate(PLAIN_LEVELS)
    text = whole.text(cut(document, DETAIL - 1))
    if not most_lines or _lines(text) <= most_lines:
        return text.translate(PLAIN_LEVELS)
    brief = _Layout(width, paint, brief=True)
    fitting = fitted(document, DETAIL - 1, lambda less: _lines(brief.text(less)), most_lines)
    return brief.text(fitting).translate(PLAIN_LEVELS)


def part_lines(part: Part, *, width: int) -> str:
    """Return one part, for a place where nothing else of its document stands."""
    return "\n".join(_Layout(width, lambda word, _: word, brief=False).part(part, ""))


def _lines(text: str) -> int:
    return text.count("\n")


def _is_block(block: Block) -> bool:
    """Whether a thing stands apart from what is around it: a cause without details is one line among others."""
    return not isinstance(block, Part) or bool(block.blocks)


class _Layout:
    def __init__(self, width: int, paint: Paint, *, brief: bool) -> None:
        self.width, self.paint, self.brief = width, paint, brief

    def text(self, document: Document) -> str:
        parts = [part for part in reversed(document.parts) if part.kind != "paper"]
        blocks = [(list(self.part(part, "", top=True)), bool(part.blocks)) for part in parts]
        blocks.append((list(self.verdict(document.verdict)), True))
        text = ""
        after_content = True
        for lines, has_content in blocks:
            if lines and text:
                # Of several parts of which nothing is left, the numbers stand together.
                text += "\n" if after_content or has_content else ""
            text += "".join(f"{line}\n" for line in lines)
            after_content = has_content if lines else after_content
        return text

    def verdict(self, verdict: Verdict) -> Iterator[str]:
        condition = prose(verdict.condition)
        word = visible(verdict.word)
        means = f"  ({prose(verdict.means)})" if word and verdict.means else prose(verdict.means)
        text = f"{word}{condition}{means}"
        if not text:
            return
        if verdict.reason:
            yield from self.labelled([Fact("why", verdict.reason)], "")
            yield ""
        if condition and means and len(text) > self.width:  # so that the decision is the last line of any log
            yield means.strip()
            text = f"{word}{condition}"
        lines = filled(shorten(text, LONGEST), self.width, rest=INDENT)
        yield self.paint(word, verdict.tone) + lines[0][len(word) :] if lines[0].startswith(word) else lines[0]
        yield from lines[1:]

    def part(self, part: Part, indent: str, *, top: bool = False) -> Iterator[str]:
        """Yield one part; of what stands at the top only the things have headings."""
        inner = indent
        if not top or part.word or part.kind == "steps":
            yield from self.heading(part, indent)
            inner = indent + INDENT
        before: Block | None = None
        for run in runs_of(part.blocks):
            block = run[0]
            if isinstance(block, Fact):
                lines = list(self.facts([item for item in run if isinstance(item, Fact)], inner))
            elif isinstance(block, Table):
                lines = self.table(block, inner)
            elif isinstance(block, Part):
                lines = list(self.part(block, inner))
            else:
                continue
            if lines and before is not None and top and (_is_block(block) or _is_block(before)):
                yield ""
            before = block if lines else before
            yield from lines
        if part.left:
            yield f"{inner}{part.left}"

    def heading(self, part: Part, indent: str) -> Iterator[str]:
        word = f"{visible(part.word)}  " if part.word else ""
        detail = f" ({prose(part.detail)})" if part.detail else ""
        room = self.width - len(indent) - len(word) - len(detail)
        title = prose(part.title)
        if self.brief and not part.blocks and len(title) > room:
            title = f"{title[: max(room - 4, 12)]} ..."
        if len(title) > LONGEST_HEAD:  # a sentence: it says most at its beginning
            title = f"{title[: LONGEST_HEAD - 4].rstrip()} ..."
        text = f"{word}{title}{detail}"
        first, *rest = filled(text, self.width, first=indent, rest=f"{indent}    ") or [""]
        begin = indent + word.rstrip()
        yield f"{indent}{self.paint(word.rstrip(), part.tone)}{first[len(begin) :]}" if word else first
        yield from rest

    def facts(self, items: Sequence[Fact], indent: str) -> Iterator[str]:
        sentences = next((at for at, item in enumerate(items) if item.label), len(items))
        for item in items[:sentences]:
            if item.form == "words":
                lines = self.wrapped(item.text, self.width - len(indent), hanging=True)
                yield from (f"{indent}{line}" for line in lines)
            else:
                yield f"{indent}  {visible(item.text)}"
        yield from self.labelled(items[sentences:], indent)

    def labelled(self, items: Sequence[Fact], indent: str) -> Iterator[str]:
        labels = [visible(item.label) for item in items]
        numbers = all(label.isdecimal() for label in labels if label)
        wide = NUMBER if numbers else min(max([LABEL, *(len(label) + 2 for label in labels)]), WIDEST_LABEL)
        before = ""
        for item, label in zip(items, labels, strict=True):
            shown = "" if label == before else shorten(label, WIDEST_LABEL - 1)
            before = label or before
            first = f"{indent}{shown:<{wide}}"
            if item.form != "words":
                one, *others = item.text.splitlines() or [""]
                yield f"{first}{visible(one)}"
                yield from (f"{' ' * len(first)}{visible(other)}".rstrip() for other in others)
                continue
            most = len(item.text) if numbers else LINES_OF_TEXT  # of a step nothing is left out: what it needs is last
            lines = self.wrapped(item.text, self.width - len(first), most=most)
            yield f"{first}{lines[0]}".rstrip()
            yield from (" " * len(first) + line for line in lines[1:])

    def wrapped(self, text: str, room: int, *, hanging: bool = False, most: int = LINES_OF_TEXT) -> list[str]:
        """Return a text in lines, ``most`` where room is short; numbers stay with their units, copied words whole."""
        glued = _GLUED.sub(_GLUE, shorten(prose(text), LONGEST))
        lines = [line.replace(_GLUE, " ") for line in filled(glued, room, rest=INDENT * hanging)] or [""]
        if self.brief and len(lines) > most:
            lines = [*lines[: most - 1], f"{lines[most - 1][: room - 4].rstrip()} ..."]
        return lines

    def table(self, table: Table, indent: str) -> list[str]:
        if not table.rows:
            return [f"{indent}{table.left}"] if table.left else []
        width = self.width - len(indent)
        caption = filled(prose(table.caption), width) if table.caption else []
        shown = _without_long(table)
        lines = list(_grid(shown, width, self.paint))
        shortened = any(
            len(line) < needed([list(map(cell_text, row.cells)) for row in shown.rows], 2) for line in lines[:1]
        )
        legend = self.wrapped(table.legend, width) if table.legend and shortened else []
        return [
            f"{indent}{line}".rstrip() for line in [*caption, *lines, *([table.left] if table.left else []), *legend]
        ]


LEAST_COLUMN = 9


def _without_long(table: Table) -> Table:
    kept = [at for at in range(len(table.heads)) if at not in table.long]
    return replace(
        table,
        heads=tuple(table.heads[at] for at in kept),
        numbers=tuple(place for place, at in enumerate(kept) if at in table.numbers),
        rows=tuple(replace(row, cells=tuple(row.cells[at] for at in kept)) for row in table.rows),
    )


def _grid(table: Table, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of a table, at most ``width`` columns wide: the roomiest layout that fits.

    Where it is too wide, heads stand in two lines, then cells give way to their short forms, the last such column last,
    then columns stand closer, then the widest texts are cut, then the columns stand in several blocks.
    """
    heads: list[list[str]] = [[prose(head) for head in table.heads]]
    rows = [[prose(cell_text(cell)) for cell in row.cells] for row in table.rows]
    columns, gap = len(table.heads), 2

    def over() -> int:
        return needed([*heads, *rows], gap) - width

    if over() > 0:
        broken = [_in_two(head) if len(head) >= LEAST_COLUMN else ("", head) for head in heads[0]]
        heads = [[lines[0] for lines in broken], [lines[1] for lines in broken]]
        heads = heads if any(heads[0]) else heads[1:]
    shorter = [column for column in range(columns) if any(_short(row.cells[column]) for row in table.rows)]
    for together in (shorter[:-1], shorter[-1:]):
        for line, row in zip(rows, table.rows, strict=True) if over() > 0 else ():
            for column in together:
                line[column] = _short(row.cells[column]) or line[column]
    gap = 2 if over() <= 0 else 1
    while over() > 0:
        least = [max(LEAST_COLUMN, *(len(line[column]) for line in heads)) for column in range(columns)]
        widths = [max(len(line[column]) for line in rows) for column in range(columns)]
        cut = max(range(columns), key=lambda column: widths[column] - least[column])
        if widths[cut] <= least[cut]:
            break
        room = max(widths[cut] - over(), sorted(widths)[-2:][0], least[cut])
        room = min(room, widths[cut] - 1)
        for line in rows:
            line[cut] = _fit(line[cut], room)
    blocks = _blocks([*heads, *rows], gap, width) if over() > 0 else [list(range(columns))]
    for number, shown in enumerate(blocks):
        plain = [[line[column] for column in shown] for line in (*heads, *rows)]
        painted = [
            [paint(line[column], tone_of(row.cells[column])) for column in shown]
            for line, row in zip(rows, table.rows, strict=True)
        ]
        right = [at for at, column in enumerate(shown) if column in table.numbers]
        yield from [""] * bool(number)
        yield from draw(plain, heads=len(heads), gap=gap, right=right, painted=painted).splitlines()


def _in_two(head: str) -> tuple[str, str]:
    """Return a head in two lines, about as long as each other where it has several words."""
    places = [at for at, char in enumerate(head) if char == " "]
    if not places:
        return "", head
    middle = min(places, key=lambda at: abs(2 * at - len(head)))
    return head[:middle], head[middle + 1 :]


def _blocks(lines: Sequence[Sequence[str]], gap: int, width: int) -> list[list[int]]:
    """Return the columns in blocks that fit; each begins with the first column, which names the rows."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    blocks, room = [[0]], width - widths[0]
    for column, wide in enumerate(widths[1:], start=1):
        if room < wide + gap and len(blocks[-1]) > 1:
            blocks.append([0])
            room = width - widths[0]
        blocks[-1].append(column)
        room -= wide + gap
    return blocks


def _short(cell: str | Cell) -> str:
    return "" if isinstance(cell, str) else visible(cell.short)


def _fit(text: str, room: int) -> str:
    """Return a text in ``room`` columns; of a path the end, which says which file it is."""
    return ending(text, room) if "/" in text and " " not in text else shorten(text, room)
