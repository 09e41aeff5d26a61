"""The steady latency of one model, new over old, pair by pair."""

import math
import statistics
from collections.abc import Iterator, Sequence

from harness.checks.latency.statistics import against, log_ratio, logarithm
from harness.core.measurement import (
    CONTROL,
    NEW,
    OLD,
    LatencyMeasurement,
    PairSample,
    RatioEstimate,
    limit_words,
    signed_percent,
)
from harness.report.charts.svg import NARROW, Scale, drawing, element, hint, line, lines, text, ticks
from harness.report.document import Figure

_LEFT, _RIGHT = 64, 10
_ROW = 16
_ROUNDS_SHOWN = 12
_WIDEST = math.log(64)
_RANGE = 0.06


def latency_figure(latency: LatencyMeasurement, limit: float) -> Figure:
    """Return the chart with its caption; ``limit``: ratio from which the steady call counts as slower."""
    return Figure(
        title="Steady latency, new over old",
        svg=latency_chart(latency, limit),
        legend=(
            ("new", "each pair of processes"),
            ("control", "a second old process over the first"),
            ("limit", f"limit {limit_words(limit)}"),
        ),
    )


def latency_chart(latency: LatencyMeasurement, limit: float) -> str:
    """Return new/old of each pair of processes with the range over its turns, the estimate below; empty without any."""
    rounds = list(_rounds(latency.samples))[:_ROUNDS_SHOWN]
    if not rounds or latency.shown is None:
        return ""
    low, high = _extent(rounds, latency, limit)
    across = Scale(low, high, _LEFT, NARROW - _RIGHT)
    base = 10 + _ROW * (len(rounds) + 2)
    parts = [*_axis(across, base, limit)]
    for index, (number, centre, least, most, control) in enumerate(rounds):
        y = 14 + _ROW * index
        said = f"{_percent(centre)}, turns {_percent(least)} to {_percent(most)}"
        drawn = [text(f"pair {number}", _LEFT - 6, y + 4, "end"), line(across(least), y, across(most), y, "range")]
        if control is not None:
            said += f"; old against old {_percent(control)}"
            drawn.append(element("circle", cx=across(control), cy=y, r=3, class_="control"))
        drawn.append(element("circle", cx=across(centre), cy=y, r=3.6, class_="new"))
        parts.append(element("g", hint(said), *drawn))
    y = 14 + _ROW * len(rounds)
    parts += _estimate("new/old", latency.shown, across, y + 4, "diamond")
    if latency.same_against_same is not None:
        parts += _estimate("old/old", latency.same_against_same, across, y + 4 + _ROW, "diamond hollow")
    label = f"steady latency of {latency.model}, new over old: {latency.shown.words}"
    return drawing(label, NARROW, base + 26, *parts)


Round = tuple[int, float, float, float, float | None]


def _rounds(samples: Sequence[PairSample]) -> Iterator[Round]:
    """Yield number, median, least and most over turns, and control/old, of each pair of processes, as logarithms."""
    for sample in samples:
        turns: dict[int, dict[str, float]] = {}
        for block in sample.blocks:
            turns.setdefault(block.turn, {})[block.arm] = logarithm(block.p50_s)
        ratios = [ratio for turn in turns.values() if (ratio := against(turn, NEW, (OLD, CONTROL))) is not None]
        if ratios:
            yield sample.round, statistics.median(ratios), min(ratios), max(ratios), log_ratio(sample, CONTROL, (OLD,))


def _extent(rounds: Sequence[Round], latency: LatencyMeasurement, limit: float) -> tuple[float, float]:
    """Return the ends of the axis: medians, what most turns need, the limit, and intervals where they are finite."""
    values = [0.0, math.log(limit)]
    for _, centre, least, most, control in rounds:
        values += [centre, max(least, centre - _RANGE), min(most, centre + _RANGE), control or 0.0]
    estimates = [item for item in (latency.shown, latency.same_against_same) if item is not None]
    values += [math.log(end) for item in estimates for end in (item.low, item.high) if 0 < end < math.inf]
    margin = 0.06 * (max(values) - min(values)) + 0.004
    return max(min(values) - margin, -_WIDEST), min(max(values) + margin, _WIDEST)


def _axis(across: Scale, base: float, limit: float) -> list[str]:
    low, high = math.exp(across.low), math.exp(across.high)
    places = [(across(math.log(ratio)), ratio) for ratio in ticks(low, high, 4) if ratio > 0]
    parts = [lines([(x, 6, x, base) for x, _ in places], "grid")]
    parts += [text(f"{_change(ratio)} %", x, base + 14, "middle") for x, ratio in places]
    here = across(0.0)
    parts.append(line(here, 6, here, base, "axis"))
    x = across(math.log(limit))
    return [*parts, element("path", hint(f"limit {_percent(math.log(limit))}"), d=f"M{x:.1f} 6V{base}", class_="limit")]


def _change(ratio: float) -> str:
    """Return a round ratio as a signed change without needless digits."""
    return f"{(ratio - 1) * 100:+.3g}" if abs(ratio - 1) > 1e-9 else "0"


def _estimate(name: str, estimate: RatioEstimate, across: Scale, y: float, class_: str) -> list[str]:
    x = across(math.log(estimate.ratio)) if estimate.ratio > 0 else across.start
    low = across(math.log(estimate.low)) if estimate.low > 0 else across.start
    high = across(math.log(estimate.high)) if estimate.high < math.inf else across.end
    return [
        text(name, across.start - 6, y + 4, "end", "strong"),
        line(low, y, high, y, "interval"),
        element("path", hint(estimate.words), d=f"M{x - 5:.1f} {y}l5 -4.5l5 4.5l-5 4.5z", class_=class_),
    ]


def _percent(log: float) -> str:
    return f"{signed_percent(math.exp(log))} %"
