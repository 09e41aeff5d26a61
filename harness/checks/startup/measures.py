"""Measures of one process's initialization: overlap of loads, time until ready, growth of memory."""

from collections.abc import Iterable, Sequence

from harness.core.probe import Span, model_of


def overlap(spans: Iterable[Span], phase: str) -> float | None:
    """Return the CPU time of all threads in ``phase`` over the wall time in which any of them was in it.

    Above 1 the phase truly ran in several threads at once. Spans alone prove nothing: threads that queue for a lock
    have long ones too. None if the phase does not occur or took no time.
    """
    chosen = [span for span in spans if span.phase == phase and span.finished]
    wall_ns = _covered_ns(chosen)
    return sum(span.cpu_ns for span in chosen) / wall_ns if wall_ns else None


def _covered_ns(spans: Sequence[Span]) -> int:
    """Length of the union of the spans."""
    covered, reached = 0, 0
    for span in sorted(spans, key=lambda item: item.begin_ns):
        covered += max(0, span.end_ns - max(span.begin_ns, reached))
        reached = max(reached, span.end_ns)
    return covered


def wall_s(spans: Iterable[Span], phases: Sequence[str]) -> float | None:
    """Return the seconds from the first begin to the last end of ``phases``; None if none occurs."""
    chosen = [span for span in spans if span.phase in phases]
    if not chosen:
        return None
    return (max(span.end_ns for span in chosen) - min(span.begin_ns for span in chosen)) * 1e-9


def busy_s(spans: Iterable[Span], phases: Sequence[str], model: str) -> float:
    return sum(
        (span.end_ns - span.begin_ns) * 1e-9
        for span in spans
        if span.phase in phases and span.finished and model_of(span.model) == model
    )


def growth_bytes(readings: Sequence[int]) -> float | None:
    """Return memory growth in bytes per cycle (least squares, without the cache-filling first one), None of too few."""
    later = readings[1:]
    if len(later) < 2:
        return None
    middle = (len(later) - 1) / 2
    mean = sum(later) / len(later)
    above = sum((index - middle) * (value - mean) for index, value in enumerate(later))
    return above / sum((index - middle) ** 2 for index in range(len(later)))
