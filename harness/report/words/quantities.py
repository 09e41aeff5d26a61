"""What the benchmark measured of one model, as rows and as lines: times, memory, other shapes, and their limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.config.policy import Tagged, policy_of
from harness.core.errors import SelectionError
from harness.core.measurement import LatencyMeasurement, Quantity, RatioEstimate, limit_words
from harness.core.plan import NO_QUANTITIES
from harness.core.quantities import QUANTITIES, QUANTITY_LIMITS, STEADY
from harness.core.report import ModelReport, RunReport
from harness.core.text import amount, counted
from harness.core.verdict import CellVerdict, Finding
from harness.report.words.phrases import NOT_MEASURED, percent, seconds_pair
from harness.verdict.latency import is_beyond

# In the order of a model's life: quantity -> (head of a column, words of a row).
COLUMNS: Mapping[str, tuple[str, str]] = {
    "load": ("load", "load"),
    "call_0": ("call 0", "call 0"),
    "call_1": ("call 1", "call 1"),
    "first_calls": ("first calls", "first calls together"),
    "calls_until_steady": ("until steady", "calls until steady"),
    "p50": ("p50", "p50 of a call (steady latency)"),
    "mean": ("mean", "mean of a call"),
    "p90": ("p90", "p90 of a call"),
    "p99": ("p99", "p99 of a call"),
    "request": ("request", "time per request, callers at once"),
    "request_cpu": ("request CPU", "CPU time per request, callers at once"),
    "peak_rss": ("memory", "peak resident memory of load and first calls"),
    "device_memory": ("device memory", "peak device memory of load and first calls"),
    "growth": ("growth/call", "growth of resident memory per call"),
    "new_shape": ("new shape", "first calls of input set"),
    "recompilation": ("recompiles", "warm calls that the first ones cost more, input set"),
    "replay": ("replay", "replay of the captured graph"),
}
_WORST_SHOWN = 3
_WAITED_SHOWN = 0.01
_WHOLE_FROM = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantityRow:
    """One quantity of one model as raw texts; a renderer escapes them.

    Attributes:
        name: as in the measurement, e.g. ``"p99"`` or ``"new_shape:large"``; ``words``: what a reader calls it.
        values: old -> new; ``change``: their ratio with its interval, or ``-``; ``brief``: the same without it.
        limit: from which change on it is told, or ``-``.
        beyond: whether it lies beyond its limit.
    """

    name: str
    words: str
    values: str
    change: str
    brief: str
    limit: str
    new: float
    ratio: RatioEstimate | None
    beyond: bool

    @property
    def column(self) -> str:
        """The key of ``COLUMNS``: what all other shapes share."""
        return self.name.partition(":")[0]


def limits_of(report: RunReport, model: ModelReport | None = None) -> dict[str, float]:
    """Return quantity -> ratio from which it is reported: the run's, and the defaults for those it does not set.

    Args:
        model: for which the policy may have rules of its own.
    """
    return {**QUANTITY_LIMITS, **report.limits, **_ruled(report, model)}


def _ruled(report: RunReport, model: ModelReport | None) -> dict[str, float]:
    if model is None or not report.policy.settings.rules:
        return {}
    try:
        limits = policy_of(report.policy.settings, Tagged(model.model, model.tags)).settings.limits
    except SelectionError:  # no harness has written such a rule
        return {}
    return {name: limit for name, limit in limits.items() if name not in NO_QUANTITIES}


def quantity_rows(
    latency: LatencyMeasurement, limits: Mapping[str, float], cell: CellVerdict | None = None
) -> tuple[QuantityRow, ...]:
    """Return what was measured, in the order of ``COLUMNS``; names that it does not have stand last.

    Args:
        limits: quantity -> ratio from which it is told; ``cell``: the verdict, which alone says whether the steady
            call is beyond its limit: its interval must be confirmed.
    """
    order = {name: index for index, name in enumerate(COLUMNS)}
    names = sorted(latency.quantities, key=lambda name: (order.get(name.partition(":")[0], len(order)), name))
    return tuple(_row(name, latency.quantities[name], latency, limits, cell) for name in names)


def _row(
    name: str,
    found: Quantity,
    latency: LatencyMeasurement,
    limits: Mapping[str, float],
    cell: CellVerdict | None,
) -> QuantityRow:
    quantity, _, shape = name.partition(":")
    limit = limits.get(STEADY if quantity == "p50" else quantity)
    # What is judged of the steady call compares blocks of one turn; the p50 is a mere number beside it.
    ratio = latency.shown if quantity == "p50" else found.ratio
    if quantity == "p50":
        found = latency.shown_quantities.get(name, found)
    words = COLUMNS.get(quantity, ("", quantity))[1]
    values = _values(quantity, found)
    if quantity == "p50":
        beyond = cell is not None and any(_is_of_steady(finding) for finding in cell.findings)
    else:
        beyond = is_beyond(name, latency, limit)
    return QuantityRow(
        name=name,
        words=f"{words} {shape}" if shape else words,
        values=values,
        change=ratio.words if ratio is not None else NOT_MEASURED,
        brief=percent(ratio.ratio) if ratio is not None else values,
        limit=limit_words(limit) if limit is not None else NOT_MEASURED,
        new=found.new,
        ratio=ratio,
        beyond=beyond,
    )


def _is_of_steady(finding: Finding) -> bool:
    """Whether the steady call failed; other quantities that policy gates have the same kind and no rule."""
    return finding.kind == "latency" and bool(finding.rule)


def _values(quantity: str, found: Quantity) -> str:
    """Return old -> new in the unit of the quantity."""
    if found.unit == "calls":
        return f"{found.old:.3g} -> {found.new:.3g}"
    if found.unit == "bytes":
        return f"{_bytes(found.old)} -> {_bytes(found.new)}"
    pair = seconds_pair(found.old, found.new)
    if quantity == "request" and found.old > 0 and found.new > 0:
        return f"{pair} ({_rate(found.old)} -> {_rate(found.new)} per s)"
    return pair


def _rate(request_s: float) -> str:
    rate = 1 / request_s
    return f"{rate:.3g}" if rate < _WHOLE_FROM else f"{rate:.0f}"


def _bytes(value: float) -> str:
    return f"{'-' if value < 0 else ''}{amount(abs(value), 'bytes')}"


def measured_lines(cell: CellVerdict, facts: ModelReport | None, limits: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the numbers behind a latency verdict, what the run could have seen at all, and the worst beside them.

    What a finding of the cell says already is left out.
    """
    if cell.scenario != "latency" or facts is None or facts.latency is None:
        return []
    known = " ".join(finding.message for finding in cell.findings)
    measured, beside = _steady(facts.latency, known), _beside(quantity_rows(facts.latency, limits, cell), known)
    return [(label, "; ".join(said)) for label, said in (("measured", measured), ("beside", beside)) if said]


def _steady(latency: LatencyMeasurement, known: str) -> list[str]:
    shown, calls = latency.shown, latency.call_s
    said = []
    parts = []
    if calls is not None and f"{amount(calls[0], 's')} -> {amount(calls[1], 's')}" not in known:
        parts.append(seconds_pair(*calls))
    if shown is not None and shown.words not in known:
        what = "process pair" if latency.confirmation is None else "fresh process pair"
        pairs = f" over {counted(shown.pairs, what)}" if math.isfinite(shown.high) else ""
        parts.append(f"{shown.words}{pairs}")
    if parts:
        said.append(f"steady {', '.join(parts)}")
    if latency.confirmation and latency.steady and latency.steady.words not in known:
        said.append(f"before these {latency.steady.words}")
    if latency.own and latency.own.words not in known:
        said.append(f"its own part {latency.own.words}")
    if latency.same_against_same and latency.same_against_same.words not in known:
        said.append(f"same against same {latency.same_against_same.words}")
    if shown:
        detectable = shown.detectable
        said.append(f"detectable from {percent(detectable)}" if math.isfinite(detectable) else "nothing detectable")
    if latency.waited >= _WAITED_SHOWN:
        said.append(f"callers waited for a core {100 * latency.waited:.0f} % of the time")
    return [*said, latency.problem] if latency.problem else said


def _beside(rows: Sequence[QuantityRow], known: str) -> list[str]:
    """Return the quantities that are surely more than before, those beyond their limits first."""
    more = {row.name: row for row in rows if row.ratio is not None and row.ratio.low > 1 and row.column != "p50"}
    new = [row for row in more.values() if _covered_by(row.name) not in more and row.change not in known]
    worst = sorted(new, key=lambda row: (not row.beyond, -row.ratio.ratio if row.ratio is not None else 0.0, row.name))
    return [f"{row.words} {row.values}, {row.change}" for row in worst[:_WORST_SHOWN]]


def _covered_by(name: str) -> str:
    return QUANTITIES[name].covered_by if name in QUANTITIES else ""
