"""Charts about numbers: the error of every call and tensor, and where the errors of one tensor lie."""

import math
from collections.abc import Sequence

from harness.core.comparison import ERROR_EDGES, CallComparison, OutputComparison, TensorMetrics
from harness.report.charts.svg import NARROW, Scale, drawing, element, hint, line, lines, short, text

SERIES = 5
"""Tensors with a line of their own, the worst ones."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 12, 34
_HEIGHT = 190
_EQUAL, _MOVED = -11.0, 1.5  # below and above all decades: bits are equal; NaN where a number was, or the reverse
_LOWEST, _HIGHEST = -9.0, 0.0


def worth_drawing(comparison: OutputComparison) -> bool:
    """Whether any tensor of any call differs at all."""
    return any(not tensor.bit_equal for call in comparison.calls for tensor in call.tensors)


def error_chart(comparison: OutputComparison, paths: Sequence[str]) -> str:
    """Return the largest error over the tensor's largest value, in decades, for every call; a line per path."""
    calls = comparison.calls
    across = Scale(0, max(1, len(calls) - 1), _LEFT + 10, NARROW - _RIGHT - 6)
    up = Scale(_EQUAL, _MOVED, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_grid(up), *_call_labels(calls, across), *_tolerance(calls, up)]
    for number, path in enumerate(paths):
        parts.append(_series(path, number, calls, across, up))
    label = f"largest error of {len(paths)} outputs over {len(calls)} calls, in decades of the largest value"
    return drawing(label, NARROW, _HEIGHT, *parts)


def worst_paths(comparison: OutputComparison) -> list[str]:
    """Return the paths of the tensors that have a line, the worst first, in the order of their colours."""
    worst: dict[str, float] = {}
    for call in comparison.calls:
        for tensor in call.tensors:
            worst[tensor.path] = max(worst.get(tensor.path, _EQUAL), decade(tensor))
    ranked = sorted(worst, key=lambda path: (-worst[path], path))
    return [path for path in ranked if worst[path] > _EQUAL][:SERIES] or ranked[:1]


def decade(tensor: TensorMetrics) -> float:
    """Return log10 of the largest error over the largest expected value, on the scale of the chart."""
    if tensor.nan_mismatches or tensor.inf_mismatches:
        return _MOVED
    if tensor.bit_equal or tensor.max_abs == 0:
        return _EQUAL
    if tensor.scale <= 0 or not math.isfinite(tensor.max_abs):
        return _HIGHEST
    return min(max(math.log10(tensor.max_abs / tensor.scale), _LOWEST), _HIGHEST)


def _grid(up: Scale) -> list[str]:
    decades = ((_MOVED, "NaN"), (0, "1"), (-3, "1e-3"), (-6, "1e-6"), (-9, "1e-9"), (_EQUAL, "equal"))
    drawn = lines([(_LEFT, up(value), NARROW - _RIGHT, up(value)) for value, _ in decades], "grid")
    return [drawn, *(text(words, _LEFT - 6, up(value) + 4, "end") for value, words in decades)]


def _call_labels(calls: Sequence[CallComparison], across: Scale) -> list[str]:
    """Return the numbers of the calls, as many as there is room for, and below them the input sets."""
    parts = []
    every = -(-len(calls) // 14)
    begun: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        begun.setdefault(call.input_set, []).append(index)
        if index % every == 0:
            parts.append(text(str(call.call), across(index), _HEIGHT - 18, "middle"))
    room = max(4, 44 // max(1, len(begun)))
    for name, indices in begun.items():
        middle = (across(indices[0]) + across(indices[-1])) / 2
        shown = name if len(name) <= room else f"{name[: room - 1]}…"
        parts.append(text(shown, middle, _HEIGHT - 4, "middle", "soft"))
        if indices[0]:
            x = (across(indices[0] - 1) + across(indices[0])) / 2
            parts.append(line(x, _TOP, x, _HEIGHT - 14, "grid"))
    return parts


def _tolerance(calls: Sequence[CallComparison], up: Scale) -> list[str]:
    factors = {
        tensor.tolerance_abs / tensor.scale
        for call in calls
        for tensor in call.tensors
        if tensor.scale > 0 and tensor.tolerance_abs > 0
    }
    return [
        line(_LEFT, up(math.log10(factor)), NARROW - _RIGHT, up(math.log10(factor)), "limit")
        for factor in sorted(factors)[-2:]
    ]


def _series(path: str, number: int, calls: Sequence[CallComparison], across: Scale, up: Scale) -> str:
    places, marks = [], []
    for index, call in enumerate(calls):
        tensor = next((item for item in call.tensors if item.path == path), None)
        if tensor is None and (not call.equal or any(item.path == path for item in call.tree)):
            continue
        x, y = across(index), up(decade(tensor) if tensor is not None else _EQUAL)
        places.append(f"{short(x)} {short(y)}")
        if tensor is not None and not tensor.bit_equal:
            said = hint(f"{path}, {call.input_set} call {call.call}: {_words(tensor)}")
            marks.append(element("circle", said, cx=x, cy=y, r=3.2))
    joined = element("path", d=f"M{'L'.join(places)}", class_="line") if len(places) > 1 else ""
    return element("g", joined, *marks, class_=f"series s{number}")


def _words(tensor: TensorMetrics) -> str:
    moved = tensor.nan_mismatches + tensor.inf_mismatches
    return (
        f"NaN or Inf moved in {moved}" if moved else f"max error {tensor.max_abs:.3g}, largest value {tensor.scale:.3g}"
    )


def histogram_chart(tensor: TensorMetrics) -> str:
    """Return how many elements have an error of each decade of the largest value; heights are logarithms.

    What lies beyond the tolerance has another colour.
    """
    counts = tensor.error_histogram
    height, base = 150, 150 - 34
    across = Scale(0, len(counts), 6, NARROW - 6)
    tall = Scale(0, math.log10(1 + max(counts)), 0, base - 22)
    limit = tensor.tolerance_abs / tensor.scale if tensor.scale > 0 else 0.0
    parts = [line(6, base, NARROW - 6, base, "axis")]
    width = across(1) - across(0)
    for index, count in enumerate(counts):
        x = across(index)
        if count:
            top = base - max(2.0, tall(math.log10(1 + count)))
            over = index > 0 and ERROR_EDGES[index - 1] >= limit * (1 - 1e-9)
            bar = element("rect", x=x + 2, y=top, width=width - 4, height=base - top, class_="bad" if over else "new")
            parts += [bar, text(compact(count), x + width / 2, top - 4, "middle")]
        if index == 0 or index % 2:
            continue
        parts.append(text(f"{ERROR_EDGES[index - 1]:.0e}".replace("e-0", "e-"), x, base + 14, "middle"))
    parts.append(text("equal", across(0) + width / 2, base + 14, "middle"))
    parts.append(text("error over the largest value", NARROW / 2, height - 4, "middle", "soft"))
    return drawing(f"histogram of errors of {tensor.path}", NARROW, height, *parts)


def compact(count: int) -> str:
    """Return a count in at most four characters."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= factor:
            value = count / factor
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(count)
