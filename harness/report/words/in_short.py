"""What somebody who decides asks first: what the upgrade costs, and what nobody has tested."""

import math
from collections.abc import Iterator
from dataclasses import replace

from harness.core.devices import CPU
from harness.core.measurement import RatioEstimate
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import Fix
from harness.report.words.to_upgrade import BLOCKING
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.inputs import UNTESTED_BRANCH, UNTESTED_METHOD
from harness.verdict.mitigation import SLOWER_FROM, price_words

NAMED = 3
# What requests leave open of a model that passes.
MISSED = {
    UNTESTED_METHOD: "methods that no request reaches, of",
    UNTESTED_BRANCH: "branches with an operator that has changed, of",
}
MACHINES = "machines: not known without your traffic"


def in_short(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return what stands first wherever somebody decides, as labelled texts; empty for a run of one cell."""
    both = (("cost", cost_in_short(report)), ("untested", untested_in_short(report)))
    return tuple((label, words) for label, words in both if words)


def cost_in_short(report: RunReport) -> str:
    """Return what a call costs on average, then each fix that blocking causes need; empty for a run of one cell."""
    if report.judgement.of_cell:
        return ""
    mean, timed = mean_of_timed(report)
    fixes = {cause.remedy.name: cause.remedy for cause in report.causes if cause.status in BLOCKING and cause.remedy}
    prices = [f"{name} {_price(fix)}" for name, fix in fixes.items()]
    as_is = " before any fix" if prices else ""
    calls = f"a call {mean.words}, mean of {counted(timed, 'timed model')}{as_is}" if mean is not None else "not timed"
    return "; ".join([calls, *prices[:NAMED], MACHINES])


def _price(fix: Fix) -> str:
    """Return a price as its step says it, but of no difference the numbers."""
    if fix.price is not None and fix.price.ratio < SLOWER_FROM:
        return fix.price.words
    return price_words(replace(fix, call_s=None))


def mean_of_timed(report: RunReport) -> tuple[RatioEstimate | None, int]:
    """Return the geometric mean of the steady calls, new over old, of how many models; None without any.

    Its interval is as wide as if all models erred alike, as what disturbs a machine makes them.
    """
    shown = [model.latency.shown for model in report.models if model.latency is not None]
    ratios = [item for item in shown if item is not None and item.low > 0 and math.isfinite(item.high)]
    if not ratios:
        return None, 0
    ratio, low, high = (
        math.exp(math.fsum(math.log(getattr(item, name)) for item in ratios) / len(ratios))
        for name in ("ratio", "low", "high")
    )
    pairs, detectable = min(item.pairs for item in ratios), max(item.detectable for item in ratios)
    return RatioEstimate(ratio=ratio, low=low, high=high, pairs=pairs, detectable=detectable), len(ratios)


def untested_in_short(report: RunReport) -> str:
    """Return by name what a green answer would say nothing of; empty for a run of one cell."""
    return "" if report.judgement.of_cell else "; ".join(_untested(report))


def _untested(report: RunReport) -> Iterator[str]:
    if report.device == CPU.name:
        yield "GPU"
    if report.rollback is None:
        yield "rollback"
    elif report.rollback.method != "probed":
        yield "rollback (only read)"
    asked = {cell.scenario for cell in report.judgement.cells}
    others = [item.name for item in INITIALIZATIONS.values() if not (item.variant_of or item.graphs)]
    if missing := [name for name in others if name not in asked]:
        yield f"scenarios {first_few(missing, NAMED)}"
    if report.judgement.left_out:
        yield report.judgement.left_out
    if beside := report.unjudged:
        files = counted(len(beside), "file beside the models", "files beside the models")
        yield f"{files}: {first_few([f'{item.path} ({item.what})' for item in beside], NAMED)}"
    if guessed := [model.model for model in report.models if model.guessed]:
        yield f"own requests of {first_few(guessed, NAMED)} (guessed)"
    for kind, what in MISSED.items():
        missed = {
            cell.model: item.subject for cell in report.judgement.cells for item in cell.findings if item.kind == kind
        }
        if missed:
            yield f"{what} {first_few([f'{model} ({subject})' for model, subject in missed.items()], NAMED)}"
    if elsewhere := [row.model for row in report.judgement.rows if row.status is Status.UNSUPPORTED]:
        yield f"{first_few(elsewhere, NAMED)} (unsupported here)"
    if open_ := [row.model for row in report.judgement.rows if row.status is Status.INCONCLUSIVE]:
        yield f"{first_few(open_, NAMED)} (undecided)"
