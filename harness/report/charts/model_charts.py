"""The charts of one model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.measurement import LatencyMeasurement, limit_words
from harness.core.plan import LatencyBudget
from harness.core.quantities import STEADY
from harness.core.report import ModelReport
from harness.core.text import visible
from harness.report.charts import error_charts, time_charts
from harness.report.document import Figure
from harness.report.words.phrases import scenario_words, shorten


def model_figures(model: ModelReport, limits: Mapping[str, float]) -> Iterator[Figure]:
    """Yield the charts of one model, numbers first; a chart without anything to show is left out.

    Stages with the same numbers share their charts.
    """
    stages: dict[tuple[Figure, ...], list[str]] = {}
    for comparison in model.comparisons:
        if error_charts.worth_drawing(comparison):
            stages.setdefault(tuple(_numbers(comparison)), []).append(visible(scenario_words(comparison.scenario)))
    for figures, names in stages.items():
        yield from (replace(figure, title=f"{figure.title}, {', '.join(names)}") for figure in figures)
    if model.latency is not None:
        yield from _times(model.latency, limits)


def _numbers(comparison: OutputComparison) -> Iterator[Figure]:
    paths = error_charts.worst_paths(comparison)
    shown = {tensor.path for call in comparison.calls for tensor in call.tensors if not tensor.bit_equal}
    rest = len(shown) - len(paths)
    svg = error_charts.error_chart(comparison, paths)
    legend = [(f"s{number}", shorten(visible(path), 40)) for number, path in enumerate(paths)]
    yield Figure(
        title="Error of every call",
        svg=svg,
        note=f"{rest} more outputs differ less." if rest > 0 else "",
        legend=(*legend, *([("limit", "tolerance")] if 'class="limit"' in svg else [])),
    )
    worst = _worst(comparison)
    if worst is not None:
        where, tensor = worst
        svg = error_charts.histogram_chart(tensor)
        tones = (("new", "within the tolerance"), ("bad", "beyond it"))
        yield Figure(
            title="Where the errors lie",
            svg=svg,
            note=f"{shorten(visible(where), 80)}: {tensor.elements} elements",
            legend=tuple((name, words) for name, words in tones if f'class="{name}"' in svg),
        )


def _worst(comparison: OutputComparison) -> tuple[str, TensorMetrics] | None:
    """Return the tensor with the largest error that has a histogram, and its place; the first of several."""
    found = [
        (f"{call.input_set} call {call.call} {tensor.path}", tensor)
        for call in comparison.calls
        for tensor in call.tensors
        if sum(tensor.error_histogram[1:])
    ]
    return max(found, key=lambda item: error_charts.decade(item[1]), default=None)


def _times(latency: LatencyMeasurement, limits: Mapping[str, float]) -> Iterator[Figure]:
    limit = limits.get(STEADY, 1 + LatencyBudget().limit)
    yield Figure(
        title="Steady latency, new over old",
        svg=time_charts.latency_chart(latency, limit),
        legend=(
            ("new", "each pair of processes"),
            ("control", "a second old process over the first"),
            ("limit", f"limit {limit_words(limit)}"),
        ),
    )
