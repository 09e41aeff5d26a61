"""The outputs of one model that differ, each at its worst, as the texts of a table."""

from collections.abc import Iterator, Sequence

from harness.domain.comparison import OutputComparison, TensorMetrics
from harness.domain.text import prose, visible
from harness.report.words.phrases import scenario_words, shorten

TENSORS_SHOWN = 6
_NAME_LIMIT, _VALUES_LIMIT = 80, 60
Texts = tuple[str, ...]


def differing(comparisons: Sequence[OutputComparison]) -> tuple[Texts, ...]:
    """Return output, stages, place, dtype and numbers of those that differ most; stages that are equal share a row."""
    worst: dict[tuple[str, str], tuple[float, Texts]] = {}
    for scenario, rank, texts in _tensors(comparisons):
        key = (scenario, texts[0])
        if key not in worst or rank > worst[key][0]:
            worst[key] = (rank, texts)
    stages: dict[tuple[float, Texts], list[str]] = {}
    for (scenario, _), found in worst.items():
        stages.setdefault(found, []).append(scenario)
    ranked = sorted(stages.items(), key=lambda item: -item[0][0])
    return tuple((texts[0], ", ".join(names), *texts[1:]) for (_, texts), names in ranked[:TENSORS_SHOWN])


def _tensors(comparisons: Sequence[OutputComparison]) -> Iterator[tuple[str, float, Texts]]:
    """Yield the stage of every tensor that differs, how much it does, and its texts."""
    for comparison in comparisons:
        stage = visible(scenario_words(comparison.scenario))
        for call in comparison.calls:
            where = f"{visible(call.input_set)} call {call.call}"
            yield from ((stage, _rank(item), _texts(item, where)) for item in call.tensors if not item.bit_equal)


def _rank(tensor: TensorMetrics) -> float:
    if tensor.nan_mismatches or tensor.inf_mismatches:
        return float("inf")
    return tensor.max_abs / tensor.scale if tensor.scale > 0 else tensor.max_abs


def _texts(tensor: TensorMetrics, where: str) -> Texts:
    beyond = tensor.nan_mismatches + tensor.inf_mismatches or tensor.mismatched
    values = f"{tensor.worst_expected} → {tensor.worst_actual}" if tensor.worst_actual else ""
    return (
        shorten(visible(tensor.path), _NAME_LIMIT),
        where,
        visible(tensor.dtype),
        f"{tensor.max_abs:.3g}",
        f"{tensor.tolerance_abs:.3g}",
        f"{beyond} of {tensor.elements}",
        shorten(prose(values), _VALUES_LIMIT),
    )
