"""From a measurement of the duel to the verdict on its cell."""

from collections.abc import Iterator

from harness.domain.measurement import LatencyMeasurement, Quantity, signed_percent
from harness.domain.outcome import Status
from harness.domain.plan import QUANTITY_LIMITS, LatencyBudget, PolicySettings
from harness.domain.verdict import CellVerdict, Finding
from harness.policy.speed import NOT_REGRESSED, REGRESSED, classify, confirms, noise_reaches, stands
from harness.policy.words import MIB, amount

# quantity -> (kind of finding, words). ``new_shape`` stands for the quantity of every other input shape.
KINDS = {
    "load": ("load_time", "load time"),
    "first_calls": ("first_calls", "first calls"),
    "call_0": ("first_calls", "call 0"),
    "call_1": ("first_calls", "call 1"),
    "p90": ("tail", "p90 of a call"),
    "p99": ("tail", "p99 of a call"),
    "request": ("throughput", "time per request of callers at once"),
    "peak_rss": ("memory", "peak resident memory of load and first calls"),
    "device_memory": ("memory", "peak device memory of load and first calls"),
    "new_shape": ("new_shape", "first calls at the shape of"),
    "replay": ("replay_time", "replay of the CUDA graph"),
}
# A ratio of less than this in absolute terms is nobody's business, however sure. Chosen.
WORTH_TELLING = {
    "load": 5e-3,
    "first_calls": 5e-3,
    "call_0": 5e-3,
    "call_1": 5e-3,
    "new_shape": 5e-3,
    "peak_rss": 16 * MIB,
    "device_memory": 16 * MIB,
}
# These are told once: the sum of the first calls covers each of them, the p90 the p99.
COVERED_BY = {"call_0": "first_calls", "call_1": "first_calls", "p99": "p90"}
# Memory that grows by as much in every single round while the same call repeats; an allocator's arenas do so once.
GROWTH_BYTES = MIB
# The first calls at another shape cost as many warm ones more: recompiling costs ten and up, an allocation one or two.
RECOMPILES = 10.0
UNLIKE = 3.0


def judge_latency(
    cell: str, measurement: LatencyMeasurement | None, budget: LatencyBudget, settings: PolicySettings
) -> CellVerdict:
    """Return the verdict on one model's latency.

    The steady call fails it if its interval lies wholly above the limit, fresh rounds confirm it, and the old release
    does not differ from itself by as much. Where fresh rounds lie below the limit they are believed: the suspicion
    was chosen for its size, they were not. Other quantities warn, or fail where policy gates them.
    """
    if measurement is None or measurement.steady is None:
        problem = measurement.problem if measurement is not None else ""
        finding = Finding(kind="not_measured", message=f"steady latency was not measured: {problem or 'no sample'}")
        return _verdict(cell, Status.INCONCLUSIVE, [finding], decides=bool(problem))
    if measurement.problem:
        message = f"the duel was lost after {measurement.steady.pairs} rounds: {measurement.problem}"
        return _verdict(cell, Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message)])
    findings = list(_beside(measurement, settings))
    gated = [finding for finding in findings if finding.kind == "latency"]
    verdict = classify(measurement.steady, budget.limit)
    if verdict == REGRESSED and stands(measurement, budget.limit):
        findings.insert(0, _regression(measurement, budget.limit))
    elif verdict != NOT_REGRESSED and not _cleared(measurement, budget.limit):
        findings.insert(0, _undecided(measurement, verdict, budget.limit))
        if not gated:
            decides = measurement.steady.high >= budget.undecided_limit
            return _verdict(cell, Status.INCONCLUSIVE, findings, decides=decides)
    failed = any(finding.kind == "latency" for finding in findings)
    return _verdict(cell, Status.FAIL if failed else Status.PASS, findings)


def _verdict(cell: str, status: Status, findings: list[Finding], *, decides: bool = True) -> CellVerdict:
    return CellVerdict(
        cell=cell,
        model=cell.split("/", 1)[0],
        scenario="latency",
        status=status,
        findings=tuple(findings),
        decides=decides,
    )


def _cleared(measurement: LatencyMeasurement, limit: float) -> bool:
    return measurement.confirmation is not None and confirms(measurement.confirmation, limit) == NOT_REGRESSED


def _regression(measurement: LatencyMeasurement, limit: float) -> Finding:
    steady, fresh = measurement.steady, measurement.confirmation
    assert steady is not None
    assert fresh is not None
    p50 = measurement.quantities.get("p50")
    times = f" ({amount(p50.old, 's')} -> {amount(p50.new, 's')})" if p50 is not None else ""
    message = (
        f"steady latency {steady.words}{times} over {steady.pairs} process pairs, limit +{limit:.0%}; "
        f"{fresh.pairs} fresh pairs say {fresh.words}"
    )
    return Finding(kind="latency", message=message, rule="duel, confirmed by fresh pairs")


def _undecided(measurement: LatencyMeasurement, verdict: str, limit: float) -> Finding:
    steady, fresh, same = measurement.steady, measurement.confirmation, measurement.same_against_same
    assert steady is not None
    if verdict != REGRESSED:
        why = f"; this run could have told {signed_percent((1 + limit) * steady.detectable)} %"
    elif fresh is None:
        why = "; it was not confirmed by fresh process pairs"
    elif noise_reaches(measurement, limit) and same is not None:
        why = f"; two processes of the old release differ by {same.words} themselves"
    else:
        why = f"; {fresh.pairs} fresh process pairs say {fresh.words}"
    message = f"steady latency {steady.words} is not decided against the limit of +{limit:.0%}{why}"
    return Finding(kind="latency_undecided", message=message)


def _beside(measurement: LatencyMeasurement, settings: PolicySettings) -> Iterator[Finding]:
    """Yield what the other quantities give reason to tell."""
    told = set()
    limits = {**QUANTITY_LIMITS, **settings.limits}
    for name, found in sorted(measurement.quantities.items(), key=lambda item: item[0] in COVERED_BY):
        quantity, _, shape = name.partition(":")
        limit = limits.get(quantity)
        if limit is None or found.ratio is None or found.ratio.low <= limit:
            continue
        if found.new - found.old < WORTH_TELLING.get(quantity, 0.0):
            continue
        if COVERED_BY.get(quantity) in told and quantity not in settings.gates:
            continue
        told.add(quantity)
        kind, words = KINDS[quantity]
        yield Finding(
            kind="latency" if quantity in settings.gates else kind,
            message=f"{words}{' ' + shape if shape else ''} {_change(found)}, told from {signed_percent(limit)} %",
        )
    if measurement.growth_bytes is not None and measurement.growth_bytes >= GROWTH_BYTES:
        growth = measurement.quantities["growth"]
        yield Finding(
            kind="memory_growth",
            message=f"resident memory grows by {amount(growth.new, 'bytes')} per call, "
            f"{amount(max(0.0, growth.old), 'bytes')} before",
        )
    yield from _recompilations(measurement)


def _recompilations(measurement: LatencyMeasurement) -> Iterator[Finding]:
    for name, found in measurement.quantities.items():
        quantity, _, shape = name.partition(":")
        cost = measurement.quantities.get(f"new_shape:{shape}")
        if quantity != "recompilation" or cost is None or found.new < RECOMPILES:
            continue
        if cost.new < WORTH_TELLING["new_shape"]:
            continue
        both = found.old > found.new / UNLIKE
        yield Finding(
            kind="recompiles" if both else "recompilation",
            message=f"the first calls at the shape of {shape} cost {found.new:.0f} warm calls more, "
            f"{found.old:.0f} before: {amount(cost.old, 's')} -> {amount(cost.new, 's')}",
        )


def _change(found: Quantity) -> str:
    words = found.ratio.words if found.ratio is not None else ""
    return f"{words} ({amount(found.old, found.unit)} -> {amount(found.new, found.unit)})"
