"""A chart over all models: the interval of each beside the limit."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from harness.core.measurement import signed_percent
from harness.core.outcome import Status
from harness.core.text import counted
from harness.report.charts.svg import Scale, drawing, element, hint, line, lines, short, text, ticks
from harness.report.document import BAD, GOOD, OPEN, QUIET, Figure
from harness.report.excess import Steady
from harness.report.text.table import timed_of
from harness.report.words.phrases import percent

WIDE = 900
KINDS = {BAD: "beyond the limit", OPEN: "undecided", QUIET: "within the limit", GOOD: "clearly faster"}
"""Tone -> whether a model is slower, faster or neither."""
_LEFT, _RIGHT = 52, 10
_LIMITS_SHOWN = 8
"""The axis reaches to so many times the limit, unless one model in ten lies beyond; what does is drawn at its end."""


def fleet_figures(timed: Sequence[Steady], models: int) -> Iterator[Figure]:
    """Yield the intervals of the timed models, the slowest first, where there are several; ``models``: of how many."""
    if len(timed) > 1:
        spread = Counter(tone_of(item) for item in timed)
        legend = tuple((tone, f"{spread[tone]} {words}") for tone, words in KINDS.items() if spread[tone])
        limit = (("limit", f"limit {signed_percent(timed[0].limit)} %"),)
        yield Figure(
            title=f"Steady latency, new over old, slowest first: {timed_of(len(timed), models)}",
            svg=interval_chart(timed),
            legend=(*legend, *limit),
        )


def tone_of(item: Steady) -> str:
    """Return the tone of a steady latency."""
    if item.status in (Status.FAIL, Status.XPASS):
        return BAD
    if item.status is Status.INCONCLUSIVE:
        return OPEN
    return GOOD if item.faster and item.status is Status.PASS else QUIET


def _said(item: Steady) -> str:
    return f"{item.model}: {item.ratio.words}, {KINDS[tone_of(item)]}"


def _axis(timed: Sequence[Steady]) -> tuple[float, float]:
    """Return the ends of an axis of changes, as logarithms: most models are told apart, and the limit is on it."""
    changes = sorted(math.log(item.ratio.ratio) for item in timed if item.ratio.ratio > 0)
    limit = max(math.log(item.limit) for item in timed)
    tenth = len(changes) // 10
    high = max(2 * limit, min(changes[-1], max(_LIMITS_SHOWN * limit, changes[-1 - tenth])))
    low = min(-2 * limit, max(changes[0], min(-_LIMITS_SHOWN * limit, changes[tenth])))
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _changes(low: float, high: float) -> list[tuple[float, str]]:
    """Return (logarithm, words) of round changes on an axis."""
    found = [ratio for ratio in ticks(math.exp(low), math.exp(high), 6) if ratio > 0]
    return [(math.log(ratio), f"{(ratio - 1) * 100:+.3g} %" if abs(ratio - 1) > 1e-9 else "0") for ratio in found]


def interval_chart(timed: Sequence[Steady]) -> str:
    """Return the interval of each model, coloured by its verdict, with the limit."""
    height, base = 250, 238
    low, high = _axis(timed)
    up = Scale(low, high, base, 10)
    across = Scale(-0.5, len(timed) - 0.5, _LEFT, WIDE - _RIGHT)
    marks = _changes(low, high)
    parts = [lines([(_LEFT, up(value), WIDE - _RIGHT, up(value)) for value, _ in marks], "grid")]
    parts += [text(words, _LEFT - 6, up(value) + 4, "end") for value, words in marks]
    parts.append(line(_LEFT, up(0), WIDE - _RIGHT, up(0), "axis"))
    radius = max(1.2, min(3.6, 0.32 * (across(1) - across(0))))
    for tone in KINDS:
        here = [(across(at), item) for at, item in enumerate(timed) if tone_of(item) == tone]
        spans = [(x, up(_log(item.ratio.low)), x, up(_log(item.ratio.high))) for x, item in here]
        if spans:
            parts.append(lines(spans, f"span {tone}"))
        parts += [_dot(x, item, up, radius) for x, item in here]
    for limit in sorted({item.limit for item in timed})[:3]:
        parts.append(line(_LEFT, up(math.log(limit)), WIDE - _RIGHT, up(math.log(limit)), "limit"))
    return drawing(_label(timed), WIDE, height, *parts)


def _dot(x: float, item: Steady, up: Scale, radius: float) -> str:
    """Return the mark of a model: a dot, at the end of the axis a triangle that points to where it lies."""
    value = _log(item.ratio.ratio)
    y = up(value)
    class_ = f"dot {tone_of(item)}"
    said = hint(_said(item))
    if up.low <= value <= up.high:
        return element("circle", said, cx=x, cy=y, r=radius, class_=class_)
    tip = -6 if value > up.high else 6
    return element("path", said, d=f"M{short(x - 4)} {short(y - tip / 2)}h8l-4 {tip}z", class_=class_)


def _log(ratio: float) -> float:
    """Return the logarithm of a bound, which may be 0 or infinite."""
    return math.log(ratio) if 0 < ratio < math.inf else math.copysign(99.0, ratio - 1)


def _label(timed: Sequence[Steady]) -> str:
    spread = Counter(tone_of(item) for item in timed)
    counts = ", ".join(f"{spread[tone]} {words}" for tone, words in KINDS.items() if spread[tone])
    first, last = timed[0], timed[-1]
    middle = percent(statistics.median(item.ratio.ratio for item in timed))
    return (
        f"steady latency of {counted(len(timed), 'model')}, new over old: {counts}; the middle one {middle}, "
        f"from {first.model} {first.ratio.centre} to {last.model} {last.ratio.centre}"
    )
