"""What the probes of each cell took, for formats that have a duration per test."""

from collections.abc import Iterable, Sequence

from harness.domain.probe import ProbeResult, Span, model_of
from harness.probing.facts import Timed
from harness.startup.measures import busy_s
from harness.startup.readiness import BRINGING_UP


def durations_s(facts: Timed, finished: Iterable[ProbeResult]) -> dict[str, float]:
    """Return cell -> seconds, of both releases and all rounds together; without what was never probed.

    A process that had one model counts whole, from its first phase to its last; in one that several shared each model
    counts for its own loads and calls.

    Args:
        finished: every probe of the run.
    """
    plan = facts.plan
    together = {probe.key for run in facts.group_runs for probe in run.probes}
    models = {model.name for model in plan.models}
    spent: dict[str, float] = {}

    def add(model: str, scenario: str, seconds: float) -> None:
        if model in models and seconds > 0:
            cell = plan.cell(model, scenario).id
            spent[cell] = spent.get(cell, 0.0) + seconds

    for probe in finished:
        names = {model_of(item.model) for item in probe.models}
        if probe.key not in together:
            for name in names:
                alone = len(names) == 1
                add(name, "alone", _whole_s(probe.spans) if alone else busy_s(probe.spans, BRINGING_UP, name))
    for run in facts.group_runs:
        for name in run.members:
            add(name, run.scenario, sum(busy_s(probe.spans, BRINGING_UP, name) for probe in run.probes))
    for name, measured in facts.latency.items():
        add(name, "latency", measured.spent_s)
    return spent


def _whole_s(spans: Sequence[Span]) -> float:
    ended = [span for span in spans if span.finished]
    return (max(span.end_ns for span in ended) - min(span.begin_ns for span in ended)) * 1e-9 if ended else 0.0
