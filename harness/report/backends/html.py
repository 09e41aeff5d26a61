"""A document as one HTML page: no network, no other file, and a policy in its head that forbids all loading."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import Any, NamedTuple

from harness.core.text import prose, visible
from harness.report.document import (
    ALL,
    Cell,
    Charts,
    Document,
    Fact,
    Figure,
    Part,
    Row,
    Table,
    bytes_of,
    cell_text,
    fitted,
    runs_of,
    tone_of,
)
from harness.report.words.phrases import shorten

LIMIT_BYTES = 4_700_000
"""Of a page; what is over it costs first charts, the last models' first, then what is least important."""
CHARTS_BYTES, WITHOUT_WORDS, SPARE, OVERHEAD = 2_600_000, 1_700_000, 200_000, 90
"""Of all charts; of those and the page's own parts where there are many words; of style and script; and of the markup
around a text."""
PAGE = 2 * ALL
"""The least important thing that a page shows."""
TEXT, NAME, SHORT = 1200, 160, 5
WINDOWS = ("upgrade", "leaving")
"""Kinds of parts whose table is data, of which a script makes the rows in sight."""
_UPSTREAM = re.compile(r"(https://github\.com/pytorch/[a-z]+/(?:pull|issues|commit)/[0-9a-f]+)")


def render_page(document: Document, *, limit: int = LIMIT_BYTES) -> str:
    """Return the page, ending with a newline; identical documents give identical bytes."""
    document = replace(document, parts=tuple(part for part in document.parts if part.kind != "paper"))
    words = fitted(document, PAGE, lambda less: bytes_of(less, TEXT, OVERHEAD), limit - WITHOUT_WORDS)
    charts = _Charts(min(CHARTS_BYTES, limit - SPARE - bytes_of(words, TEXT, OVERHEAD)))
    page = _page(words, document, charts)
    excess = len(page) - limit
    return page if excess <= 0 else _page(words, document, _Charts(charts.drawn - excess))


class Panel(NamedTuple):
    """A part of the first screen: ``lines`` are (title, link, tone, beside, below, owners, share of a bar or None)."""

    title: str
    target: str
    kind: str
    tone: str
    number: int
    lines: list[tuple[Any, ...]]
    more: int
    nothing: str


def _page(document: Document, whole: Document, charts: "_Charts") -> str:
    kinds = {part.kind for part in document.parts}
    windowed = bool(kinds & {*WINDOWS})
    style = own("style.css") + (own("artifacts.css") if windowed else "")
    script = own("artifacts.js") if windowed else own("script.js") if "models" in kinds else ""
    owners = sorted({name for part in document.parts if part.kind in WINDOWS for name in _owners_in(part)})
    numbers = {owner: str(at) for at, owner in enumerate(owners)}
    verdict = document.verdict
    title = f"{verdict.word or document.title}{f': {document.old} -> {document.new}' if document.new else ''}"
    panels = [_panel(part) for part in whole.parts if part.panel]
    news, worst = ([_panel(part) for part in document.screen if part.kind == kind] for kind in ("news", "worst"))
    views = {
        "document": document,
        "verdict": verdict,
        "page_title": prose(title),
        "style": style,
        "style_hash": _digest(style),
        "script": script,
        "script_hash": _digest(script) if script else "",
        "waits": "models" in kinds,
        "total": sum(number for number, _, _ in document.tally),
        "board": [panel for panel in (*panels, *worst) if panel.lines],
        "news": [panel for panel in news if panel.lines],
        "nothing": [panel.nothing for panel in (*panels, *worst, *news) if panel.nothing and not panel.lines],
        "head": [part for part in document.parts if not part.title],
        "steps": [part for part in document.parts if part.kind == "steps"],
        "parts": [part for part in document.parts if part.title and part.kind != "steps" and not charts.is_empty(part)],
        "runs_of": runs_of,
        "of_kind": lambda item, kind: [
            block for block in item.blocks if isinstance(block, Part) and block.kind == kind
        ],
        "kind_of": lambda block: type(block).__name__,
        "figures": charts.of,
        "charts": charts,
        "numbers": lambda names: " ".join(numbers[name] for name in names if name in numbers),
        "window": lambda part: part.kind in WINDOWS,
        "data": lambda table: _data(table, owners),
        "cells": _cells,
    }
    text: str = _environment().get_template("document.html").render(views).strip("\n") + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # whatever a terminal or a server takes it for


class _Charts:
    """Draws what there is room for, in the order of the page."""

    def __init__(self, room: int) -> None:
        self.room, self.drawn, self.refused = room, 0, 0
        self._kept: dict[int, list[Figure]] = {}

    def is_empty(self, part: Part) -> bool:
        """Whether a part has nothing to show, no drawing either."""
        return not part.left and all(isinstance(block, Charts) and not self.of(block) for block in part.blocks)

    def of(self, charts: Charts) -> list[Figure]:
        """Return the figures there is room for, drawn once; what is empty is no figure."""
        if id(charts) not in self._kept:
            self._kept[id(charts)] = self._drawn(charts)
        return self._kept[id(charts)]

    def _drawn(self, charts: Charts) -> list[Figure]:
        kept = []
        for figure in charts.draw():
            if self.drawn + len(figure.svg) > self.room:
                self.refused += 1
            elif figure.svg:
                self.drawn += len(figure.svg)
                kept.append(figure)
        return kept


def _owners_in(part: Part) -> Iterator[str]:
    for block in part.blocks:
        if isinstance(block, Table):
            yield from (name for row in block.rows for name in row.owners)


def _panel(part: Part) -> Panel:
    """Return what the first screen says of a part: its first things, and how many more there are."""
    lines: list[tuple[Any, ...]] = []
    for block in part.blocks:
        if isinstance(block, Part):
            link = block.id and f"#{block.id}"
            lines.append((block.title, link, block.tone, block.detail, [block.brief], block.owners, _share(block)))
        elif isinstance(block, Fact):
            lines.append((block.text, block.link, block.tone, "", [], (), None))
        elif isinstance(block, Table):
            tones = [next((tone for tone in map(tone_of, row.cells) if tone), "") for row in block.rows]
            for row, tone in zip(block.rows, tones, strict=True):
                soft = [cell_text(row.cells[at]) for at in block.soft if at < len(row.cells)]
                beside = [cell_text(row.cells[at]) for at in block.numbers]
                lines.append(
                    (cell_text(row.cells[block.main]), f"#{part.id}", tone, ", ".join(beside), soft, row.owners, None)
                )
    short = 3 if part.kind == "news" else SHORT
    return Panel(
        title=part.panel or part.title,
        target=part.id,
        kind=part.kind,
        tone=part.tone,
        number=len(lines),
        lines=lines[:short],
        more=len(lines) - short,
        nothing=part.nothing,
    )


def _share(part: Part) -> float | None:
    """Return how long the bar of a thing is, in percent; None where it has none."""
    return next((float(block.label) for block in part.blocks if isinstance(block, Fact) and block.text == "%"), None)


def _cells(row: Row) -> list[Cell]:
    return [cell if isinstance(cell, Cell) else Cell(cell) for cell in row.cells]


def _data(table: Table, owners: Sequence[str]) -> str:
    """Return the rows of a table as JSON that may stand in a page: ASCII, and without any ``<`` or ``&``.

    ``texts`` has every text once; a row is numbers of texts: those of the columns, then words by which it is found,
    what has changed, and what its name says to a pointer.
    """
    assert table.status is not None
    texts: dict[str, int] = {}
    rows, tones, changes = [], {}, {}
    for row in table.rows:
        shown = [*map(cell_text, row.cells), row.find, row.change[0], row.tip]
        rows.append([texts.setdefault(shorten(prose(text), 300), len(texts)) for text in shown])
        tones[shorten(prose(cell_text(row.cells[table.status])), 300)] = tone_of(row.cells[table.status])
        changes[row.change[0]] = row.change[1]
    found = {
        "columns": table.heads,
        "status": table.heads[table.status],
        "owners": [shorten(prose(owner), 300) for owner in owners],
        "tones": tones,
        "changes": changes,
        "texts": list(texts),
        "rows": rows,
    }
    text = json.dumps(found, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def _environment() -> Any:
    """Return what compiles templates; it is imported only here, so that ``--help`` does not wait for it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(own),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["say"] = lambda text, limit=TEXT: upstream(shorten(prose(text), limit))
    environment.filters["whole"] = visible
    environment.filters["name"] = lambda text: shorten(visible(text), NAME)
    return environment


def upstream(text: str) -> Any:
    """Return a text as markup in which issues, pull requests and commits of PyTorch, and nothing else, are links."""
    if "github.com" not in text:  # as nearly all of them
        return text  # which the environment escapes
    parts = _UPSTREAM.split(text)

    from markupsafe import Markup, escape  # noqa: PLC0415  likewise

    linked = [Markup('<a href="{0}" rel="noreferrer">{0}</a>').format(part) for part in parts[1::2]]
    plain = [escape(part) for part in parts[::2]]
    return Markup("").join(piece for pair in zip_longest(plain, linked, fillvalue=Markup("")) for piece in pair)


@cache
def own(name: str) -> str:
    """Return a file of the templates' folder."""
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _digest(inline: str) -> str:
    """Return what a page's policy knows an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
