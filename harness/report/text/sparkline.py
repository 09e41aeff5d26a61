"""A histogram of errors in one line: a character per decade, whose height is the count."""

from collections.abc import Iterator, Sequence

from harness.core.comparison import ERROR_EDGES, OutputComparison, TensorMetrics
from harness.core.verdict import Finding

BLOCKS = "▁▂▃▄▅▆▇█"
# For a terminal, whose encoding is unknown.
ASCII = ":-=+*#%@"
EMPTY = "."
# Findings about numbers, unless they were about the structure before they got that name.
KINDS = frozenset({"values", "late_divergence", "nan_placement", "race", "closer_to_reference"})
NO_NUMBERS = frozenset({"structure", "dtype"})


def error_lines(
    findings: Sequence[Finding], comparisons: Sequence[OutputComparison], scenario: str
) -> tuple[tuple[str, str], ...]:
    """Return a labelled histogram for each finding about numbers whose tensor has one in ``scenario``."""
    found = list(_tensors(findings, comparisons, scenario))
    several = len(found) > 1
    return tuple(("errors", f"{f'{tensor.path}: ' if several else ''}{sparkline(tensor)}") for tensor in found)


def _tensors(
    findings: Sequence[Finding], comparisons: Sequence[OutputComparison], scenario: str
) -> Iterator[TensorMetrics]:
    """Yield the tensor of the first place of each finding."""
    places = {
        f"{call.input_set} call {call.call} {tensor.path}": tensor
        for comparison in comparisons
        if comparison.scenario == scenario
        for call in comparison.calls
        for tensor in call.tensors
        if sum(tensor.error_histogram[1:])
    }
    for finding in findings:
        if finding.kind not in KINDS or finding.detail.get("was") in NO_NUMBERS:
            continue
        tensor = places.get(finding.where) or places.get(finding.where.rpartition(" and ")[0])
        if tensor is not None:
            yield tensor


def sparkline(tensor: TensorMetrics) -> str:
    """Return ``"1e-8 ▂▄█▁ 1e-4 of the largest value, tolerance 1e-5; 12 of 4096 equal"``.

    The numbers are the lower edge of the first decade with an error and the upper edge of the last; ``up`` is "and
    more". Errors of zero are counted, not drawn. There must be at least one that is not.
    """
    equal, *decades = tensor.error_histogram
    filled = [index for index, count in enumerate(decades) if count]
    first, last = filled[0], filled[-1]
    most = max(decades)
    drawn = "".join(_level(count, most) for count in decades[first : last + 1])
    upper = edge_words(last + 1) if last + 1 < len(ERROR_EDGES) else "up"
    beside = "".join(f", {words}" for words in (tolerance_words(tensor),) if words)
    rest = f"; {equal} of {sum(tensor.error_histogram)} equal"
    return f"{edge_words(first)} {drawn} {upper} of the largest value{beside}{rest}"


def _level(count: int, most: int) -> str:
    """Return the character of a decade; whatever is not empty shows."""
    return BLOCKS[-(-count * len(BLOCKS) // most) - 1] if count else EMPTY


def edge_words(index: int) -> str:
    """Return the lower edge of a decade: ``1e-5``, ``0`` or ``1``."""
    return f"{ERROR_EDGES[index]:g}" if ERROR_EDGES[index] in (0.0, 1.0) else _power(ERROR_EDGES[index])


def tolerance_words(tensor: TensorMetrics) -> str:
    """Return the tolerance over the largest value; empty where there is no such value."""
    return f"tolerance {_power(tensor.tolerance_abs / tensor.scale)}" if tensor.scale > 0 else ""


def _power(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
