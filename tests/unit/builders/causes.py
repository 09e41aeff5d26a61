"""Runs whose red cells have causes: a hundred of three, beside models that are undecided, faster or slow to start."""

from collections.abc import Sequence
from dataclasses import replace

from harness.core.verdict import Beyond, Cause
from harness.core.measurement import Quantity, RatioEstimate
from harness.core.outcome import Decision, Outcome, Status
from harness.core.report import ModelReport, RunReport
from harness.core.verdict import CellVerdict, Finding, Judgement, RowVerdict
from tests.unit.builders.pages import benchmark, comparison, tensor
from tests.unit.builders.reports import PLANTED_DEFECTS, RUN, build, healthy, passed, scenario, scenario_side, verdict

OPERATOR, SLOWER, SETTING = "operator-aten::_lanczos2d_aa", "slowdown-common", "setting-matmul-precision"


def timed(name: str, change: float, p50_s: float = 0.002, half: float = 0.01) -> ModelReport:
    """Return a model that is slower by ``change``; its call takes ``p50_s`` in the old release."""
    ratio = RatioEstimate(ratio=1 + change, low=1 + change - half, high=1 + change + half, pairs=3, detectable=1.02)
    measured = benchmark(name, 1 + change, rounds=3)
    p50 = Quantity(old=p50_s, new=p50_s * (1 + change), ratio=ratio)
    measured = replace(measured, steady=ratio, quantities={**measured.quantities, "p50": p50})
    return replace(healthy(name), latency=measured)


def of_three_causes(cells: int = 100, healthy_models: int = 65) -> RunReport:
    """Return a run with ``cells`` red ones of three causes: no longer loads, slower, and other numbers."""
    rows: list[RowVerdict] = []
    models: list[ModelReport] = []
    behind: dict[str, list[CellVerdict]] = {OPERATOR: [], SLOWER: [], SETTING: []}
    for number in range(cells):
        which = tuple(behind)[number % 3]
        name = f"{('thumbnail', 'ranker', 'embedder')[number % 3]}_{number:03d}"
        change = 0.19 - 0.001 * number if which == SLOWER else 0.004 * (number % 5)
        facts = timed(name, change, 0.00002 * 1.09**number)
        cell, facts = _red(which, name, change, facts)
        behind[which].append(cell)
        others = [verdict(name, scenario) for scenario in ("alone", "latency") if scenario != cell.scenario]
        own = (cell,) if which == OPERATOR else (*others, cell)
        rows.append(RowVerdict(model=name, status=Status.FAIL, cells=own, reason=cell.findings[0].message))
        models.append(facts)
    for number in range(healthy_models):
        name, change = f"model_{number:02d}", (number * 37 % 41 - 30) / 400
        models.append(timed(name, change, 0.00001 * 1.16**number, half=0.004 + 0.05 * (number % 3 == 0)))
        rows.append(passed(name) if number % 3 else _undecided(name))
    slow = scenario("while_serving", "ranking", 65, new=scenario_side(65, init_s=101.0))
    assert slow.old is not None
    slow = replace(slow, old=replace(slow.old, init_s=67.0))
    judgement = Judgement(
        decision=Decision.BLOCKED,
        reason=f"{cells} of {cells + healthy_models} models fail, of three causes",
        exit_code=1,
        rows=tuple(rows),
        planted_defects=PLANTED_DEFECTS,
    )
    report = build(judgement, tuple(models), scenarios=(scenario("concurrent", "ranking", 65), slow))
    return replace(report, causes=causes(behind), limits={"steady": 1.03, "initialization": 1.25})


def causes(behind: dict[str, list[CellVerdict]]) -> tuple[Cause, ...]:
    """Return the three causes over these cells."""
    return (
        _cause(
            OPERATOR,
            "operator",
            "aten::_lanczos2d_aa is unknown to torch 2.6.0",
            behind[OPERATOR],
            evidence=(("operator", "aten::_lanczos2d_aa, code/__torch__/net.py:12, in __torch__.net.Net.forward"),),
        ),
        _cause(
            SLOWER,
            "slowdown",
            "calls are slower, by 20 us each",
            behind[SLOWER],
            excess=6.3,
            beyond=Beyond(value=1.19, allowed=1.03, is_ratio=True),
            evidence=(("measured", "+19.0 % [+18.0, +20.0] over 3 process pairs, limit +3 %"),),
            fix="profiling off mitigates 30 of 33; steady latency +1.0 % [-0.2, +2.2]",
        ),
        _cause(
            SETTING,
            "setting",
            "matmul precision is high in torch 2.6.0, highest in torch 2.1.2",
            behind[SETTING],
            excess=511.0,
            beyond=Beyond(value=0.0098, allowed=1.92e-5, is_ratio=False),
            evidence=(("numbers", "max |d| 3.12e-02, 511 x the tolerance"),),
            fix="set torch.set_float32_matmul_precision('highest')",
        ),
    )


def _cause(id_: str, kind: str, title: str, cells: Sequence[CellVerdict], **more: object) -> Cause:
    return Cause(
        id=id_,
        kind=kind,
        status=Status.FAIL,
        title=title,
        cells=tuple(cell.cell for cell in cells),
        models=tuple(dict.fromkeys(cell.model for cell in cells)),
        commands=(("rerun", f"python -m harness rerun {RUN} --cause {id_}"),),
        **more,  # type: ignore[arg-type]
    )


def _red(which: str, name: str, change: float, facts: ModelReport) -> tuple[CellVerdict, ModelReport]:
    """Return the red cell of one cause, and the facts of its model."""
    if which == OPERATOR:
        message = "RuntimeError: Unknown builtin op: aten::_lanczos2d_aa"
        facts = replace(facts, load=Outcome.LOAD_ERROR, outputs="", latency=None, load_s=None, first_calls_s=None)
        return verdict(name, "alone", Status.FAIL, Finding(kind="load_error", message=message, error=message)), facts
    if which == SLOWER:
        message = f"steady latency {change * 100:+.1f} % over 3 process pairs, limit +3%"
        finding = Finding(
            kind="latency",
            message=message,
            rule="benchmark, confirmed by fresh pairs",
            size=1 + change,
            quantity="steady",
        )
        return verdict(name, "latency", Status.FAIL, finding), facts
    message = "max |d| 3.12e-02, 511 x the tolerance"
    finding = Finding(kind="values", message=message, rule="scaled tolerance", size=0.03)
    compared = comparison(tensor(max_abs=5.11e-3 * (1 - change)))
    facts = replace(facts, outputs="off 3e-02", worst_relative=0.03, comparisons=(compared,))
    return verdict(name, "alone", Status.FAIL, finding), facts


def _undecided(name: str) -> RowVerdict:
    finding = Finding(kind="latency_undecided", message="between -1 % and +6 %, limit +3 %", size=1.06)
    open_ = replace(verdict(name, "latency", Status.INCONCLUSIVE, finding), decides=False)
    return RowVerdict(model=name, status=Status.PASS, cells=(verdict(name, "alone"), open_))
