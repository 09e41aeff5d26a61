"""Runs with planted causes: red cells that have something in common, and twins that look alike and have not."""

from collections.abc import Sequence
from dataclasses import replace

from harness.verdict.causes import with_causes
from harness.verdict.decide import decide, judge_row
from harness.core.outcome import Status
from harness.core.prediction import PredictedLoad, Prediction
from harness.core.report import ModelReport, RunReport
from harness.core.verdict import CellVerdict, Finding, Mitigation, Standstill
from tests.unit.builders.reports import (
    PLANTED_DEFECTS,
    build,
    healthy,
    latency,
    passed,
    predicted,
    ratio,
    static,
    static_finding,
    verdict,
)

DEADLOCK = "threads 1 and 2, unchanged: pthread_mutex_lock < ProfilingGraphExecutorImpl::getPlanFor < Module::forward"
SPIN = "thread 0, moving: Expr::clone x 31 < IRSimplifierBase::mutate x 214 < TensorExprKernel::compile"


def red(model: str, kind: str, message: str, scenario: str = "alone", **more: object) -> CellVerdict:
    """Return a cell that fails for one finding."""
    return verdict(model, scenario, Status.FAIL, replace(Finding(kind=kind, message=message), **more))  # type: ignore[arg-type]


def raised(model: str, kind: str, error: str, scenario: str = "alone") -> CellVerdict:
    """Return a cell of a model that fails because torch has raised an error."""
    return red(model, kind, f"raises in torch 2.6.0, {scenario}: {error}", scenario, error=error)


def hang(model: str, frames: str, scenario: str = "concurrent") -> CellVerdict:
    """Return a cell that hangs in these frames: ``"thread 0, moving: inner < outer"``."""
    stack = tuple(frames.partition(": ")[2].split(" < "))
    where = {"story": (("frames", frames),), "standstill": Standstill(stacks=(stack,))}
    return red(model, "hang", "hangs in call (blocked) in torch 2.6.0", scenario, **where)


def slower(model: str, size: float) -> CellVerdict:
    """Return a latency that fails."""
    message = f"steady latency {ratio(size).words} (2.12 ms -> 2.38 ms) over 3 process pairs, limit +3%"
    return red(model, "latency", message, "latency", size=size, quantity="steady")


def undecided(model: str) -> CellVerdict:
    """Return a latency that could not be decided."""
    found = Finding(
        kind="latency_undecided", message=f"steady latency {ratio(1.04, 0.3).words} is not decided", size=1.04
    )
    return verdict(model, "latency", Status.INCONCLUSIVE, found)


def refused(model: str, operator: str) -> tuple[CellVerdict, ModelReport]:
    """Return a model whose artifact has an operator that the new release has not, as the static check predicted."""
    error = f"RuntimeError: Unknown builtin op: {operator}."
    missing = static_finding(operator, "torch 2.6.0 does not have it")
    told = predicted(missing, prediction=Prediction.FAILS, happened=PredictedLoad.REFUSED)
    told_so = red(model, "load_error", f"does not load in torch 2.6.0, alone: {error}", error=error)
    return told_so, replace(healthy(model, ""), static=static(told, model=model))


def run_of(
    cells: Sequence[CellVerdict],
    facts: Sequence[ModelReport] = (),
    *,
    healthy_models: int = 0,
    mitigations: Sequence[Mitigation] = (),
) -> RunReport:
    """Return the report of a run with these cells, and as many models more that pass."""
    names = list(dict.fromkeys(cell.model for cell in cells))
    rows = [
        judge_row(
            name,
            [cell for cell in cells if cell.model == name],
            [item for item in mitigations if item.model == name],
        )
        for name in names
    ]
    fine = [f"fine_{number:03}" for number in range(healthy_models)]
    rows += [passed(name) for name in fine]
    known = {model.model: model for model in facts}
    models = tuple(
        known.get(name) or replace(healthy(name), latency=latency(name, ratio(1.004))) for name in [*names, *fine]
    )
    report = build(decide(rows, PLANTED_DEFECTS), models)
    return with_causes(replace(report, limits={"steady": 1.03, "load": 1.5, "p90": 1.1}))


def of_three_causes() -> RunReport:
    """Return a run with 100 red cells of 80 models, and three causes."""
    lacking = [refused(f"legacy_{number:02}", "aten::_pad_packed_sequence_v0") for number in range(30)]
    hanging = [hang(f"ranker_{number:02}", DEADLOCK, name) for number in range(20) for name in ("concurrent", "reinit")]
    slow = [slower(f"vision_{number:02}", 1.04 + 0.002 * number) for number in range(30)]
    cells = [*(cell for cell, _ in lacking), *hanging, *slow]
    assert len(cells) == 100
    return run_of(cells, [facts for _, facts in lacking], healthy_models=20)


def of_forty_causes() -> RunReport:
    """Return a run in which forty models fail, each by itself."""
    return run_of([red(f"m{n:02}", "values", f"output: off by 0.{n:02}1 of its largest value") for n in range(40)])


def mitigated(cell: CellVerdict, name: str = "profiling off") -> Mitigation:
    """Return a switch that mitigates a cell."""
    return Mitigation(cell=cell.cell, model=cell.model, name=name, switches={}, mitigates=True, price=ratio(1.01))
