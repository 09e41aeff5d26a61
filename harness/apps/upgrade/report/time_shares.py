"""Where the wall time went, when several things happen at once."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

IDLE = "harness"
NS_PER_S = 1e9

CategorySpan: TypeAlias = tuple[str, int, int]  # category, begin_ns, end_ns


def time_shares(spans: Sequence[CategorySpan], begin_ns: int, end_ns: int) -> dict[str, float]:
    """Return seconds of wall time per category; they sum to the wall.

    A sweep line: each instant between ``begin_ns`` and ``end_ns`` is split equally among the spans active then (two
    spans of one category count twice); an instant without any span belongs to ``"harness"``. Spans are clipped to the
    wall. Costs O(n log n + n x categories).

    Args:
        spans: (category, begin_ns, end_ns) on one monotonic clock, in any order.
        begin_ns, end_ns: of the wall.

    Returns:
        Categories in alphabetical order, only those with time; empty for a wall of no length.

    Raises:
        ValueError: a span, or the wall, ends before it begins.
    """
    if end_ns < begin_ns:
        raise ValueError(f"the wall ends before it begins: {begin_ns} to {end_ns}")
    shares: dict[str, float] = {}
    active: Counter[str] = Counter()
    running, reached = 0, begin_ns
    for instant, change, category in [*_edges(spans, begin_ns, end_ns), (end_ns, 0, IDLE)]:
        length = instant - reached
        if length and running:
            for name, count in active.items():
                shares[name] = shares.get(name, 0.0) + length * count / running
        elif length:
            shares[IDLE] = shares.get(IDLE, 0.0) + length
        reached = instant
        running += change
        active[category] += change
        if active[category] == 0:
            del active[category]
    return {name: shares[name] / NS_PER_S for name in sorted(shares)}


def _edges(spans: Sequence[CategorySpan], begin_ns: int, end_ns: int) -> list[tuple[int, int, str]]:
    """Return (instant, +1 or -1, category) of every span that touches the wall, sorted."""
    edges = []
    for category, span_begin_ns, span_end_ns in spans:
        if span_end_ns < span_begin_ns:
            raise ValueError(f"a span of {category!r} ends before it begins: {span_begin_ns} to {span_end_ns}")
        first, last = max(span_begin_ns, begin_ns), min(span_end_ns, end_ns)
        if first < last:
            edges += [(first, 1, category), (last, -1, category)]
    return sorted(edges)
