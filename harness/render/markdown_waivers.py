"""The waivers of a run as a table in markdown."""

from harness.domain.report import RunReport
from harness.domain.waiver import WaiverState, WaiverUse
from harness.policy.waiver_uses import days_words
from harness.policy.waivers import range_words, size_words
from harness.policy.words import joined
from harness.render.markdown_text import CELL_LIMIT, escape, table_line
from harness.render.waivers import bound_words, place_words

# What needs somebody first. A waiver that nothing could need in this run is counted only.
ORDER = (
    WaiverState.EXCEEDED,
    WaiverState.EXPIRED,
    WaiverState.UNUSED,
    WaiverState.OTHER_PAIR,
    WaiverState.USED,
)
COLUMNS = ("model", "finding", "where", "covers", "seen", "until", "owner", "reason", "state")
_ROWS_SHOWN = 200


def waivers_section(report: RunReport) -> list[str]:
    """Return a line per waiver that this run has something to say of; nothing where there is none."""
    told = [use for use in report.waivers if use.state in ORDER]
    told.sort(key=lambda use: ORDER.index(use.state))
    if not told:
        return []
    lines = [_line(use) for use in told[:_ROWS_SHOWN]]
    rest = [f"{len(told) - _ROWS_SHOWN} more are in report.json."] if len(told) > _ROWS_SHOWN else []
    quiet = len(report.waivers) - len(told)
    rest += [f"Of {quiet} more nothing was judged that could need them."] if quiet else []
    table = ["", "## Waivers", "", table_line(COLUMNS), table_line(("---",) * len(COLUMNS)), *lines]
    return [*table, *(["", *rest] if rest else [])]


def _line(use: WaiverUse) -> str:
    waiver = use.waiver
    seen = size_words(waiver.kind, waiver.bound, use.size)[1] if use.size is not None else ""
    texts = (
        waiver.model,
        waiver.kind,
        place_words(waiver),
        joined(bound_words(waiver), f"torch {range_words(waiver)}"),
        seen,
        f"{waiver.expires} ({days_words(use.days_left)})",
        waiver.owner,
        " ".join(part for part in (waiver.reason, waiver.issue) if part),
        "; ".join((use.state.value, *use.broad)),
    )
    return table_line([escape(text, CELL_LIMIT) for text in texts])
