"""The rows of a diff of golden records: one per input set and output, its worst call, and its histogram of errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks.outputs.findings import error_of
from harness.checks.outputs.totals import ERROR_EDGES
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.golden import RecordDiff, RecordFacts
from harness.core.text import counted, first_few
from harness.report.text.sparkline import edge_words

HEADS = ("input set, output", "calls", "off by", "max abs", "ULP", "rel. L2", "cosine", "beyond")
RIGHT = tuple(range(1, len(HEADS)))
PLACES_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffRow:
    """One output of one input set.

    Attributes:
        tensor: of the call that is furthest off; ``call`` is its number.
        differing, calls: in how many of the calls it differs.
    """

    input_set: str
    call: int
    tensor: TensorMetrics
    differing: int
    calls: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of ``HEADS``, not escaped."""
        tensor = self.tensor
        moved = tensor.nan_mismatches + tensor.inf_mismatches
        return (
            f"{self.input_set} {tensor.path}{' (sample)' if tensor.sampled else ''}",
            f"{self.differing}/{self.calls}",
            "NaN moved" if moved else number(error_of(tensor)),
            number(tensor.max_abs),
            "-" if tensor.max_ulp is None else number(tensor.max_ulp),
            number(tensor.rel_l2),
            "-" if tensor.cosine is None else f"{tensor.cosine:.6f}",
            f"{tensor.mismatched}/{tensor.elements}",
        )

    @property
    def place(self) -> str:
        """Which call of which input set, and the path of the output."""
        return f"{self.input_set} call {self.call} {self.tensor.path}"


def rows_of(comparison: OutputComparison) -> tuple[DiffRow, ...]:
    """Return a row for every output that differs, or may by its sample; the furthest off first."""
    found: dict[tuple[str, str], list[tuple[int, TensorMetrics]]] = {}
    for call in comparison.calls:
        for tensor in call.tensors:
            found.setdefault((call.input_set, tensor.path), []).append((call.call, tensor))
    rows = []
    for (input_set, _), tensors in found.items():
        other = [place for place in tensors if not place[1].bit_equal or place[1].sampled]
        if other:
            at, worst = max(other, key=lambda place: _gravity(place[1]))
            calls = sum(call.input_set == input_set for call in comparison.calls)
            rows.append(DiffRow(input_set=input_set, call=at, tensor=worst, differing=len(other), calls=calls))
    return tuple(sorted(rows, key=lambda row: (*(-part for part in _gravity(row.tensor)), row.input_set, row.place)))


def _gravity(tensor: TensorMetrics) -> tuple[float, float]:
    return float(tensor.nan_mismatches + tensor.inf_mismatches), error_of(tensor)


def structure_of(comparison: OutputComparison) -> tuple[str, ...]:
    """Return what has another structure, one line per place; equal lines of several calls once."""
    said: dict[str, list[str]] = {}
    for call in comparison.calls:
        for found in call.tree:
            said.setdefault(f"{found.path}: {found.expected} -> {found.actual}", []).append(
                f"{call.input_set} call {call.call}"
            )
    lines = [f"{text} ({first_few(places, PLACES_SHOWN)})" for text, places in said.items()]
    gone = [f"{input_set} call {call}" for input_set, call in comparison.missing_calls]
    return (*lines, *([f"no longer there: {first_few(gone, PLACES_SHOWN)}"] if gone else []))


def bars(tensor: TensorMetrics) -> tuple[tuple[str, int, bool], ...]:
    """Return (decade, elements in it, whether it lies beyond the tolerance), from the first filled to the last.

    Empty where bits are equal. The first bar is that of the elements that are equal.
    """
    if not tensor.error_histogram:
        return ()
    equal, *decades = tensor.error_histogram
    limit = tensor.tolerance_abs / tensor.scale if tensor.scale > 0 else 0.0
    filled = [index for index, count in enumerate(decades) if count]
    drawn = [("equal", equal, False)]
    for index in range(filled[0], filled[-1] + 1) if filled else ():
        upper = f".. {edge_words(index + 1)}" if index + 1 < len(ERROR_EDGES) else "and more"
        beyond = ERROR_EDGES[index] >= limit * (1 - 1e-9)
        drawn.append((f"{edge_words(index)} {upper}", decades[index], beyond))
    return tuple(drawn)


def bar_width(count: int, most: int, columns: int) -> int:
    """Return how long a bar is: logarithmic, at least one column where anything is in it."""
    return round(columns * math.log1p(count) / math.log1p(most)) or 1 if count else 0


def number(value: float | None) -> str:
    """Return a number in at most eight characters; ``-`` for none."""
    if value is None:
        return "-"
    return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")


def side_words(facts: RecordFacts) -> str:
    """Return what one side of a diff is: release, record, run, and why it is trusted."""
    parts = [
        f"torch {facts.release}",
        f"record {facts.record[:12]}",
        f"{counted(facts.tensors, 'tensor')} in {counted(facts.calls, 'call')}",
    ]
    if facts.run:
        parts.append(f"from {facts.run}")
    if facts.trust is not None:
        who = f" by {facts.trust.by}" if facts.trust.by else ""
        parts.append(f"accepted {facts.trust.accepted.isoformat()}{who}: {facts.trust.reason}")
    return ", ".join(parts)


def sides_of(found: RecordDiff) -> list[tuple[str, str]]:
    """Return (label, what it is) of the sides of a diff."""
    return [(label, side_words(facts)) for label, facts in (("old", found.old), ("new", found.new)) if facts]


def counts_words(diffs: Sequence[RecordDiff]) -> str:
    """Return how many models changed in which way, the gravest first."""
    counts: dict[str, int] = {}
    for found in diffs:
        counts[found.change.value] = counts.get(found.change.value, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in counts.items())
