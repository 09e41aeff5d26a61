"""What has changed since another run, as the page lists it."""

from dataclasses import dataclass

from harness.domain.report import BaselineReport, CellChange
from harness.domain.text import prose, visible
from harness.report.page.shapes import TableLine
from harness.report.page.tones import CHANGE_TONES
from harness.report.words.phrases import scenario_words, shorten

CHANGES_SHOWN = 200
_TEXT_LIMIT = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineView:
    """The other run, what else is not alike in both, and the cells that have changed; ``left_out`` of them are not."""

    title: str
    differences: tuple[str, ...]
    artifacts: str
    changes: tuple[TableLine, ...]
    left_out: int


def baseline_view(found: BaselineReport) -> BaselineView:
    """Return the section about the other run."""
    others = ", ".join(found.other_artifacts)
    return BaselineView(
        title=prose(f"{found.run}, started {found.started_at}: {found.decision.value}"),
        differences=tuple(shorten(prose(text), _TEXT_LIMIT) for text in found.differences),
        artifacts=shorten(prose(others), _TEXT_LIMIT),
        changes=tuple(_line(change) for change in found.changes[:CHANGES_SHOWN]),
        left_out=max(0, len(found.changes) - CHANGES_SHOWN),
    )


def _line(item: CellChange) -> TableLine:
    was, now = (status.value if status is not None else "not there" for status in (item.was, item.now))
    texts = (
        shorten(visible(item.model), 80),
        visible(scenario_words(item.scenario)),
        was,
        now,
        shorten(prose(item.why), _TEXT_LIMIT),
    )
    return TableLine(texts=texts, status=item.change.words, tone=CHANGE_TONES[item.change])
