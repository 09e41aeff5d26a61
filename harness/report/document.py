"""A result as a document, made once: what every format says of it, before any of them lays it out.

Texts are raw; a backend escapes, shortens and wraps them. Each thing has an importance, by which a backend that has
little room leaves out what is least important first.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from harness.core.text import counted

# The higher the number, the sooner a thing is left out; what lies between two of them ranks things of one kind.
ALWAYS, FIRST, USUAL, MORE, DETAIL, ALL = 0, 100, 200, 300, 400, 500
BAD, OPEN, QUIET, GOOD, PLAIN = "bad", "open", "quiet", "good", ""
"""Tones: what a word means for the reader."""
STAGE = "stage:"
"""In what a page finds a row by: before the name of a stage that it did not pass."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled text; without a label it goes on where the one above it ends, or is a sentence of its own.

    Attributes:
        form: ``command`` and ``path`` are copied by readers, so that no backend wraps or shortens them.
        link: where a page leads from here: ``#id`` of a part, or a path within the result's folder.
    """

    label: str
    text: str
    importance: int = ALWAYS
    form: Literal["words", "command", "path"] = "words"
    link: str = ""
    tone: str = PLAIN


@dataclass(frozen=True, slots=True)
class Cell:
    """A text of a table; ``short`` says the same where a table has little room, ``key`` is what a page sorts by."""

    text: str
    short: str = ""
    tone: str = PLAIN
    link: str = ""
    key: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row; ``owners`` are whose it is, ``find`` words by which a page finds it."""

    cells: tuple[str | Cell, ...]
    importance: int = ALWAYS
    owners: tuple[str, ...] = ()
    find: str = ""
    tip: str = ""
    change: tuple[str, str] = ("", PLAIN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table.

    Attributes:
        numbers: the columns that stand to the right.
        noun: what a row is; rows that are left out are counted by it.
        status: the column that says what a row came to, by which a page filters; None: it has no such tools.
        stages: (name, words, rows) of those in which some row did not pass; its ``find`` has ``STAGE`` and the name.
        long: columns for those who have the room: a terminal leaves them out.
        main: the column that names a row on the first screen of a page; ``soft`` are those that stand below it.
        legend: what its short forms mean.
        left: counts what a backend has left out already.
    """

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    numbers: tuple[int, ...] = ()
    noun: str = "row"
    status: int | None = None
    stages: tuple[tuple[str, str, int], ...] = ()
    choices: tuple[str, ...] = ()
    long: tuple[int, ...] = ()
    main: int = 0
    soft: tuple[int, ...] = ()
    legend: str = ""
    importance: int = ALWAYS
    kind: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its caption; ``legend`` has (class, words) of its colours."""

    title: str
    svg: str
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Charts:
    """Drawings, made only for those who can show them."""

    draw: Callable[[], Iterable[Figure]]
    importance: int = ALL
    kind: str = "figures"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A section, or one thing within it: a cause, a model, a red cell.

    Attributes:
        word: what it came to, with a ``tone``; ``detail`` stands behind the title: how many models, how far.
        folded: there for those who ask: a page and markdown fold it away.
        noun: what its things are; those left out are counted by it, and silently left out where it is empty.
        id: by which links find it; ``more_ids`` lead here too.
        find: what a page puts into its search when somebody follows ``detail``.
        panel: its heading on the first screen of a page, empty where it is not there; ``nothing`` stands there where it
            is empty; ``brief`` is what that screen says of one thing below its title.
    """

    title: str
    blocks: "tuple[Block, ...]" = ()
    word: str = ""
    tone: str = PLAIN
    detail: str = ""
    folded: bool = False
    opened: bool = False
    importance: int = ALWAYS
    noun: str = ""
    id: str = ""
    more_ids: tuple[str, ...] = ()
    find: str = ""
    brief: str = ""
    panel: str = ""
    nothing: str = ""
    owners: tuple[str, ...] = ()
    kind: str = ""
    left: str = ""


Block = Fact | Table | Charts | Part


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a result comes to: ``word`` and on which ``condition``, with its joint, what that ``means``, and why."""

    word: str = ""
    tone: str = PLAIN
    condition: str = ""
    means: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A whole result, in the order in which somebody reads it who decides.

    Attributes:
        full: the file or option that has what is left out elsewhere.
        old, new: the two releases that it is about, for the head of a page.
        tally: (number, word, tone) of what it is about, with what they are in ``things``.
        screen: what only the first screen of a page says.
        beside: files that lie beside a page of it.
    """

    title: str
    verdict: Verdict
    parts: tuple[Part, ...]
    full: str = ""
    eyebrow: str = ""
    old: str = ""
    new: str = ""
    tally: tuple[tuple[int, str, str], ...] = ()
    things: str = ""
    screen: tuple[Part, ...] = ()
    beside: tuple[str, ...] = ()


def facts(
    pairs: Iterable[tuple[str, str]],
    importance: int = ALWAYS,
    *,
    step: int = 0,
    form: Literal["words", "path"] = "words",
) -> tuple[Fact, ...]:
    """Return labelled texts, each ``step`` less important than the one before; empty texts are none."""
    return tuple(Fact(label, text, importance + at * step, form) for at, (label, text) in enumerate(pairs) if text)


def commands(pairs: Iterable[tuple[str, str]], importance: int = ALWAYS) -> tuple[Fact, ...]:
    """Return labelled commands to copy; empty ones are none."""
    return tuple(Fact(label, text, importance, "command") for label, text in pairs if text)


def cell_text(cell: str | Cell) -> str:
    """Return the text of a cell."""
    return cell if isinstance(cell, str) else cell.text


def tone_of(cell: str | Cell) -> str:
    """Return the tone of a cell."""
    return PLAIN if isinstance(cell, str) else cell.tone


def cut(document: Document, level: int) -> Document:
    """Return a document without what is less important than ``level``; what is left out is counted."""
    parts = tuple(part for part in (_cut(part, level) for part in document.parts) if part is not None)
    return replace(document, parts=parts)


def _cut(part: Part, level: int) -> Part | None:
    if part.importance > level or not (part.blocks or part.word):
        return None
    kept: list[Block] = []
    lost = 0
    for block in part.blocks:
        if isinstance(block, Part):
            inner = _cut(block, level)
            kept += [inner] if inner is not None else []
            lost += inner is None and block.importance < ALL and not block.folded
        elif isinstance(block, Table):
            kept += [_cut_rows(block, level)] if block.importance <= level else []
        elif block.importance <= level:
            kept.append(block)
        else:
            lost += isinstance(block, Fact) and block.importance < ALL
    if part.blocks and not kept and not part.word and not (lost and part.noun):
        return None
    left = _left_out(lost, part.noun, beside=bool(kept)) if lost and part.noun else ""
    return replace(part, blocks=tuple(kept), left=left)


def _left_out(lost: int, noun: str, *, beside: bool) -> str:
    """Return how many things are left out; ``beside``: whether others of them are shown."""
    return f"and {counted(lost, f'more {noun}')}" if beside else f"{counted(lost, noun)} not shown here"


def _cut_rows(table: Table, level: int) -> Table:
    kept = tuple(row for row in table.rows if row.importance <= level)
    lost = [row for row in table.rows if row.importance > level]
    if not lost or not table.noun:
        return replace(table, rows=kept)
    left = _left_out(len(lost), table.noun, beside=bool(kept))
    words = Counter(cell_text(row.cells[-1]) for row in lost)
    if all(tone_of(row.cells[-1]) for row in table.rows):
        left += f": {', '.join(f'{count} {word}' for word, count in words.items())}"
    return replace(table, rows=kept, left=left)


def levels_of(document: Document) -> list[int]:
    """Return every importance in a document, the least important first."""

    def of(blocks: Iterable[Block]) -> Iterator[int]:
        for block in blocks:
            yield block.importance
            if isinstance(block, Part):
                yield from of(block.blocks)
            elif isinstance(block, Table):
                yield from (row.importance for row in block.rows)

    return sorted({*of(document.parts)}, reverse=True)


def fitted(document: Document, level: int, size: Callable[[Document], int], most: int) -> Document:
    """Return the document cut at ``level``, or as much further as makes its size at most ``most`` if that can be.

    ``document`` is a whole one: of one that is cut already nobody could count what it has lost.
    """
    whole = cut(document, level)
    if size(whole) <= most:
        return whole
    levels = levels_of(whole) or [ALWAYS]
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        if size(cut(document, levels[middle])) <= most:
            high = middle
        else:
            low = middle + 1
    return cut(document, levels[low])


def bytes_of(document: Document, longest: int, overhead: int) -> int:
    """Return about how many bytes the texts of a document take, each up to ``longest`` and with an ``overhead``."""

    def of(blocks: Iterable[Block]) -> Iterator[int]:
        for block in blocks:
            if isinstance(block, Part):
                yield min(len(block.title), longest) + overhead
                yield from of(block.blocks)
            elif isinstance(block, Fact):
                yield min(len(block.text), longest) + overhead
            elif isinstance(block, Table):
                for row in block.rows:
                    yield sum(min(len(cell_text(cell)), longest) + overhead // 2 for cell in row.cells)

    return sum(of(document.parts))


def placed(importance: int, place: int, step: int = 1) -> int:
    """Return the importance of the thing at a place of its list: each a little less than that before it."""
    return importance + min(place * step, 90)


def runs_of(blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """Yield the blocks with facts that stand side by side together."""
    together: list[Fact] = []
    for block in blocks:
        if isinstance(block, Fact):
            together.append(block)
            continue
        if together:
            yield tuple(together)
            together = []
        yield (block,)
    if together:
        yield tuple(together)


def anchor(name: str) -> str:
    """Return the id of a model's part: readable, safe in a URL, unique, and the same in every run."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-").lower()
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"model-{readable}-{digest}" if readable else f"model-{digest}"


def place(cell: str) -> str:
    """Return the id of a cell's part: the cell id itself, so that whoever has one can link to it."""
    return quote(cell.encode("utf-8", "surrogatepass"))


def inside(path: str) -> str:
    """Return a path within the result's folder as a relative URL; empty for any other path."""
    within = bool(path) and not path.startswith("/") and ".." not in path.split("/")
    return quote(path.encode("utf-8", "surrogatepass")) if within else ""


def outside(url: str) -> str:
    """Return an address of the web as it stands; empty for anything else that a link could be."""
    plain = url.isascii() and url.isprintable() and " " not in url
    return url if plain and re.match(r"https?://[^/]", url) else ""
