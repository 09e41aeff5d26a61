"""The report as metrics, for the textfile collector of a node exporter and for GitLab's metrics report.

Both formats are kept at once: OpenMetrics (https://prometheus.io/docs/specs/om/open_metrics_spec/) ends with ``# EOF``
and has units; the textfile collector reads the older text format, whose parser knows no ``info`` and no ``stateset``,
and refuses timestamps. So everything is a gauge, and states are gauges with a label.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.outcome import Decision
from harness.core.quantities import STEADY
from harness.core.report import CellTrend, ModelReport, RunReport
from harness.core.text import visible
from harness.report.text.table import table_rows
from harness.verdict.counting import WORDS, cell_word, counts_of

if TYPE_CHECKING:
    from prometheus_client import Metric


def seconds_since_epoch(text: str) -> float | None:
    """Return a moment or the begin of a day, in UTC where it has no zone; None where it is neither."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


PREFIX = "torchscript_gate_"
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Family(NamedTuple):
    """One metric: its name without the prefix, what it says, and its samples; a unit is the end of the name."""

    name: str
    words: str
    samples: Iterable[Sample]
    unit: str = ""


def render_openmetrics(report: RunReport) -> str:
    """Return the metrics, ending with ``# EOF``; a family without a sample is left out."""
    from prometheus_client import CollectorRegistry  # noqa: PLC0415  no other format waits for it
    from prometheus_client.openmetrics.exposition import generate_latest  # noqa: PLC0415

    registry = CollectorRegistry()
    registry.register(_Metrics(report))
    written: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return written.decode()


class _Metrics:
    """What the registry asks for the metrics of one report."""

    def __init__(self, report: RunReport) -> None:
        self._report = report

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client import Metric  # noqa: PLC0415  likewise

        for family in (*_of_run(self._report), *_of_models(self._report)):
            metric = Metric(PREFIX + family.name, family.words, "gauge", family.unit)
            samples: dict[tuple[tuple[str, str], ...], float] = {}
            for labels, value in family.samples:
                shown = tuple((name, visible(text)) for name, text in labels.items())
                samples.setdefault(shown, value)  # two alike make a file unreadable; the worst stands first
            for shown, value in samples.items():
                metric.add_sample(metric.name, dict(shown), value)
            if samples:
                yield metric


def _of_run(report: RunReport) -> Iterator[Family]:
    judgement, sides = report.judgement, {"old": report.old, "new": report.new}
    torch = {side: found.fingerprint.torch if found.fingerprint else "" for side, found in sides.items()}
    about = {
        "run": report.run,
        "old": report.old.name,
        "new": report.new.name,
        "old_torch": torch["old"],
        "new_torch": torch["new"],
        "direction": report.direction,
        "profile": report.profile,
        "device": report.device,
        "version": report.harness_version,
    }
    yield Family("run_info", "What was run; always 1.", [(about, 1)])
    yield Family("exit_code", "Exit code of the run; 0 is the only green one.", [({}, judgement.exit_code)])
    decisions = [({"decision": item.value}, float(item is judgement.decision)) for item in Decision]
    yield Family("decision", "1 for the decision of the run.", decisions)
    started = seconds_since_epoch(report.started_at)
    begun: list[Sample] = [({}, started)] if started is not None else []
    yield Family("started_timestamp_seconds", "When the run began, since the epoch.", begun, "seconds")
    yield Family("wall_seconds", "How long the run took.", [({}, report.wall_s)], "seconds")
    counts = counts_of([row.verdict for row in table_rows(report)])
    yield Family("models", "How many models count as that.", [({"status": s}, counts.get(s, 0)) for s in WORDS])
    changes = report.baseline.counts if report.baseline is not None else {}
    changed = [({"change": item.value}, changes.get(item.value, 0)) for item in CellTrend] if changes else []
    yield Family("baseline_cells", "How many cells have changed since the baseline, and how.", changed)
    caught = Counter(planted_defect.caught for planted_defect in judgement.planted_defects)
    planted_defects = [({"caught": str(found).lower()}, caught[found]) for found in (True, False)]
    yield Family("planted_defects", "How many planted defects the run reported, or did not.", planted_defects)


def _of_models(report: RunReport) -> Iterator[Family]:
    rows = table_rows(report)
    pair = {"old": report.old.name, "new": report.new.name, "device": report.device, "profile": report.profile}
    cells = [cell for row in rows for cell in row.cells]
    statuses = [({"model": row.model, **pair, "status": row.status_word}, 1.0) for row in rows if row.status]
    yield Family("model_status", "Worst status of a model in this pair of releases; always 1.", statuses)
    of_cells = [
        ({"cell": cell.cell, "model": cell.model, "scenario": cell.scenario, "status": cell_word(cell)}, 1.0)
        for cell in cells
    ]
    yield Family("cell_status", "Status of one model in one scenario; always 1.", of_cells)
    yield Family("waiver_expires_timestamp_seconds", "Begin of the last day of a waiver.", _waivers(report), "seconds")
    facts = [row.facts for row in rows if row.facts is not None]
    yield Family(
        "output_error_ratio",
        "Largest difference of an output over its largest golden value.",
        [({"model": item.model, **pair}, item.worst_relative) for item in facts if item.worst_relative is not None],
        "ratio",
    )
    words = {
        "": "New over old, by quantity of the benchmark.",
        "_low": "Lower 95 % bound of new over old, of what is judged.",
        "_high": "Upper 95 % bound of new over old, of what is judged.",
    }
    for bound, said in words.items():
        samples = [sample for item in facts for sample in _ratios(item, pair, bound)]
        yield Family(f"new_over_old{bound}", said, samples)
    for name, said in (("load", "Time of torch.jit.load"), ("first_calls", "Time of the calls before steady state")):
        samples = [sample for item in facts for sample in _times(item, name, report)]
        yield Family(f"{name}_seconds", f"{said}, median over fresh processes.", samples, "seconds")


def _waivers(report: RunReport) -> Iterator[Sample]:
    """Yield the last day of each waiver; of two that differ in their bounds alone, the one that ends first stands."""
    for use in sorted(report.waivers, key=lambda use: use.waiver.expires):
        waiver = use.waiver
        labels = {
            "model": waiver.model,
            "kind": waiver.kind,
            "scenario": waiver.scenario,
            "device": waiver.device,
            "profile": waiver.profile,
            "owner": waiver.owner,
            "issue": waiver.issue,
            "old": waiver.old,
            "new": waiver.new,
            "state": use.state.value,
        }
        yield labels, dt.datetime.combine(waiver.expires, dt.time(), dt.UTC).timestamp()


def _ratios(facts: ModelReport, pair: Labels, bound: str) -> Iterator[Sample]:
    """Yield the ratios of one model; bounds of ``steady`` alone: those of all would be most of the file."""
    for name, found in _estimates(facts.latency):
        if bound and name != STEADY:
            continue
        value = {"": found.ratio, "_low": found.low, "_high": found.high}[bound]
        yield {"model": facts.model, **pair, "quantity": name}, value


def _estimates(latency: LatencyMeasurement | None) -> Iterator[tuple[str, RatioEstimate]]:
    if latency is None:
        return
    if latency.shown is not None:
        yield STEADY, latency.shown
    for name, found in sorted(latency.quantities.items()):
        if found.ratio is not None:
            yield name, found.ratio


def _times(facts: ModelReport, name: str, report: RunReport) -> Iterator[Sample]:
    both = facts.load_s if name == "load" else facts.first_calls_s
    if both is None:
        return
    for side, environment, value in zip(("old", "new"), (report.old, report.new), both, strict=True):
        yield {"model": facts.model, "side": side, "release": environment.name, "device": report.device}, value
