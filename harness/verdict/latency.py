"""From the estimates of the paired benchmark to verdicts: on the steady call, and on every other quantity."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from harness.checks.latency.limits import (
    NOT_REGRESSED,
    REGRESSED,
    UNDECIDED,
    classify,
    confirms,
    gate_verdicts,
    is_beyond,
    limit_of,
    noise_reaches,
    recompiles,
    stands,
    suspected,
    tolerated,
    verdicts_beyond,
)
from harness.checks.latency.moderation import LEAST_MODELS
from harness.core.measurement import (
    CommonSlowdown,
    LatencyMeasurement,
    Shape,
    limit_words,
    signed_percent,
)
from harness.core.outcome import Status
from harness.core.plan import FLOOR, OWN, Cell, LatencyBudget, PolicySettings
from harness.core.quantities import COMMON, QUANTITIES, STEADY, parts_of, quantity_words
from harness.core.text import amount, counted, first_few
from harness.core.verdict import CellVerdict, Finding
from harness.serving.scenarios import TIMING

NOT_CONFIRMED = "; not confirmed by fresh process pairs"
# A policy that weighs a kind by itself, and has no limit for it that fresh rounds would be asked about, is believed.
TRUSTED = ("fail", "inconclusive")


def quantity_findings(measurement: LatencyMeasurement, settings: PolicySettings) -> Iterator[Finding]:
    """Yield what the quantities beside the steady call give reason to tell, those that fail the model first."""
    gated = gate_verdicts(measurement, settings)
    for name, verdict in gated.items():
        kind, more = ("latency", "") if verdict == REGRESSED else ("latency_undecided", NOT_CONFIRMED)
        yield _quantity_finding(kind, name, measurement, settings, more)
    beyond = {name: verdict for name, verdict in verdicts_beyond(measurement, settings).items() if name not in gated}
    order = list(QUANTITIES)
    known: dict[str, str] = {}
    for name in sorted(beyond, key=lambda name: order.index(parts_of(name)[0])):
        measured = QUANTITIES[parts_of(name)[0]]
        covering = known.get(measured.covered_by)
        known[name] = REGRESSED if REGRESSED in (covering, beyond[name]) else UNDECIDED
        if covering in (REGRESSED, beyond[name]):
            continue
        sure = beyond[name] == REGRESSED or settings.severity.get(measured.kind) in TRUSTED
        kind, more = (measured.kind, "") if sure else ("not_confirmed", NOT_CONFIRMED)
        yield _quantity_finding(kind, name, measurement, settings, more)
    yield from _growth(measurement)
    yield from _recompilations(measurement)
    yield from _lost(measurement.missing)


def _quantity_finding(
    kind: str, name: str, measurement: LatencyMeasurement, settings: PolicySettings, more: str
) -> Finding:
    item, limit = measurement.quantities[name], limit_of(name, settings)
    ratio = f" {item.ratio.words}" if item.ratio is not None else ""
    bound = f", limit {limit_words(limit)}" if limit is not None else ""
    change = f"{amount(item.old, item.unit)} -> {amount(item.new, item.unit)}"
    return Finding(
        kind=kind,
        message=f"{quantity_words(name)}{ratio} ({change}){bound}{more}",
        size=item.ratio.ratio if item.ratio is not None else None,
        quantity=name,
        limit=limit,
    )


def _growth(measurement: LatencyMeasurement) -> Iterator[Finding]:
    if "growth" in measurement.quantities and is_beyond("growth", measurement, None):
        growth = measurement.quantities["growth"]
        yield Finding(
            kind="memory_growth",
            message=f"resident memory grows by {amount(growth.new, 'bytes')} per call, "
            f"{amount(max(0.0, growth.old), 'bytes')} before",
            quantity="growth",
        )


def _recompilations(measurement: LatencyMeasurement) -> Iterator[Finding]:
    for name, calls in measurement.quantities.items():
        quantity, input_set = parts_of(name)
        if quantity != "recompilation" or not recompiles(input_set, measurement):
            continue
        cost = measurement.quantities[f"new_shape:{input_set}"]
        yield Finding(
            kind="recompilation" if is_beyond(name, measurement, None) else "recompiles",
            message=f"the first calls of input set {input_set} cost {calls.new:.0f} warm calls more, "
            f"{calls.old:.0f} before: {amount(cost.old, 's')} -> {amount(cost.new, 's')}",
        )


def _lost(missing: Mapping[str, tuple[str, str]]) -> Iterator[Finding]:
    """Yield what the old release could tell and the new one could not; what neither could is nothing to tell."""
    for name, (old, new) in missing.items():
        if new and not old:
            message = f"{quantity_words(name)}: measured in the old release, not in the new: {new.splitlines()[0]}"
            yield Finding(kind="quantity_lost", message=message)


def judge_latency(
    model: str, measurement: LatencyMeasurement | None, budget: LatencyBudget, settings: PolicySettings
) -> CellVerdict:
    """Return the verdict on one model's latency.

    The steady call fails it if its interval lies wholly above what is tolerated (the limit, and the floor), fresh
    rounds confirm it, and the old release does not differ from itself by as much. Where fresh rounds lie below the
    limit they are believed: the suspicion was chosen for its size, they were not. Under ``policy.latency = "own"`` such
    a model passes only if its own part surely lies below the limit. Other quantities are told, or fail it where
    their limit gates and fresh rounds confirm it.
    """
    if measurement is not None and measurement.out_of_time and measurement.steady is None:
        message = f"steady latency was not looked at: time was over before its first {budget.looks[0]} rounds"
        return _verdict(model, Status.INCONCLUSIVE, [Finding(kind="latency_undecided", message=message)])
    if measurement is None or measurement.steady is None:
        problem = measurement.problem if measurement is not None else ""
        message = f"steady latency was not measured: {problem or 'no sample'}"
        finding = Finding(kind="not_measured", message=message, subject=STEADY)
        return _verdict(model, Status.INCONCLUSIVE, [finding], decides=bool(problem))
    if measurement.problem:
        message = f"the benchmark was lost after {measurement.steady.pairs} rounds: {measurement.problem}"
        return _verdict(model, Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message, subject=STEADY)])
    findings, limit = list(quantity_findings(measurement, settings)), tolerated(measurement, budget)
    words = tolerated_words(measurement, budget)
    verdict = REGRESSED if suspected(measurement, limit) else classify(measurement.steady, limit)
    open_from = max(budget.undecided_limit, 1 + limit)
    if verdict == REGRESSED and stands(measurement, limit):
        own = classify(measurement.own, limit) if settings.latency == OWN and measurement.own is not None else REGRESSED
        if own == REGRESSED:
            findings.insert(0, replace(_regression(measurement, words), limit=1 + limit))
        elif own == UNDECIDED:
            findings.insert(0, _own_undecided(measurement, words))
            open_from = 0.0  # that it is too slow is known: whose the time is must be too
    elif verdict != NOT_REGRESSED and confirms(measurement.confirmation, 1 + limit) != NOT_REGRESSED:
        findings.insert(0, _undecided(measurement, verdict, limit, words))
    kinds, note = {finding.kind for finding in findings}, below_floor(measurement, budget)
    if "latency" in kinds:
        return _verdict(model, Status.FAIL, findings, note=note)
    if "latency_undecided" in kinds:
        return _verdict(model, Status.INCONCLUSIVE, findings, decides=measurement.steady.high >= open_from, note=note)
    return _verdict(model, Status.PASS, findings, note=note)


def judge_common(common: CommonSlowdown | None, budget: LatencyBudget, settings: PolicySettings) -> Finding | None:
    """Return the finding on what the release costs all models, where its interval lies wholly above its limit.

    As for one model, it must cost one of the calls the floor at least, and two processes of the old release must not
    differ by as much in common.
    """
    if common is None or _common_verdict(common, budget, settings) != REGRESSED:
        return None
    message = f"{common_words(common)}, limit {limit_words(settings.limits.get(COMMON, 1 + budget.common_limit))}"
    return Finding(
        kind="common_slowdown", message=message, rule="random effects over the models", size=common.ratio.ratio
    )


def may_be_taken_off(common: CommonSlowdown | None, budget: LatencyBudget, settings: PolicySettings) -> bool:
    """Whether what all models share was judged by itself: only then may a model be judged by what it has beyond it."""
    return common is not None and _common_verdict(common, budget, settings) != UNDECIDED


def _common_verdict(common: CommonSlowdown, budget: LatencyBudget, settings: PolicySettings) -> str:
    limit = settings.limits.get(COMMON, 1 + budget.common_limit) - 1
    verdict = classify(common.ratio, limit)
    as_one = LatencyMeasurement(model="", samples=(), steady=common.ratio, same_against_same=common.control)
    below_the_floor = verdict == REGRESSED and common.call_s < settings.limits.get(FLOOR, budget.floor_s)
    return UNDECIDED if below_the_floor or noise_reaches(as_one, limit) else verdict


def why_common_is_open(common: CommonSlowdown | None, budget: LatencyBudget, settings: PolicySettings) -> str:
    """Return why it is not known whether what all models share is within its limit; empty where it is."""
    if common is None:
        return f"what the release costs all models was not estimated: that takes {LEAST_MODELS} that are timed together"
    limit = limit_words(settings.limits.get(COMMON, 1 + budget.common_limit))
    return "" if may_be_taken_off(common, budget, settings) else f"not decided: {common_words(common)}, limit {limit}"


def is_shared(common: CommonSlowdown) -> bool:
    """Whether the own parts spread by no more than half of it: about 95 % of the models have some of it then."""
    return 2 * common.spread <= abs(math.log(common.ratio.ratio))


def common_words(common: CommonSlowdown) -> str:
    """Return what the release costs all models, in words, and what that looks like where the data tell."""
    looks_like = {Shape.SHARE: ", a share of each call", Shape.UNKNOWN: ""}.get(common.shape)
    if looks_like is None:
        looks_like = f", {amount(abs(common.per_operator_s or 0.0), 's')} per operator call"
    return (
        f"what all {len(common.models)} timed models {'share' if is_shared(common) else 'have on average'}: "
        f"steady latency {common.ratio.words}{looks_like}, up to {amount(abs(common.call_s), 's')} of a call"
    )


def common_notes(common: CommonSlowdown | None, latency: Mapping[str, LatencyMeasurement]) -> Iterator[str]:
    """Yield what a reader must know of the variances that the models of a run share."""
    if common is not None:
        control = f"; two processes of the old release: {common.control.words}" if common.control is not None else ""
        apart = f"; left out, for their own part stands out: {first_few(common.apart, 3)}" if common.apart else ""
        yield f"{common_words(common)}{control}{apart}"
    if len(latency) >= LEAST_MODELS and common is None:
        yield (
            f"what the release costs all models was not estimated: that takes {LEAST_MODELS} that are timed in the "
            "same rounds, in a run that repeats no cells"
        )
    if latency and not any(measurement.lenders for measurement in latency.values()):
        count = counted(len(latency), "model was", "models were")
        yield f"{count} timed: too few to say how much rounds usually vary, so each interval rests on its own rounds"


def _verdict(
    model: str, status: Status, findings: list[Finding], *, decides: bool = True, note: str = ""
) -> CellVerdict:
    return CellVerdict(
        cell=Cell(model, TIMING).id,
        model=model,
        scenario=TIMING,
        status=status,
        findings=tuple(findings),
        note=note,
        decides=decides,
    )


def below_floor(measurement: LatencyMeasurement, budget: LatencyBudget) -> str:
    shown, calls = measurement.shown, measurement.call_s
    if shown is None or calls is None or shown.low <= 1 or shown.ratio <= 1 + budget.limit:
        return ""
    more_s = (shown.ratio - 1) * calls[0]
    if more_s >= budget.floor_s:
        return ""
    return f"{shown.words}, {amount(more_s, 's')} per call: below the floor of {amount(budget.floor_s, 's')}"


def tolerated_words(measurement: LatencyMeasurement, budget: LatencyBudget) -> str:
    """Return the limit in words: ``+5 %``, or ``+40 % (20 us of 50 us)`` where the floor is above it."""
    limit, calls = tolerated(measurement, budget), measurement.call_s
    words = limit_words(1 + limit)
    if limit <= budget.limit or calls is None:
        return words
    return f"{words} ({amount(budget.floor_s, 's')} of {amount(calls[0], 's')})"


def _regression(measurement: LatencyMeasurement, limit: str) -> Finding:
    steady, fresh, calls = measurement.steady, measurement.confirmation, measurement.call_s
    assert steady is not None
    assert fresh is not None
    times = f" ({amount(calls[0], 's')} -> {amount(calls[1], 's')})" if calls is not None else ""
    own = f"; its own part is {measurement.own.words}" if measurement.own is not None else ""
    message = (
        f"steady latency {fresh.words}{times} over {counted(fresh.pairs, 'fresh process pair')}, limit {limit}; "
        f"the {counted(steady.pairs, 'pair')} before them said {steady.words}{own}"
    )
    return Finding(
        kind="latency", message=message, rule="benchmark, confirmed by fresh pairs", size=fresh.ratio, quantity=STEADY
    )


def _own_undecided(measurement: LatencyMeasurement, limit: str) -> Finding:
    shown, own = measurement.shown, measurement.own
    assert shown is not None
    assert own is not None
    message = (
        f"steady latency {shown.words} is beyond the limit of {limit}; of its own part, {own.words}, nobody can tell"
    )
    return Finding(kind="latency_undecided", message=message, size=own.ratio)


def _undecided(measurement: LatencyMeasurement, verdict: str, limit: float, words: str) -> Finding:
    steady, fresh, same = measurement.steady, measurement.confirmation, measurement.same_against_same
    assert steady is not None
    if measurement.out_of_time:
        reached = (measurement.confirmation or steady).detectable
        why = f"; time was over: a difference of +-{100 * (reached - 1):.1f} % could have been seen"
    elif verdict != REGRESSED:
        seen = signed_percent((1 + limit) * steady.detectable)
        why = f"; it would have told a slowdown of {seen} % half of the time"
    elif fresh is None:
        why = "; it was not confirmed by fresh process pairs"
    elif noise_reaches(measurement, limit) and same is not None:
        why = f"; two processes of the old release differ by {same.words} themselves"
    else:
        why = f"; {counted(fresh.pairs, 'fresh process pair')} say {fresh.words}"
    message = f"steady latency {steady.words} is not decided against the limit of {words}{why}"
    shown = measurement.shown
    return Finding(kind="latency_undecided", message=message, size=shown.ratio if shown is not None else None)
