"""From the estimates of the paired benchmark to verdicts: on the steady call, and on every other quantity."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from harness.checks.latency.looks import look_from
from harness.checks.latency.moderation import LEAST_MODELS
from harness.core.measurement import (
    CommonSlowdown,
    LatencyMeasurement,
    Quantity,
    RatioEstimate,
    Shape,
    limit_words,
    signed_percent,
)
from harness.core.outcome import Status
from harness.core.plan import FLOOR, OWN, LatencyBudget, PolicySettings
from harness.core.quantities import COMMON, QUANTITIES, STEADY, quantity_words
from harness.core.text import MIB, amount, counted, first_few
from harness.core.verdict import CellVerdict, Finding

REGRESSED = "regressed"
NOT_REGRESSED = "not regressed"
UNDECIDED = "undecided"

# The search leaves this share of a model's time to the confirmation.
SEARCH_SHARE = 2 / 3


class Next(StrEnum):
    """What to do with a model after a round."""

    SEARCH = "search"
    CONFIRM = "confirm"
    DONE = "done"


def classify(estimate: RatioEstimate | None, limit: float) -> str:
    """Return REGRESSED if the interval lies wholly above 1 + ``limit``, NOT_REGRESSED if wholly below."""
    if estimate is None:
        return UNDECIDED
    if estimate.low > 1 + limit:
        return REGRESSED
    if estimate.high < 1 + limit:
        return NOT_REGRESSED
    return UNDECIDED


def tolerated(measurement: LatencyMeasurement, budget: LatencyBudget) -> float:
    """Return how much slower a call may be, as a share of it: the limit, and for short calls the absolute floor.

    A microsecond more on a call of ten matters to nobody, however certain it is.
    """
    calls = measurement.call_s
    return max(budget.limit, budget.floor_s / calls[0]) if calls is not None and calls[0] > 0 else budget.limit


def confirms(fresh: RatioEstimate | None, bound: float) -> str:
    """Return what fresh rounds say of the suspicion that a ratio is above ``bound``, such as 1.05.

    REGRESSED, NOT_REGRESSED or UNDECIDED; of the steady latency as of any other quantity.

    They confirm if, by themselves, they show a slowdown at all (their interval lies above 1) and put it above the
    bound. On identical code the chance of that is that of the interval, at most 2.5 %, times that of the suspicion;
    with the whole interval above the bound once more, a slowdown just above it would take four times the rounds.
    """
    if fresh is None:
        return UNDECIDED
    if fresh.low > 1 and fresh.ratio > bound:
        return REGRESSED
    return NOT_REGRESSED if fresh.high < bound else UNDECIDED


def suspected(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether the search says that a call is slower than is tolerated.

    What has fresh rounds was suspected when these began. Later rounds change the variance that models lend each other,
    and with it the interval of the search: so its estimate need only stay above the limit then. On identical code the
    chance of a failure stays below that of the fresh interval, 2.5 %.
    """
    steady = measurement.steady
    above = steady is not None and steady.ratio > 1 + limit
    return classify(steady, limit) == REGRESSED or (measurement.confirmation is not None and above)


def stands(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether fresh rounds confirm a suspicion, and two processes of the old release do not differ by as much."""
    confirmed = confirms(measurement.confirmation, 1 + limit) == REGRESSED
    return confirmed and not noise_reaches(measurement, limit)


def noise_reaches(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether two processes of the old release differ by more than the limit, either way, and by as much."""
    same, steady = measurement.same_against_same, measurement.steady
    if same is None or steady is None:
        return False
    if same.low > 1 + limit:
        return steady.low <= same.high
    return same.high < 1 / (1 + limit) and steady.low <= 1 / same.low


def affordable(budget: LatencyBudget, round_s: float) -> LatencyBudget:
    """Return the budget with the looks that a model can afford whose rounds take ``round_s`` seconds of measuring.

    Decided before anything is compared, so that fewer looks may each ask for less. The first one is always made.
    """
    rounds = SEARCH_SHARE * budget.model_s / round_s if round_s > 0 else budget.looks[-1]
    return replace(budget, looks=tuple(look for look in budget.looks if look <= rounds) or budget.looks[:1])


def next_step(
    measurement: LatencyMeasurement,
    budget: LatencyBudget,
    *,
    rounds: int,
    fresh: int,
    gates: Collection[str] = (),
    further: bool = False,
) -> Next:
    """Return how the benchmark of a model goes on.

    Data are looked at after ``budget.looks`` rounds only: each further look would need a wider interval. What is
    suspected is taken to fresh rounds, and gets its first look there in any case.

    Args:
        budget: with the looks that the model can afford.
        rounds: of the search; ``fresh``: of the confirmation.
        gates: what fresh rounds say of the gated quantities that are suspected.
        further: whether looks go on after those that were planned.
    """
    if measurement.problem:
        return Next.DONE
    last = math.inf if further else budget.looks[-1]
    limit = tolerated(measurement, budget)
    verdict = classify(measurement.steady, limit)
    if fresh:
        if fresh != look_from(fresh, budget.looks):
            return Next.CONFIRM
        open_still = suspected(measurement, limit) and confirms(measurement.confirmation, 1 + limit) == UNDECIDED
        return Next.CONFIRM if (open_still or UNDECIDED in gates) and fresh < last else Next.DONE
    if rounds != look_from(rounds, budget.looks):
        return Next.SEARCH
    if verdict == UNDECIDED and rounds < last:
        return Next.SEARCH
    return Next.CONFIRM if verdict == REGRESSED or gates else Next.DONE


# Memory that grows by as much in every single round while the same call repeats; an allocator's arenas do so once.
GROWTH_BYTES = MIB
NOT_CONFIRMED = "; not confirmed by fresh process pairs"
# A policy that weighs a kind by itself, and has no limit for it that fresh rounds would be asked about, is believed.
TRUSTED = ("fail", "inconclusive")
# The first calls at another shape cost as many warm ones more: recompiling costs ten and up, an allocation one or two.
RECOMPILES = 10.0
UNLIKE = 3.0


def limit_of(name: str, settings: PolicySettings) -> float | None:
    """Return the ratio from which a quantity is reported, None where there is none."""
    return settings.quantity_limits.get(name.partition(":")[0])


def is_beyond(name: str, measurement: LatencyMeasurement, limit: float | None) -> bool:
    """Whether a quantity of a measurement is worth telling: what fresh rounds put below its limit again is not."""
    quantity, _, input_set = name.partition(":")
    found = measurement.quantities[name]
    if quantity == "growth":
        return measurement.growth_bytes is not None and measurement.growth_bytes >= GROWTH_BYTES
    if quantity == "recompilation":
        return _recompiles(input_set, measurement) and found.old <= found.new / UNLIKE
    if limit is None or found.ratio is None:
        return False
    least = QUANTITIES[quantity].least if quantity in QUANTITIES else 0.0
    is_more = found.ratio.low > limit and found.new - found.old >= least
    return is_more and _in_fresh_rounds(name, measurement, limit) != NOT_REGRESSED


def _in_fresh_rounds(name: str, measurement: LatencyMeasurement, limit: float) -> str:
    fresh = measurement.fresh_quantities.get(name)
    return confirms(fresh.ratio if fresh is not None else None, limit)


def _recompiles(input_set: str, measurement: LatencyMeasurement) -> bool:
    cost = measurement.quantities.get(f"new_shape:{input_set}")
    dear = cost is not None and cost.new >= QUANTITIES["new_shape"].least
    return dear and measurement.quantities[f"recompilation:{input_set}"].new >= RECOMPILES


def verdicts_beyond(measurement: LatencyMeasurement, settings: PolicySettings) -> dict[str, str]:
    """Return quantity beyond its limit -> REGRESSED where fresh rounds confirm that, UNDECIDED while it is open.

    What they clear is left out.
    """
    limits = {name: limit_of(name, settings) for name in measurement.quantities}
    return {
        name: _in_fresh_rounds(name, measurement, limit)
        for name, limit in limits.items()
        if limit is not None and is_beyond(name, measurement, limit)
    }


def gate_verdicts(measurement: LatencyMeasurement, settings: PolicySettings) -> dict[str, str]:
    """Return the same of those quantities alone whose limit fails a model."""
    found = verdicts_beyond(measurement, settings)
    return {name: verdict for name, verdict in found.items() if name.partition(":")[0] in settings.gating}


def quantity_findings(measurement: LatencyMeasurement, settings: PolicySettings) -> Iterator[Finding]:
    """Yield what the quantities beside the steady call give reason to tell, those that fail the model first."""
    gated = gate_verdicts(measurement, settings)
    for name, verdict in gated.items():
        kind, more = ("latency", "") if verdict == REGRESSED else ("latency_undecided", NOT_CONFIRMED)
        yield _quantity_finding(kind, name, measurement, settings, more)
    beyond = {name: verdict for name, verdict in verdicts_beyond(measurement, settings).items() if name not in gated}
    order = list(QUANTITIES)
    told: dict[str, str] = {}
    for name in sorted(beyond, key=lambda name: order.index(name.partition(":")[0])):
        measured = QUANTITIES[name.partition(":")[0]]
        covering = told.get(measured.covered_by)
        told[name] = REGRESSED if REGRESSED in (covering, beyond[name]) else UNDECIDED
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
    found, limit = measurement.quantities[name], limit_of(name, settings)
    return Finding(
        kind=kind,
        message=_quantity_text(name, found, limit) + more,
        size=_size(found),
        quantity=name,
        limit=limit,
    )


def _size(found: Quantity) -> float | None:
    return found.ratio.ratio if found.ratio is not None else None


def _quantity_text(name: str, found: Quantity, limit: float | None) -> str:
    ratio = f" {found.ratio.words}" if found.ratio is not None else ""
    bound = f", limit {limit_words(limit)}" if limit is not None else ""
    return f"{quantity_words(name)}{ratio} ({amount(found.old, found.unit)} -> {amount(found.new, found.unit)}){bound}"


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
    for name, found in measurement.quantities.items():
        quantity, _, input_set = name.partition(":")
        if quantity != "recompilation" or not _recompiles(input_set, measurement):
            continue
        cost = measurement.quantities[f"new_shape:{input_set}"]
        yield Finding(
            kind="recompilation" if is_beyond(name, measurement, None) else "recompiles",
            message=f"the first calls of input set {input_set} cost {found.new:.0f} warm calls more, "
            f"{found.old:.0f} before: {amount(cost.old, 's')} -> {amount(cost.new, 's')}",
        )


def _lost(missing: Mapping[str, tuple[str, str]]) -> Iterator[Finding]:
    """Yield what the old release could tell and the new one could not; what neither could is nothing to tell."""
    for name, (old, new) in missing.items():
        if new and not old:
            message = f"{quantity_words(name)}: measured in the old release, not in the new: {new.splitlines()[0]}"
            yield Finding(kind="quantity_lost", message=message)


def judge_latency(
    cell: str, measurement: LatencyMeasurement | None, budget: LatencyBudget, settings: PolicySettings
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
        return _verdict(cell, Status.INCONCLUSIVE, [Finding(kind="latency_undecided", message=message)])
    if measurement is None or measurement.steady is None:
        problem = measurement.problem if measurement is not None else ""
        message = f"steady latency was not measured: {problem or 'no sample'}"
        finding = Finding(kind="not_measured", message=message, subject=STEADY)
        return _verdict(cell, Status.INCONCLUSIVE, [finding], decides=bool(problem))
    if measurement.problem:
        message = f"the benchmark was lost after {measurement.steady.pairs} rounds: {measurement.problem}"
        return _verdict(cell, Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message, subject=STEADY)])
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
    elif verdict != NOT_REGRESSED and not _cleared(measurement, limit):
        findings.insert(0, _undecided(measurement, verdict, limit, words))
    kinds, note = {finding.kind for finding in findings}, below_floor(measurement, budget)
    if "latency" in kinds:
        return _verdict(cell, Status.FAIL, findings, note=note)
    if "latency_undecided" in kinds:
        return _verdict(cell, Status.INCONCLUSIVE, findings, decides=measurement.steady.high >= open_from, note=note)
    return _verdict(cell, Status.PASS, findings, note=note)


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
    """Yield what a reader must know of the strength that the models of a run lend each other."""
    if common is not None:
        control = f"; two processes of the old release: {common.control.words}" if common.control is not None else ""
        apart = f"; left out, for their own part stands out: {first_few(common.apart, 3)}" if common.apart else ""
        yield f"{common_words(common)}{control}{apart}"
    if len(latency) >= LEAST_MODELS and common is None:
        yield (
            f"what the release costs all models was not estimated: that takes {LEAST_MODELS} that are timed in the "
            "same rounds, in a run that repeats no cells"
        )
    if latency and not any(found.lenders for found in latency.values()):
        count = counted(len(latency), "model was", "models were")
        yield f"{count} timed: too few to say how much rounds usually vary, so each interval rests on its own rounds"


def _verdict(
    cell: str, status: Status, findings: list[Finding], *, decides: bool = True, note: str = ""
) -> CellVerdict:
    return CellVerdict(
        cell=cell,
        model=cell.split("/", 1)[0],
        scenario="latency",
        status=status,
        findings=tuple(findings),
        note=note,
        decides=decides,
    )


def below_floor(measurement: LatencyMeasurement, budget: LatencyBudget) -> str:
    """Return that a call is surely slower and by less than anybody would feel, in words; empty where it is not so."""
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


def _size_of(estimate: RatioEstimate | None) -> float | None:
    return estimate.ratio if estimate is not None else None


def was_not_asked(measurement: LatencyMeasurement, budget: LatencyBudget, settings: PolicySettings) -> bool:
    """Whether something is beyond a limit that the benchmark did not have: it would have run fresh rounds for it."""
    if classify(measurement.steady, tolerated(measurement, budget)) == REGRESSED and measurement.confirmation is None:
        return True
    gates = gate_verdicts(measurement, settings)
    return any(found == UNDECIDED and name not in measurement.fresh_quantities for name, found in gates.items())


def _cleared(measurement: LatencyMeasurement, limit: float) -> bool:
    return confirms(measurement.confirmation, 1 + limit) == NOT_REGRESSED


def _regression(measurement: LatencyMeasurement, limit: str) -> Finding:
    """Return what fresh rounds say, and what was said before them, which was taken further for being large."""
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
    """Return that a call is surely slower, and nobody knows whether that is the model's own."""
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
    return Finding(kind="latency_undecided", message=message, size=_size_of(measurement.shown))
