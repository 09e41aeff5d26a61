"""``gate`` gives the answer that the run itself would have given under the same policy and waivers."""

import datetime
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from harness.verdict.waivers.apply import Ran
from harness.config.policy import Tagged, policy_of
from harness.checks.outputs.findings import output_findings
from harness.verdict.demands import demands, unmet
from harness.verdict.enforce import WaiverContext, enforce, judge_timed, settled
from harness.verdict.decide import decide, judge_row
from harness.verdict.regate import regate
from harness.verdict.waivers.entries import WAIVER_KINDS
from harness.verdict.waivers.uses import waiver_uses
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.findings import MEASURES, SEVERITY, status_of
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicyRule, PolicySettings
from harness.core.policy import ModelPolicy, PolicyReport
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Finding, Judgement, Waiver
from harness.report.json.report import dump_report, load_report
from tests.unit.builders.verdicts import (
    call,
    planted_defect,
    compared,
    equal,
    measured,
    ratio,
    tensor,
    verdict,
)
from tests.unit.builders.reports import build, healthy, quantity

DAY = datetime.date(2026, 6, 1)
RAN = Ran("2.1.2", "2.6.0", "cpu", "default")
TAGS = {"a": (), "b": ("tagged",)}
KINDS = [kind for kind in SEVERITY if kind not in (*WAIVER_KINDS, "error_limit", "broken_since")]
NOTES = ("", "fails: x; waived until noon", "the waiver of y", "values counts as warn in place of fail: p")


class Found(NamedTuple):
    """What a run has found of one model."""

    cells: list[CellVerdict]
    comparisons: tuple[OutputComparison, ...]
    latency: LatencyMeasurement | None


def found_of(name: str, chance: random.Random) -> Found:
    cells, comparisons = [], []
    for scenario in ("alone", *chance.sample(["concurrent", "while_serving"], chance.randint(0, 2))):
        note = chance.choice(NOTES)
        if chance.random() < 0.5:
            outputs = [_tensor(path, chance) for path in ("output[0]", "output[1]")]
            comparison = replace(compared(call(*outputs), call(*outputs[:1], index=1)), model=name, scenario=scenario)
            comparisons.append(comparison)
            findings = output_findings(comparison)
        else:
            kinds = chance.sample(KINDS, chance.randint(0, 3))
            findings = tuple(Finding(kind=k, message=k, size=chance.choice([None, 1e-3, 1.5])) for k in kinds)
        status = chance.choice([status_of(findings)] * 4 + [Status.INCONCLUSIVE, Status.SAME_FAIL, Status.UNSUPPORTED])
        cells.append(verdict(status, *findings, model=name, scenario=scenario, note=note))
    return Found(cells, tuple(comparisons), _latency(name, chance) if chance.random() < 0.5 else None)


def _tensor(path: str, chance: random.Random) -> TensorMetrics:
    if chance.random() < 0.3:
        return equal(path=path)
    return tensor(
        path=path,
        dtype=chance.choice(["float32", "bfloat16", "int64"]),
        max_abs=chance.choice([1e-6, 1e-4, 1e-3, 0.1]),
        scale=chance.choice([0.0, 1.0]),
        noise_abs=chance.choice([None, 1e-3]),
        nan_mismatches=chance.choice([0, 0, 0, 1]),
        sampled=chance.random() < 0.1,
    )


def _latency(name: str, chance: random.Random) -> LatencyMeasurement:
    low = chance.choice([0.9, 0.99, 1.04, 1.1])
    quantities = {key: quantity(1.0, chance.choice([1.0, 1.3, 3.0])) for key in ("load", "p99", "peak_rss")}
    steady = ratio(low, low + chance.choice([0.01, 0.3]))
    fresh = {key: quantity(1.0, chance.choice([1.0, 3.0])) for key in quantities}
    confirmation = ratio(1.0, 1.02) if chance.random() < 0.3 else steady
    return measured(steady, model=name, confirmation=confirmation, quantities=quantities, fresh_quantities=fresh)


def policy(chance: random.Random) -> PolicySettings:
    def limits() -> dict[str, float]:
        possible = {"error": [1e-5, 1e-3, 0.5], "steady": [1.01, 1.05, 1.2], "load": [1.2, 2.0]}
        return {key: chance.choice(values) for key, values in possible.items() if chance.random() < 0.4}

    def severity(many: int) -> dict[str, str]:
        return {kind: chance.choice(["fail", "inconclusive", "warn", "info"]) for kind in chance.sample(KINDS, many)}

    return PolicySettings(
        limits=limits(),
        severity=severity(chance.choice([0, 0, 3, 12])),
        rules=tuple(
            PolicyRule(models=models, limits=limits(), severity=severity(2))
            for models in chance.sample(["a", "not a", "tagged"], chance.randint(0, 2))
        ),
        gates=tuple(chance.sample(["load", "p99"], chance.choice([0, 0, 1]))),
        unused_waivers=chance.choice(["warn", "fail"]),
        minimum_coverage=chance.choice([0.0, 0.5]),
        required_scenarios=chance.choice([(), ("concurrent",), ("latency",)]),
    )


def waivers(chance: random.Random) -> tuple[Waiver, ...]:
    kinds = [chance.choice(["values", "late_divergence", *KINDS]) for _ in range(chance.choice([0, 1, 8]))]
    return tuple(
        Waiver(
            model=chance.choice("ab"),
            kind=kind,
            reason=chance.choice(["known", "x; waived until; y"]),
            owner="ann",
            expires=DAY + datetime.timedelta(days=chance.choice([-1, 0, 5])),
            bound=chance.choice([None, 1.2]) if kind in MEASURES else None,
            new=chance.choice(["", "~=2.6.0", "~=2.7.0"]),
            scenario=chance.choice(["", "alone"]),
        )
        for kind in kinds
    )


def policies(settings: PolicySettings) -> dict[str, ModelPolicy]:
    return {name: policy_of(settings, Tagged(name, tags)) for name, tags in TAGS.items()}


def judged(found: dict[str, Found], settings: PolicySettings, known: Sequence[Waiver]) -> RunReport:
    """Return the report of a run that has found this, judged as ``harness/verdict/cells.py`` does."""
    context, own = WaiverContext(waivers=known, ran=RAN, today=DAY), policies(settings)
    verdicts = {}
    for name, (cells, comparisons, latency) in found.items():
        timed = [judge_timed(name, latency, LatencyBudget(), own[name], divided=False)] if latency else []
        of = {comparison.scenario: comparison for comparison in comparisons}
        verdicts[name] = [enforce(cell, own[name], context, comparison=of.get(cell.scenario)) for cell in cells + timed]
    rows = [judge_row(name, cells) for name, cells in settled(verdicts, settings, context).items()]
    asked = demands(settings, rows, own)
    models = tuple(
        replace(healthy(name), latency=item.latency, comparisons=item.comparisons) for name, item in found.items()
    )
    report = build(decide(rows, (planted_defect(),), unmet=unmet(asked)), models)
    uses = waiver_uses([cell for row in rows for cell in row.cells], known, RAN, DAY)
    budget = LatencyBudget()
    told = PolicyReport(
        source="run",
        settings=settings,
        steady=1 + budget.limit,
        undecided=budget.undecided_limit,
        floor_s=budget.floor_s,
        demands=asked,
    )
    return replace(report, policy=told, waivers=uses)


def more_rounds(first: RunReport, wanted: RunReport) -> bool:
    """Whether the benchmark of the first run ended before it could tell the limit of another policy."""
    cells = [[cell for row in report.judgement.rows for cell in row.cells] for report in (first, wanted)]
    stands = [[cell.judged or cell.status for cell in found if cell.scenario == "latency"] for found in cells]
    return any(was is not now and now is Status.INCONCLUSIVE for was, now in zip(*stands, strict=True))


def without_order(judgement: Judgement) -> Judgement:
    """Return a judgement that does not say which of two things that weigh the same was told first."""
    rows = []
    for row in judgement.rows:
        cells = [
            replace(
                cell,
                findings=tuple(sorted(cell.findings, key=repr)),
                ruled=tuple(sorted(cell.ruled, key=repr)),
                waived=tuple(sorted(cell.waived, key=repr)),
                note="".join(sorted(cell.note)),
            )
            for cell in row.cells
        ]
        rows.append(replace(row, cells=tuple(cells), reason=""))
    return replace(judgement, rows=tuple(rows), reason="")


@pytest.mark.parametrize("seed", range(20))
def test_gate_judges_a_run_of_another_policy_as_the_run_would_have(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        found = {name: found_of(name, chance) for name in TAGS}
        first = judged(found, policy(chance), waivers(chance))
        settings, known = policy(chance), waivers(chance)
        wanted = judged(found, settings, known)
        stored = load_report(dump_report(first), file="report.json")
        context = WaiverContext(waivers=known, ran=RAN, today=DAY)
        if not more_rounds(first, wanted):
            again = regate(stored, settings, policies(settings), context, source="policy.toml")
            assert without_order(again.judgement) == without_order(wanted.judgement)
            assert again.waivers == wanted.waivers
        same = regate(wanted, settings, policies(settings), context, source="policy.toml")
        assert without_order(same.judgement) == without_order(wanted.judgement)
