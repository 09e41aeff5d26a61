"""The report as CSV, for a spreadsheet or a data frame: one row per cell, of a fleet one per artifact.

``docs/formats/cells.md`` and ``docs/formats/fleet.md`` document them.
"""

import csv
import io
from collections.abc import Sequence

from harness.core.fleet import FleetReport
from harness.core.measurement import LatencyMeasurement
from harness.core.report import RunReport
from harness.core.text import prose, visible
from harness.core.verdict import CellVerdict
from harness.report.documents.fleet import row_words, urgency, waves_of
from harness.report.excess import ModelExcess, OverLimit, by_excess
from harness.report.words.phrases import phrase, shorten
from harness.verdict.commands import rerun_command
from harness.verdict.counting import cell_word

COLUMNS = (
    *("cell", "model", "group", "scenario", "status", "decides", "findings", "causes", "over_limit", "what"),
    *("old_s", "new_s", "ratio", "ratio_low", "ratio_high", "duration_s", "rerun", "owner"),
)
_TEXT_LIMIT = 400


def render_csv(report: RunReport) -> str:
    """Return a head and one line per cell, the models furthest over a limit first."""
    behind: dict[str, list[str]] = {}
    for cause in report.causes:
        for name in cause.cells:
            behind.setdefault(name, []).append(cause.id)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for item in by_excess(report):
        for cell in item.row.cells:
            writer.writerow(_row(report, item, cell, behind.get(cell.cell, ())))
    return text.getvalue()


def _row(report: RunReport, item: ModelExcess, cell: CellVerdict, causes: Sequence[str]) -> tuple[str, ...]:
    facts = item.row.facts
    over = next((one for one in item.over if one.cell == cell.cell), None)
    texts = (
        *(cell.cell, cell.model, facts.group if facts is not None else "", cell.scenario, cell_word(cell)),
        *("yes" if cell.decides else "no", " ".join(cell.kinds), " ".join(causes)),
    )
    return (
        *map(_inert, texts),
        _number(over.factor if over is not None else None),
        _inert(shorten(prose(_what(cell, over)), _TEXT_LIMIT)),
        *_times(facts.latency if facts is not None and cell.scenario == "latency" else None),
        _number(report.durations_s.get(cell.cell)),
        _inert(rerun_command(report, cell.cell)),
        _inert(facts.owner if facts is not None else ""),
    )


def _what(cell: CellVerdict, over: OverLimit | None) -> str:
    return over.words if over is not None else phrase(cell.findings[0]) if cell.findings else cell.note


def _times(latency: LatencyMeasurement | None) -> tuple[str, ...]:
    """Return the median call in both releases, and the steady latency with its interval."""
    steady = latency.shown if latency is not None else None
    times = (latency.call_s if latency is not None else None) or (None, None)
    bounds = (steady.ratio, steady.low, steady.high) if steady is not None else (None, None, None)
    return tuple(_number(value) for value in (*times, *bounds))


OWNERS_COLUMNS = ("owner", "artifact", "tier", "path", "status", "wave", "upgrade", "cause", "reason", "program")


def render_owners_csv(report: FleetReport) -> str:
    """Return a head and one line per artifact of a fleet, by owner, what needs somebody first."""
    wave_of = waves_of(report)
    place = urgency(report)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(OWNERS_COLUMNS)
    for row in sorted(report.rows, key=lambda row: (row.owner, place.get(row.name, 0), row.name)):
        texts = (
            row.owner,
            row.name,
            row.tier,
            row.path,
            row.standing,
            *wave_of[row.name],
            row.cause,
            row_words(row),
            row.program,
        )
        writer.writerow(_inert(shorten(prose(one), _TEXT_LIMIT)) for one in texts)
    return text.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _inert(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: one that could be begins with an apostrophe."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
