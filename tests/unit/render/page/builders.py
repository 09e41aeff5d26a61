"""Timelines and whole fleets for the page."""

from dataclasses import replace

from harness.domain.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.domain.hang import HangKind
from harness.domain.measurement import LatencyMeasurement
from harness.domain.outcome import Decision, Outcome, Status
from harness.domain.probe import Span
from harness.domain.report import ModelReport, RunReport
from harness.domain.timeline import Timeline
from harness.domain.verdict import CellVerdict, Judgement, RowVerdict
from tests.unit.render.builders import CANARIES, blocked, build, cell_id, healthy, latency, mitigated, passed, ratio

MS = 1_000_000


def span(phase: str, begin_ms: float, end_ms: float, model: str = "ranker", thread: int = 0, **more: bool) -> Span:
    """Return a phase; times in milliseconds."""
    return Span(phase=phase, begin_ns=int(begin_ms * MS), end_ns=int(end_ms * MS), model=model, thread=thread, **more)


def timeline(side: str = "old", *, threads: int = 2, stuck: bool = False) -> Timeline:
    """Return threads that load and call a model; in a stuck one the last thread never comes back from its call."""
    spans = []
    for thread in range(threads):
        spans.append(span("load", 5 * thread, 40 + 5 * thread, f"ranker#{thread}", thread))
        last = stuck and thread == threads - 1
        spans.append(span("call", 50 + thread, 900 if last else 120, f"ranker#{thread}", thread, finished=not last))
    return Timeline(
        scenario="concurrent",
        group="ranking",
        side=side,
        round=1 if stuck else 0,
        outcome=Outcome.HANG if stuck else Outcome.COMPLETED,
        hang=HangKind.BLOCKED if stuck else None,
        spans=tuple(spans),
    )


def hanging() -> RunReport:
    """Return a run in which a model hangs while the group is brought up, with its timelines."""
    return replace(mitigated(), timelines=(timeline("old"), timeline("new", stuck=True)))


def tensor(path: str = "output", max_abs: float = 2e-4, **more: object) -> TensorMetrics:
    """Return numbers of a float32 tensor whose largest value is 1."""
    metrics = TensorMetrics(
        path=path,
        dtype="float32",
        elements=100,
        bit_equal=max_abs == 0,
        max_abs=max_abs,
        scale=1.0,
        tolerance_abs=1e-5,
        mismatched=7,
        worst_index=(3,),
        worst_expected="0.25",
        worst_actual="0.2502",
        error_histogram=(80, 0, 0, 0, 5, 8, 4, 3, 0, 0, 0, 0),
    )
    return replace(metrics, **more)  # type: ignore[arg-type]


def comparison(*tensors: TensorMetrics, calls: int = 4) -> OutputComparison:
    """Return the comparison of some calls of two input sets; all calls have the same numbers."""
    found = [CallComparison(input_set="example", call=number, tensors=tensors) for number in range(calls)]
    found += [CallComparison(input_set="other_values", call=number, tensors=tensors) for number in range(2)]
    return OutputComparison(model="ranker", scenario="alone", calls=tuple(found))


def duel(model: str, steady: float = 1.02, rounds: int = 6) -> LatencyMeasurement:
    """Return a duel of several rounds, each a little apart from the one before."""
    measured = latency(model, ratio(steady))
    first = measured.samples[0]
    samples = []
    for number in range(rounds):
        blocks = tuple(
            replace(
                block,
                turn=turn,
                p50_s=block.p50_s * (1 + 0.002 * ((number + turn) % 3)) * (steady if block.arm == "new" else 1),
            )
            for turn in range(4)
            for block in first.blocks
        )
        samples.append(replace(first, round=number, blocks=blocks))
    return replace(measured, samples=tuple(samples))


def fleet(models: int = 500, *, red_every: int = 10) -> RunReport:
    """Return a run of many models, each with a duel, some of them red with errors in every call."""
    rows: list[RowVerdict] = []
    facts: list[ModelReport] = []
    failing = blocked()
    source = next(row for row in failing.judgement.rows if row.status is Status.FAIL)
    for number in range(models):
        name = f"model_{number:03d}"
        steady = 1 + (number * 37 % 100 - 50) / 1000
        found = replace(healthy(name, steady=steady), group=f"group_{number % 12}", latency=duel(name, steady))
        if number % red_every == 0:
            cells: tuple[CellVerdict, ...] = tuple(
                replace(cell, model=name, cell=cell_id(name, cell.scenario)) for cell in source.cells
            )
            rows.append(replace(source, model=name, cells=cells, mitigations=()))
            found = replace(found, outputs="off 2e-04", worst_relative=2e-4, comparisons=(comparison(tensor()),))
        else:
            rows.append(passed(name))
        facts.append(found)
    judgement = Judgement(
        decision=Decision.BLOCKED, reason="some fail", exit_code=1, rows=tuple(rows), canaries=CANARIES
    )
    groups = tuple(
        replace(timeline(side, threads=4), group=f"group_{number}") for number in range(12) for side in ("old", "new")
    )
    return replace(build(judgement, tuple(facts)), timelines=groups)
