"""A diff of golden records as one HTML page: the same look as the report, no script, and nothing that it loads."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.core.comparison import OutputComparison
from harness.core.golden import RecordChange, RecordDiff, Review
from harness.core.report import ModelReport
from harness.core.text import prose, visible
from harness.report.page.engine import digest, own, page_of
from harness.report.page.figures import Budget, Figure, model_figures
from harness.report.page.parts import BAD, GOOD, OPEN, QUIET, anchor
from harness.report.words.golden import HEADS, counts_words, rows_of, sides_of, structure_of
from harness.report.words.phrases import shorten

ROWS, NAME, TEXT, OPENED = 60, 80, 600, 5
"""Rows of a table, characters of a name and of a text, and models that are unfolded from the beginning."""
TONES = {
    RecordChange.STRUCTURE: BAD,
    RecordChange.BEYOND: BAD,
    RecordChange.UNKNOWN: OPEN,
    RecordChange.WITHIN: QUIET,
    RecordChange.SAME: GOOD,
    RecordChange.NEW: OPEN,
    RecordChange.GONE: BAD,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffView:
    """One model: ``facts`` are (label, text), ``between`` (label, old, new), ``rows`` the texts of the table."""

    name: str
    anchor: str
    change: str
    tone: str
    words: str
    facts: tuple[tuple[str, str], ...]
    between: tuple[tuple[str, str, str], ...]
    structure: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int
    figures: tuple[Figure, ...]


def render_review_html(review: Review) -> str:
    """Return the page, ending with a newline; identical diffs give identical bytes."""
    style, budget = own("style.css"), Budget()
    diffs = tuple(_view(found, budget) for found in review.diffs)
    views = {
        "style": style,
        "style_hash": digest(style),
        "counts": counts_words(review.diffs) or "nothing differs",
        "tone": _worst_tone(review),
        "old": prose(review.old),
        "new": prose(review.new),
        "heads": HEADS,
        "opened": OPENED,
        "diffs": diffs,
        "refused": budget.refused,
    }
    return page_of("golden.html", views)


def _view(found: RecordDiff, budget: Budget) -> DiffView:
    comparison = found.comparison
    rows = rows_of(comparison) if comparison is not None else ()
    structure = structure_of(comparison) if comparison is not None else ()
    return DiffView(
        name=shorten(visible(found.model), NAME),
        anchor=anchor(found.model),
        change=found.change.value,
        tone=TONES[found.change],
        words=prose(found.words),
        facts=tuple((label, shorten(prose(text), TEXT)) for label, text in sides_of(found)),
        between=tuple(
            (name, shorten(prose(old), TEXT), shorten(prose(new), TEXT)) for name, (old, new) in found.facts.items()
        ),
        structure=tuple(shorten(prose(text), TEXT) for text in structure[:ROWS]),
        rows=tuple(tuple(visible(text) for text in row.cells) for row in rows[:ROWS]),
        left_out=max(0, len(rows) - ROWS) + max(0, len(structure) - ROWS),
        figures=budget.fit(_charts(found.model, comparison)) if comparison is not None else (),
    )


def _charts(model: str, comparison: OutputComparison) -> Iterator[Figure]:
    """Yield the charts of a comparison, whose scenario is none of a run's and says nothing here."""
    for chart in model_figures(ModelReport(model=model, comparisons=(comparison,)), {}):
        yield replace(chart, title=chart.title.removesuffix(f", {comparison.scenario}"))


def _worst_tone(review: Review) -> str:
    tones = [TONES[found.change] for found in review.diffs]
    return next((tone for tone in (BAD, OPEN) if tone in tones), GOOD)
