"""Timelines and whole fleets for the page."""

from dataclasses import replace
from datetime import date

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.core.golden import Trust
from harness.core.hang import HangKind
from harness.core.machine import MachineDuringRun, MachineEvent
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Decision, Outcome, Status
from harness.core.plan import PolicyRule, PolicySettings
from harness.core.policy import Demand, PolicyReport, Regated, RegatedCell
from harness.core.probe import Span
from harness.core.report import BaselineReport, CellChange, CellTrend, ModelReport, RunReport
from harness.core.timeline import Timeline
from harness.core.verdict import CellVerdict, Finding, Judgement, RowVerdict, Ruled, Waiver, WaiverState, WaiverUse
from tests.unit.builders.reports import (
    PLANTED_DEFECTS,
    SCENARIOS,
    blocked,
    build,
    cell_id,
    healthy,
    latency,
    mitigated,
    passed,
    ratio,
)

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


def benchmark(model: str, steady: float = 1.02, rounds: int = 6) -> LatencyMeasurement:
    """Return a benchmark of several rounds, each a little apart from the one before."""
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


def fleet(models: int = 500, *, red_every: int = 10, prefix: str = "model_") -> RunReport:
    """Return a run of many models, each with a benchmark, some of them red with errors in every call."""
    rows: list[RowVerdict] = []
    facts: list[ModelReport] = []
    failing = blocked()
    source = next(row for row in failing.judgement.rows if row.status is Status.FAIL)
    for number in range(models):
        name = f"{prefix}{number:03d}"
        steady = 1 + (number * 37 % 100 - 50) / 1000
        found = replace(healthy(name, steady=steady), group=f"group_{number % 12}", latency=benchmark(name, steady))
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
        decision=Decision.BLOCKED, reason="some fail", exit_code=1, rows=tuple(rows), planted_defects=PLANTED_DEFECTS
    )
    groups = tuple(
        replace(timeline(side, threads=4), group=f"group_{number}") for number in range(12) for side in ("old", "new")
    )
    return replace(build(judgement, tuple(facts)), timelines=groups)


def governed(words: str = "known drift") -> RunReport:
    """Return a blocked run with waivers, a policy, a baseline and a restless machine; ``words`` is what people wrote."""
    report = blocked()
    first, second = report.judgement.rows[:2]
    cells = tuple(
        replace(
            cell,
            status=Status.XFAIL,
            judged=Status.FAIL,
            note=f"waived until 2027-01-01 by ada: {words}",
            ruled=(Ruled(kind=words, was="fail", now="warn", by=f"severity of {words}"),),
        )
        if cell.status is Status.FAIL
        else cell
        for cell in second.cells
    )
    rows = tuple(
        replace(second, cells=cells, status=Status.XFAIL) if row is second else row for row in report.judgement.rows
    )
    waived = next(cell for cell in cells if cell.status is Status.XFAIL)
    red = next(cell for cell in first.cells if cell.status is Status.FAIL)
    return replace(
        report,
        judgement=replace(report.judgement, rows=rows),
        waivers=_waivers(words, waived.cell, second.model),
        policy=_policy(words),
        baseline=BaselineReport(
            run=words,
            started_at="2026-11-14T10:00:00+00:00",
            decision=Decision.OK_WITH_MITIGATION,
            differences=(words,),
            other_artifacts=(first.model,),
            changes=(
                changed(red.cell, red.model, CellTrend.NEW, Status.PASS, Status.FAIL),
                changed(waived.cell, waived.model, CellTrend.FLAKY, Status.PASS, Status.XFAIL, why=words),
                changed("gone/backward/alone/cpu/default", "gone", CellTrend.GONE, Status.FAIL, None),
            ),
            counts={"new": 1, "flaky": 1, "gone": 1, "unchanged": 9},
        ),
        trust=(
            Trust(
                model=first.model,
                record="9f2c" * 16,
                release="2.1.2",
                reason=words,
                accepted=date(2026, 10, 2),
                by="grace",
                run="2026-10-01-run",
            ),
        ),
        during_run=MachineDuringRun(
            seconds=60.0, events=(MachineEvent(name="steal time", read=words, so_what=words, do_this=words),)
        ),
    )


def changed(
    cell: str, model: str, change: CellTrend, was: Status | None, now: Status | None, *, why: str = ""
) -> CellChange:
    """Return what became of a cell of the scenario ``alone``."""
    return CellChange(cell=cell, model=model, scenario="alone", change=change, was=was, now=now, why=why)


def _waivers(words: str, cell: str, model: str) -> tuple[WaiverUse, ...]:
    waiver = Waiver(
        model=model,
        kind="values",
        reason=words,
        owner="ada",
        expires=date(2027, 1, 1),
        issue="https://example.org/issues/8",
        bound=1e-3,
        new="~=2.6.0",
    )
    nowhere = replace(waiver, model=words, kind="hang", issue="", bound=None, new="", expires=date(2025, 1, 1))
    return (
        WaiverUse(waiver=waiver, state=WaiverState.USED, cells=(cell,), size=2e-4, days_left=9),
        WaiverUse(waiver=nowhere, state=WaiverState.EXPIRED, broad=("any pair of releases",), days_left=-9),
    )


def _policy(words: str) -> PolicyReport:
    settings = PolicySettings(
        limits={"steady": 1.05, "error": 1e-4, "p99": 1.3},
        severity={"memory": "fail"},
        rules=(PolicyRule(models=words, limits={"steady": 1.1}, severity={"values": "warn"}),),
        required_scenarios=("alone",),
        minimum_coverage=0.95,
        unused_waivers="fail",
    )
    return PolicyReport(
        source=words,
        settings=settings,
        steady=1.03,
        undecided=1.25,
        demands=(
            Demand(what="95 % of the selected models judged", found="5 of 6", met=False),
            Demand(what="a verdict in load and calls", found=words, met=True),
        ),
        notes=(words,),
        regated=Regated(
            decision=Decision.UPGRADE_OK,
            reason=words,
            exit_code=0,
            changes=(RegatedCell(cell="m/backward/alone", was=Status.PASS, now=Status.FAIL, why=words),),
            why=words,
        ),
    )


def crowded(models: int = 500) -> RunReport:
    """Return a run in which every cell of every model is red, with many long findings, stories and names."""
    report = fleet(models, red_every=1)
    long = " ".join(f"\N{ROCKET} {number} is another one in <this> place" for number in range(40))
    found = tuple(
        Finding(
            kind=kind, message=long, where=long[:80], evidence="probes/5d/stacks.txt", story=30 * (("threads", long),)
        )
        for kind in 3 * ("values", "dtype", "nan_placement", "structure")
    )
    rows = tuple(
        replace(
            row,
            reason=long,
            cells=tuple(
                replace(cell, cell=cell_id(row.model, scenario), scenario=scenario, status=Status.FAIL, findings=found)
                for cell, scenario in zip(4 * row.cells, SCENARIOS, strict=False)
            ),
        )
        for row in report.judgement.rows
    )
    return replace(report, judgement=replace(report.judgement, rows=rows))
