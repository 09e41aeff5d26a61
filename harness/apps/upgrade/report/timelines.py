"""Facts of initializations and of models that ended alone -> the timelines of the report."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult, Span
from harness.core.timeline import Timeline
from harness.probing.facts import GroupRun, Started

MOST_SPANS = 400
"""Of one process; the shorter ones are left out and counted."""
MOST_ALONE = 50
"""Processes of single models that hung, crashed or ran out of memory."""
ENDED = (Outcome.HANG, Outcome.STARVED, Outcome.CRASH, Outcome.OUT_OF_MEMORY)


def timelines(facts: Started) -> tuple[Timeline, ...]:
    """Return one timeline per scenario, server group and side, then those of models that ended their process alone."""
    order = {name: index for index, name in enumerate(facts.plan.scenarios)}
    runs = sorted(facts.group_runs, key=lambda run: (order.get(run.scenario, 0), run.group, run.side == "new"))
    alone = [
        _timeline("alone", name, probe.side, 0, probe) for name, probe in facts.alone.items() if probe.outcome in ENDED
    ]
    return (*_of_groups(runs), *sorted(alone, key=lambda item: item.group)[:MOST_ALONE])


def _of_groups(runs: Iterable[GroupRun]) -> Iterator[Timeline]:
    for run in runs:
        if run.rounds:
            number, probe = _telling(run.rounds)
            yield _timeline(run.scenario, run.group, run.side, number, probe)


def _telling(rounds: Sequence[Sequence[ProbeResult]]) -> tuple[int, ProbeResult]:
    """Return the first round in which something failed, else the first, and its whole group's process."""
    for number, probes in enumerate(rounds):
        if any(outcome is not Outcome.COMPLETED for outcome in probes[0].outcomes):
            return number, probes[0]
    return 0, rounds[0][0]


def _timeline(scenario: str, group: str, side: str, number: int, probe: ProbeResult) -> Timeline:
    spans = [span for span in probe.spans if span.model]
    kept = sorted(spans, key=lambda span: (span.finished, span.begin_ns - span.end_ns))[:MOST_SPANS]
    start_ns = min((span.begin_ns for span in kept), default=0)
    proof = probe.evidence.proof if probe.evidence is not None else None
    return Timeline(
        scenario=scenario,
        group=group,
        side=side,
        round=number,
        outcome=probe.outcome,
        hang=proof.kind if proof is not None and probe.outcome in (Outcome.HANG, Outcome.STARVED) else None,
        spans=tuple(_shifted(span, start_ns) for span in sorted(kept, key=lambda span: (span.begin_ns, span.thread))),
        left_out=len(spans) - len(kept),
    )


def _shifted(span: Span, start_ns: int) -> Span:
    return replace(span, begin_ns=span.begin_ns - start_ns, end_ns=span.end_ns - start_ns)
