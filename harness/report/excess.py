"""What reports rank by: how far each model is over its limits, what is undecided, faster, or slow to start."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.checks.startup.slow_start import slow_start
from harness.core.findings import Severity, weight
from harness.core.measurement import RatioEstimate, signed_percent
from harness.core.outcome import Status
from harness.core.plan import INITIALIZATION_LIMIT, LatencyBudget
from harness.core.quantities import INITIALIZATION, STEADY
from harness.core.report import RunReport, ScenarioReport
from harness.core.text import prose
from harness.core.verdict import Beyond, CellVerdict
from harness.report.text.table import TableRow, table_rows
from harness.report.words.phrases import STATUS_ORDER, percent, phrase, scenario_words, seconds_pair
from harness.report.words.quantities import QuantityRow, limits_of, quantity_rows
from harness.verdict.causes import beyond_limit
from harness.verdict.commands import is_red
from harness.verdict.counting import OVER_LIMIT, UNDECIDED, cell_word, is_over
from harness.verdict.enforce import COMPARED

NOT_CONFIRMED = "not confirmed"


@dataclass(frozen=True, kw_only=True, slots=True)
class OverLimit:
    """One thing of a model that is beyond a limit.

    Attributes:
        words: what and by how much; ``limit``: how much is accepted, empty where nothing is.
        standing: what that comes to: the word of its cell, of what passes whether fresh rounds confirm it.
        beyond: the value and what is accepted; None where nothing is.
        cell: its id; ``fails``: whether it keeps the run from being green.
    """

    words: str
    limit: str
    beyond: Beyond | None
    cell: str
    fails: bool
    standing: str

    @property
    def factor(self) -> float | None:
        return self.beyond.factor if self.beyond is not None else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelExcess:
    """One model with everything of it that is beyond a limit, the furthest first, and what the benchmark measured."""

    row: TableRow
    over: tuple[OverLimit, ...]
    quantities: tuple[QuantityRow, ...]

    @property
    def undecided(self) -> bool:
        """Whether it could not be decided, or something of it where that leaves its row a PASS."""
        return self.row.status_word in (Status.INCONCLUSIVE.value, UNDECIDED)


def by_excess(report: RunReport) -> tuple[ModelExcess, ...]:
    """Return all models, the furthest over a limit first; those over none in the order of the table."""
    models = []
    for row in table_rows(report):
        quantities = _quantities(report, row)
        models.append(ModelExcess(row=row, over=_over(report, row, quantities), quantities=quantities))
    return tuple(sorted(models, key=_rank))


def _quantities(report: RunReport, row: TableRow) -> tuple[QuantityRow, ...]:
    if row.facts is None or row.facts.latency is None:
        return ()
    timed = next((cell for cell in row.cells if cell.scenario == "latency"), None)
    return quantity_rows(row.facts.latency, limits_of(report, row.facts), timed)


def _rank(item: ModelExcess) -> tuple[bool, float, int, bool]:
    order = -1 if item.row.status is None else STATUS_ORDER.index(item.row.status)
    return (not item.over, -_size(item.over[0]) if item.over else 0.0, order, not item.undecided)


def _size(item: OverLimit) -> float:
    return math.inf if item.factor is None else item.factor


def _over(report: RunReport, row: TableRow, quantities: Sequence[QuantityRow]) -> tuple[OverLimit, ...]:
    found: list[OverLimit] = []
    for cell in row.cells:
        if cell.scenario == "latency":
            found += _of_times(cell, quantities, limits_of(report, row.facts))
        if (
            is_red(cell)
            and cell.status is not Status.INCONCLUSIVE
            and not any(item.cell == cell.cell for item in found)
        ):
            found.append(_of_cell(cell, row, report))
    return tuple(sorted(found, key=lambda item: -_size(item)))


def _of_times(cell: CellVerdict, quantities: Sequence[QuantityRow], limits: Mapping[str, float]) -> Iterator[OverLimit]:
    if cell.status not in (Status.FAIL, Status.XPASS, Status.PASS, Status.INCONCLUSIVE):
        return  # a waiver or the policy answers for it
    applied = {finding.quantity: finding.limit for finding in cell.findings}
    for row in quantities:
        steady = row.column == "p50"
        limit = applied.get(STEADY if steady else row.name) or limits.get(STEADY if steady else row.column)
        if row.beyond and row.ratio is not None and limit is not None:
            yield OverLimit(
                words=f"{row.words} {row.values} ({row.brief})",
                limit=f"{signed_percent(limit)} %",
                beyond=Beyond(value=row.ratio.ratio, allowed=limit, is_ratio=True) if limit > 1 else None,
                cell=cell.cell,
                fails=cell.status is Status.FAIL and steady and is_red(cell),
                standing=cell_word(cell) if steady else _standing(cell, row.name),
            )


def _standing(cell: CellVerdict, quantity: str) -> str:
    """Return what comes of one quantity beside the steady call that is beyond its limit."""
    told = [item for item in cell.findings if item.quantity == quantity]
    weights = {weight(cell, item.kind) for item in told}
    if Severity.FAIL in weights or Severity.INCONCLUSIVE in weights:
        return cell_word(cell)
    return OVER_LIMIT if not told or any(is_over(cell, item) for item in told) else NOT_CONFIRMED


def _of_cell(cell: CellVerdict, row: TableRow, report: RunReport) -> OverLimit:
    """Return what fails a cell, by its first finding."""
    finding = next(iter(cell.findings), None)
    words = prose(phrase(finding)) if finding is not None else cell.status.value
    beyond = beyond_limit(finding, cell, row.facts, report) if finding is not None else None
    by_tolerance = finding is not None and finding.kind in COMPARED and beyond is not None
    return OverLimit(
        words=f"{scenario_words(cell.scenario)}: {words}",
        limit="its tolerance" if by_tolerance else "",
        beyond=beyond,
        cell=cell.cell,
        fails=True,
        standing=cell_word(cell),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Steady:
    """One timed model and its steady latency; ``limit`` is its own."""

    model: str
    ratio: RatioEstimate
    limit: float
    status: Status | None

    @property
    def faster(self) -> bool:
        """Whether it is surely faster, by more than its limit allows it to be slower."""
        return self.ratio.high < 1 / self.limit


def steady_calls(report: RunReport, models: Sequence[ModelExcess]) -> tuple[Steady, ...]:
    """Return the timed models, the slowest first."""
    found = []
    for item in models:
        facts = item.row.facts
        if facts is None or facts.latency is None or facts.latency.shown is None:
            continue
        found.append(
            Steady(
                model=item.row.model,
                ratio=facts.latency.shown,
                limit=limits_of(report, facts).get(STEADY, 1 + LatencyBudget().limit),
                status=next((cell.status for cell in item.row.cells if cell.scenario == "latency"), None),
            )
        )
    return tuple(sorted(found, key=lambda item: (-item.ratio.ratio, item.model)))


def slow_starts(report: RunReport) -> tuple[tuple[ScenarioReport, float], ...]:
    """Return the server groups that get ready more slowly than their limit, each with new/old, the worst first."""
    limit = report.limits.get(INITIALIZATION, INITIALIZATION_LIMIT)
    found = []
    for item in report.scenarios:
        if item.old is not None and item.old.init_s and item.new.init_s is not None:
            times = item.old.init_s, item.new.init_s
            if slow_start(*times, limit, group=item.group, words="") is not None:
                found.append((item, times[1] / times[0]))
    return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].scenario, pair[0].group)))


def start_words(item: ScenarioReport, ratio: float) -> str:
    """Return how a server group starts: ``while serving, ranking: 67 -> 101 s (+50.7 %)``."""
    assert item.new.init_s is not None
    times = seconds_pair(item.new.init_s / ratio, item.new.init_s)
    return f"{scenario_words(item.scenario)}, {item.group}: {times} ({percent(ratio)})"
