"""How packages came through C++, beside each other and beside TorchScript -> findings, steps and costs. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from harness.checks.latency.limits import stands, suspected
from harness.checks.migration.facts import Served, Tried
from harness.checks.migration.words import difference_words, failure_words
from harness.core.measurement import LatencyMeasurement, Quantity, RatioEstimate, signed_percent
from harness.core.migration import Cost, Migrated, MigratedModel, Step
from harness.core.outcome import UNCLEAR
from harness.core.text import amount, counted, first_few
from harness.serving.scenarios import INITIALIZATIONS
from harness.serving.settings.mitigations import MITIGATIONS

# quantity of the benchmark -> what it is called beside a package; the steady call has an estimate of its own.
COSTS: Final[Mapping[str, str]] = {
    "p50": "steady",
    "load": "load",
    "first_calls": "first_calls",
    "request": "request",
    "peak_rss": "peak_rss",
}

NAMED = 3


def way_words(served: Served) -> str:
    """Return how packages were served, such as ``shared module, 4 runners``."""
    words = INITIALIZATIONS[served.scenario].words
    return words if served.runners == 1 else f"{words}, {counted(served.runners, 'runner')}"


class ServedFailure(NamedTuple):
    """A way of serving in which a package fails: its stable word, the reason, and what mitigates it."""

    kind: str
    reason: str
    advice: str


def failure_when_served(tried: Tried) -> ServedFailure | None:
    """Return a way of serving in which a package fails or answers otherwise, one without mitigation first; or None.

    A process that fails for the order of its loads or first calls fails by chance for one model or another: all that
    it serves are held back by it. What mitigates all ways is what a server needs.
    """
    failing = [way for way in tried.served if way.fails or way.beside]
    if not failing:
        return None
    served = min(failing, key=lambda way: (bool(way.mitigation), not way.fails))  # its own failure before a neighbour's
    how = way_words(served)
    words = f"{how}: {f'{served.beside} fails beside it' if served.beside else _failed(served)}"
    if served.mitigation:
        names = list(dict.fromkeys(name for way in failing for name in way.mitigation))
        mitigation, about = " and ".join(names), "; ".join(MITIGATIONS[name].about for name in names)
        return ServedFailure(f"without {mitigation}", words, f"verified: {mitigation} ({about})")
    outcome = served.result.outcome.value if served.result.failed else "answers otherwise"
    return ServedFailure(f"{outcome} in {how}", words, "")


def unclear_when_served(tried: Tried) -> str:
    """Return in which way of serving nothing could be told, as of a busy machine; empty if in none."""
    unclear = [served for served in tried.served if served.result.outcome in UNCLEAR]
    return f"{way_words(unclear[0])}: {unclear[0].result.outcome.value}" if unclear else ""


def _failed(served: Served) -> str:
    """Return in what a package fails, or answers otherwise; empty where in nothing."""
    result, noticed = served.result, served.served_otherwise
    how_often = f" in {served.failed_rounds} of {counted(served.rounds, 'round')}" if served.failed_rounds else ""
    if result.failed:
        return failure_words(result, served) + how_often
    if noticed is not None:
        return f"{noticed['different']} of {counted(noticed['calls'], 'answer')} under load are others than before"
    return difference_words(served.comparison)


def slower_words(tried: Tried) -> str:
    """Return how much slower a package's call surely is, else empty: above limit and floor, and confirmed."""
    timed = tried.timed
    if timed is None:
        return ""
    if not suspected(timed, tried.slower_by) or not stands(timed, tried.slower_by):
        return ""
    estimate, calls = timed.shown, timed.call_s
    assert estimate is not None, tried.model  # else nothing was suspected
    times = f" ({amount(calls[0], 's')} -> {amount(calls[1], 's')})" if calls is not None else ""
    return f"a warm call takes {estimate.words} beside TorchScript{times}"


def costs_of(timed: LatencyMeasurement | None) -> tuple[Cost, ...]:
    if timed is None:
        return ()
    quantities = timed.shown_quantities
    return tuple(
        _cost(name, quantities[known], timed.shown if known == "p50" else quantities[known].ratio)
        for known, name in COSTS.items()
        if known in quantities
    )


def _cost(name: str, quantity: Quantity, ratio: RatioEstimate | None) -> Cost:
    cost = Cost(quantity=name, unit=quantity.unit, torchscript=quantity.old, package=quantity.new)
    return cost if ratio is None else replace(cost, ratio=ratio.ratio, low=ratio.low, high=ratio.high)


def serving_steps(tried: Tried) -> Iterator[Step]:
    for served in tried.served:
        if not served.is_no_choice:
            yield Step(
                name=f"serve: {way_words(served)}",
                release=tried.release,
                outcome=served.result.outcome,
                reason=_failed(served),
                evidence=served.evidence,
            )


def warm_call(costs: Sequence[Cost]) -> Cost | None:
    return next((cost for cost in costs if cost.quantity == "steady" and cost.ratio is not None), None)


def price_words(models: Sequence[MigratedModel]) -> str:
    """Return what a warm call of packages that fail when served takes beside TorchScript; empty where none was timed.

    Served with what fixes them, that is their price. Of several models, those are named whose interval leaves 1 out; a
    middle of the others would be one of noise.
    """
    failing = [model for model in models if model.outcome is Migrated.FAILS_SERVED]
    timed = [(model.model, cost) for model in failing if (cost := warm_call(model.costs)) is not None]
    if not timed:
        return ""
    alone = f"a warm call takes {_change(timed[0][1])} beside TorchScript"
    price = alone if len(timed) == 1 else _price_of_several(timed)
    return price if len(timed) == len(failing) else f"{price} ({len(timed)} of {len(failing)} were timed)"


def _price_of_several(timed: Sequence[tuple[str, Cost]]) -> str:
    certain = [f"{name} {_change(cost)}" for name, cost in timed if _differs(cost)]
    if not certain:
        return f"a warm call of none of {len(timed)} certainly differs from that of TorchScript"
    others = len(timed) - len(certain)
    unclear = f"; of {counted(others, 'other')} no difference is certain" if others else ""
    return f"a warm call takes beside TorchScript: {first_few(certain, NAMED)}{unclear}"


def _change(cost: Cost) -> str:
    assert cost.ratio is not None
    change = f"{signed_percent(cost.ratio)} %"
    if cost.low is None or cost.high is None or not math.isfinite(cost.high):
        return change
    return f"{change} [{signed_percent(cost.low)}, {signed_percent(cost.high)}]"


def _differs(cost: Cost) -> bool:
    return cost.low is not None and cost.high is not None and not cost.low <= 1 <= cost.high
