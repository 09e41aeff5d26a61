"""The one table of the report: a row per model, red rows first."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.outcome import Status
from harness.core.plan import FLOOR
from harness.core.quantities import STEADY
from harness.core.report import ModelReport, RunReport
from harness.core.text import counted, visible
from harness.core.verdict import CellVerdict, Finding, Mitigation, RowVerdict
from harness.report.document import Cell
from harness.report.documents.migration import migrated_cells
from harness.report.words.phrases import NOT_MEASURED, STATUS_ORDER, outcome_word, percent, seconds_pair, shorten, times
from harness.verdict.counting import row_word
from harness.verdict.inputs import unseen_changes

COLUMNS = (
    "model",
    "export",
    "load",
    "init",
    "outputs",
    "load time",
    "first calls",
    "steady latency",
    "status",
)

MIGRATE = "migrate"
"""The column before the last of a run that was asked which models could leave TorchScript."""
_WORKERS = {"python": "Python", "libtorch": "C++"}
_TIMES = tuple(COLUMNS[at] for at in (5, 6, 7))
_OUTPUTS_LIMIT = 11
GUESSED = "*"
"""Marks the outputs of a model whose inputs were guessed."""
BY_FLOOR = "~"
"""Marks a steady latency that may be over its limit by so little time that it does not count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One model; ``facts`` is None where only a verdict exists, ``verdict`` where only facts exist.

    ``migrated`` is its outcome outside of TorchScript; None where nobody asked of any model. ``by_floor``: its interval
    reaches over the limit of the steady call, and what that comes to is less than the time that counts.
    """

    model: str
    facts: ModelReport | None
    verdict: RowVerdict | None
    migrated: Cell | None = None
    by_floor: bool = False

    @property
    def status(self) -> Status | None:
        """The status of the row, or None if it was not judged."""
        return None if self.verdict is None else self.verdict.status

    @property
    def cells(self) -> tuple[CellVerdict, ...]:
        """The verdicts on its cells; none if it was not judged."""
        return () if self.verdict is None else self.verdict.cells

    @property
    def mitigations(self) -> tuple[Mitigation, ...]:
        """What was tried on this model, on any of its cells."""
        return () if self.verdict is None else self.verdict.mitigations

    @property
    def status_word(self) -> str:
        """What it counts as, one of ``WORDS`` in ``harness/verdict/counting.py``."""
        return row_word(self.verdict)

    @property
    def unseen_changes(self) -> tuple[Finding, ...]:
        """Warnings of operators that are known to answer otherwise, which its requests may not have shown."""
        return () if self.verdict is None else unseen_changes(self.verdict)

    @property
    def shown_word(self) -> str:
        """The same word, marked where it is a PASS with such a warning."""
        passes = self.status_word == Status.PASS.value
        return f"{self.status_word} (warning)" if passes and self.unseen_changes else self.status_word


def table_rows(report: RunReport) -> tuple[TableRow, ...]:
    """Return all models that were measured or judged, paired by name: red first, then PASS, each by name."""
    facts = {model.model: model for model in report.models}
    verdicts = {row.model: row for row in report.judgement.rows}
    migrated = migrated_cells(report.migration)
    unknown = Cell(NOT_MEASURED) if migrated else None
    rows = [
        TableRow(
            model=name,
            facts=facts.get(name),
            verdict=verdicts.get(name),
            migrated=migrated.get(name, unknown),
            by_floor=_is_by_floor(facts.get(name), report),
        )
        for name in {**verdicts, **facts}
    ]
    rank = {status: index for index, status in enumerate(STATUS_ORDER)}
    return tuple(sorted(rows, key=lambda row: (-1 if row.status is None else rank[row.status], row.model)))


def floor_of(report: RunReport) -> float:
    """Return by how many seconds a steady call has to be slower to be a finding."""
    return report.policy.settings.limits.get(FLOOR, report.policy.floor_s)


def _is_by_floor(facts: ModelReport | None, report: RunReport) -> bool:
    latency = facts.latency if facts is not None else None
    if latency is None or latency.shown is None or latency.call_s is None:
        return False
    most_s = (latency.shown.high - 1) * latency.call_s[0]
    return latency.shown.high > report.limits.get(STEADY, report.policy.steady) and most_s < floor_of(report)


def rows_by_need(report: RunReport) -> tuple[TableRow, ...]:
    """Return the same rows in the order in which they need a reader.

    Of one status, the clearest model of each cause comes first, then the second of each; then what is slowest.
    """
    places = [(place, at, model) for at, cause in enumerate(report.causes) for place, model in enumerate(cause.models)]
    first = {model: (place, at) for place, at, model in sorted(places, reverse=True)}
    last = (len(places), 0)
    rank = {status: index for index, status in enumerate(STATUS_ORDER)}
    return tuple(
        sorted(
            table_rows(report),
            key=lambda row: (
                -1 if row.status is None else rank[row.status],
                first.get(row.model, last),
                not row.unseen_changes,
                -_ratio(row.facts),
            ),
        )
    )


def _ratio(facts: ModelReport | None) -> float:
    """Return how much slower the steady call is; 0 where nobody measured it."""
    steady = facts.latency.shown if facts is not None and facts.latency is not None else None
    return steady.ratio if steady is not None else 0.0


def columns(rows: Sequence[TableRow]) -> tuple[str, ...]:
    """Return the names of what ``row_cells`` gives of these rows."""
    return _with(MIGRATE, COLUMNS) if rows and rows[0].migrated is not None else COLUMNS


def _with(text: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    return (*texts[:-1], text, texts[-1])


def row_cells(row: TableRow, *, compact: bool) -> tuple[str, ...]:
    """Return the texts of ``columns``; ``compact`` shows factors for pairs of times and leaves intervals out."""
    texts = _row_cells(row, compact=compact)
    if row.migrated is None:
        return texts
    return _with((compact and row.migrated.short) or row.migrated.text, texts)


def _row_cells(row: TableRow, *, compact: bool) -> tuple[str, ...]:
    facts = row.facts
    if facts is None:
        return (visible(row.model), *[NOT_MEASURED] * (len(COLUMNS) - 2), row.status_word)
    steady = facts.latency.shown if facts.latency else None
    load = facts.latency.ratio("load") if facts.latency else None
    first_calls = facts.latency.ratio("first_calls") if facts.latency else None
    return (
        visible(row.model),
        outcome_word(facts.export),
        outcome_word(facts.load),
        outcome_word(facts.concurrent),
        _outputs(facts),
        _old_new(facts.load_s, load.ratio if load else None, compact=compact),
        _old_new(facts.first_calls_s, first_calls.ratio if first_calls else None, compact=compact),
        NOT_MEASURED if steady is None else _steady(row, percent(steady.ratio) if compact else steady.words),
        row.status_word,
    )


def _outputs(facts: ModelReport) -> str:
    """Return what became of the outputs, marked where they answer guessed inputs."""
    words = shorten(visible(facts.outputs), _OUTPUTS_LIMIT)
    return f"{words}{f' {GUESSED}' if facts.guessed else ''}" if words else NOT_MEASURED


def guessed_words(rows: Sequence[TableRow]) -> str:
    """Return of how many models inputs were guessed, and how their outputs are marked; empty without any."""
    count = sum(row.facts is not None and bool(row.facts.guessed) for row in rows)
    return f"inputs of {count} of {counted(len(rows), 'model')}, marked {GUESSED}" if count else ""


def _steady(row: TableRow, words: str) -> str:
    """Return the steady latency, marked where it could not be decided against the limit, or the floor decided."""
    cells = row.cells
    undecided = any(cell.scenario == "latency" and cell.status is Status.INCONCLUSIVE for cell in cells)
    return f"{words} ?" if undecided else f"{words} {BY_FLOOR}" if row.by_floor else words


def _old_new(pair_s: tuple[float, float] | None, ratio: float | None, *, compact: bool) -> str:
    """Return the medians of both releases, or the factor as the benchmark pairs them; that of the medians without."""
    if pair_s is not None and not compact:
        return seconds_pair(*pair_s)
    if ratio is None and pair_s is not None:
        ratio = pair_s[1] / pair_s[0] if pair_s[0] > 0 else float("nan")
    return NOT_MEASURED if ratio is None else times(ratio)


def not_measured(rows: Sequence[TableRow]) -> str:
    """Return how many models each column with a ``-`` lacks: ``"outputs 2 of 6, steady latency all 6"``; or empty."""
    measured = [row_cells(row, compact=True) for row in rows]
    found = list(zip(columns(rows), zip(*measured, strict=True), strict=True))[1:-1] if rows else []
    untimed = sum(row.facts is not None and not row.facts.timed for row in rows)
    said, miniatures = [], ""
    for name, texts in found:
        count = texts.count(NOT_MEASURED)
        if count == len(rows):
            said.append(f"{name} all {count}")
            continue
        if name in _TIMES and untimed:
            miniatures = f"times of {untimed} (not timed: miniatures)"
            count -= untimed
        if count:
            said.append(f"{name} {count} of {len(rows)}")
    return ", ".join([*said, miniatures] if miniatures else said)


def timed_in(rows: Sequence[TableRow]) -> str:
    """Return how many have times and of which worker, ``"13 of 78 timed, in the C++ worker"``; empty without any."""
    timed = [row.facts.latency.runtime for row in rows if row.facts is not None and row.facts.latency is not None]
    workers = " and the ".join(_WORKERS.get(runtime, runtime) for runtime in dict.fromkeys(timed))
    return f"{timed_of(len(timed), len(rows))}, in the {workers} worker" if workers else ""


def timed_of(timed: int, models: int) -> str:
    """Return ``"13 of 78 timed"``."""
    return f"{timed} of {models} timed"
