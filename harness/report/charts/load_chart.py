"""Latency over rate of both releases of a server."""

import itertools
import math
from collections.abc import Sequence

from harness.core.load import CurvePoint, LoadMeasurement
from harness.core.measurement import NEW, OLD
from harness.core.text import amount
from harness.report.charts.svg import Scale, drawing, element, hint, line, lines, text, ticks
from harness.report.document import OPEN, QUIET

TONES = {OLD: QUIET, NEW: OPEN}
_WIDTH, _HEIGHT = 640, 224
_LEFT, _RIGHT, _TOP, _BASE = 52, 12, 12, 190


def load_chart(load: LoadMeasurement) -> str:
    """Return the 99th percentile at each rate, on a logarithmic axis of time; empty where no rates were swept."""
    points = [point for point in load.curve if point.arm in (OLD, NEW)]
    times = [point.p99_s for point in points if math.isfinite(point.p99_s)]
    if not times:
        return ""
    slo = [load.plan.slo_s] if load.plan.slo_s is not None else []
    low, high = math.floor(math.log10(min(times + slo))), math.ceil(math.log10(max(times + slo)))
    across = Scale(0, max(point.rate for point in points), _LEFT, _WIDTH - _RIGHT)
    up = Scale(low, max(high, low + 1), _BASE, _TOP)
    decades = range(low, max(high, low + 1) + 1)
    parts = [lines([(_LEFT, up(at), _WIDTH - _RIGHT, up(at)) for at in decades], "grid")]
    parts += [text(amount(10.0**at, "s"), _LEFT - 6, up(at) + 4, "end") for at in decades]
    rates = ticks(0, across.high)
    parts += [text(f"{rate:,.0f}", across(rate), _BASE + 14, "middle") for rate in rates]
    parts += [text("requests a second", _WIDTH - _RIGHT, _BASE + 28, "end", "soft")]
    parts += [line(_LEFT, up(math.log10(limit)), _WIDTH - _RIGHT, up(math.log10(limit)), "limit") for limit in slo]
    for arm in (OLD, NEW):
        parts += _series([point for point in points if point.arm == arm], across, up)
    ends = [f"{arm} {_words(max((p for p in points if p.arm == arm), key=_rate))}" for arm in (OLD, NEW)]
    return drawing(f"99th percentile over rate: {'; '.join(ends)}", _WIDTH, _HEIGHT, *parts)


def _series(points: Sequence[CurvePoint], across: Scale, up: Scale) -> list[str]:
    """Return a dot per rate, joined where both neighbours have a time; what has none lies at the top."""
    places = [(across(point.rate), up(math.log10(point.p99_s)), point) for point in sorted(points, key=_rate)]
    joined = [(x1, y1, x2, y2) for (x1, y1, _), (x2, y2, _) in itertools.pairwise(places)]
    arm, dot = points[0].arm, f"dot {TONES[points[0].arm]}"
    dots = [element("circle", hint(f"{arm}, {_words(point)}"), cx=x, cy=y, r=3.6, class_=dot) for x, y, point in places]
    return [lines(joined, "axis"), *dots]


def _rate(point: CurvePoint) -> float:
    return point.rate


def _words(point: CurvePoint) -> str:
    time = amount(point.p99_s, "s") if math.isfinite(point.p99_s) else "no answer to 1 in 100"
    return f"{time} at {point.rate:,.0f} a second"
