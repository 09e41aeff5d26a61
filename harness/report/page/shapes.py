"""Shapes that several sections of the page share."""

from dataclasses import dataclass

Fact = tuple[str, str]
"""A label and what is to be said under it."""

LINES_SHOWN = 100
"""Of one table; report.json has all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLine:
    """A row of a plain table, its last text a status with a tone."""

    texts: tuple[str, ...]
    status: str
    tone: str
