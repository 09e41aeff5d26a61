"""Opinions on what the duel measures beside the steady call: which of it is worth telling, and which fails a model."""

from collections.abc import Iterator, Mapping

from harness.domain.measurement import LatencyMeasurement, Quantity, signed_percent
from harness.domain.plan import PolicySettings
from harness.domain.verdict import Finding
from harness.policy.speed import NOT_REGRESSED, REGRESSED, confirms
from harness.policy.words import MIB, amount

# quantity -> (kind of finding, words). ``new_shape`` stands for the quantity of every other input set.
KINDS = {
    "load": ("load_time", "load time"),
    "first_calls": ("first_calls", "first calls"),
    "call_0": ("first_calls", "call 0"),
    "call_1": ("first_calls", "call 1"),
    "mean": ("tail", "mean of a call"),
    "p90": ("tail", "p90 of a call"),
    "p99": ("tail", "p99 of a call"),
    "request": ("throughput", "time per request of callers at once"),
    "peak_rss": ("memory", "peak resident memory of load and first calls"),
    "device_memory": ("memory", "peak device memory of load and first calls"),
    "new_shape": ("new_shape", "first calls of input set"),
    "replay": ("replay_time", "replay of the CUDA graph"),
}
# A difference of less than this is nobody's business, however sure. Chosen.
WORTH_TELLING = {
    "load": 5e-3,
    "first_calls": 5e-3,
    "call_0": 5e-3,
    "call_1": 5e-3,
    "new_shape": 5e-3,
    "peak_rss": 16 * MIB,
    "device_memory": 16 * MIB,
}
# These are told once: the sum of the first calls covers each of them, the mean the p90, the p90 the p99.
COVERED_BY = {"call_0": "first_calls", "call_1": "first_calls", "p90": "mean", "p99": "p90"}
# Memory that grows by as much in every single round while the same call repeats; an allocator's arenas do so once.
GROWTH_BYTES = MIB
# The first calls at another shape cost as many warm ones more: recompiling costs ten and up, an allocation one or two.
RECOMPILES = 10.0
UNLIKE = 3.0


def limit_of(name: str, settings: PolicySettings) -> float | None:
    """Return the ratio from which a quantity is told, None where there is none."""
    return settings.quantity_limits.get(name.partition(":")[0])


def is_beyond(name: str, measurement: LatencyMeasurement, limit: float | None) -> bool:
    """Whether a quantity of a measurement is worth telling."""
    quantity, _, input_set = name.partition(":")
    found = measurement.quantities[name]
    if quantity == "growth":
        return measurement.growth_bytes is not None and measurement.growth_bytes >= GROWTH_BYTES
    if quantity == "recompilation":
        return _recompiles(input_set, measurement) and found.old <= found.new / UNLIKE
    if limit is None or found.ratio is None:
        return False
    return found.ratio.low > limit and found.new - found.old >= WORTH_TELLING.get(quantity, 0.0)


def _recompiles(input_set: str, measurement: LatencyMeasurement) -> bool:
    cost = measurement.quantities.get(f"new_shape:{input_set}")
    dear = cost is not None and cost.new >= WORTH_TELLING["new_shape"]
    return dear and measurement.quantities[f"recompilation:{input_set}"].new >= RECOMPILES


def gate_verdicts(measurement: LatencyMeasurement, settings: PolicySettings) -> dict[str, str]:
    """Return gated quantity beyond its limit -> REGRESSED where fresh rounds confirm that, UNDECIDED while it is open.

    What they clear is left out.
    """
    verdicts: dict[str, str] = {}
    for name in measurement.quantities:
        limit = limit_of(name, settings)
        if name.partition(":")[0] not in settings.gates or limit is None or not is_beyond(name, measurement, limit):
            continue
        fresh = measurement.fresh_quantities.get(name)
        verdict = confirms(fresh.ratio if fresh is not None else None, limit)
        if verdict != NOT_REGRESSED:
            verdicts[name] = verdict
    return verdicts


def quantity_findings(measurement: LatencyMeasurement, settings: PolicySettings) -> Iterator[Finding]:
    """Yield what the quantities beside the steady call give reason to tell, those that fail the model first."""
    for name, verdict in gate_verdicts(measurement, settings).items():
        open_still = ("latency_undecided", "; fresh process pairs do not confirm it")
        kind, more = ("latency", "") if verdict == REGRESSED else open_still
        found = measurement.quantities[name]
        yield Finding(kind=kind, message=_told(name, found, limit_of(name, settings)) + more, size=_size(found))
    told = set()
    for name in sorted(measurement.quantities, key=lambda name: list(KINDS).index(name) if name in KINDS else 0):
        quantity, found = name.partition(":")[0], measurement.quantities[name]
        limit = limit_of(name, settings)
        if quantity not in KINDS or quantity in settings.gates or not is_beyond(name, measurement, limit):
            continue
        told.add(quantity)
        if COVERED_BY.get(quantity) not in told:
            yield Finding(kind=KINDS[quantity][0], message=_told(name, found, limit), size=_size(found))
    yield from _growth(measurement)
    yield from _recompilations(measurement)
    yield from _lost(measurement.missing)


def _size(found: Quantity) -> float | None:
    return found.ratio.ratio if found.ratio is not None else None


def _words(name: str) -> str:
    quantity, _, input_set = name.partition(":")
    return f"{KINDS[quantity][1]} {input_set}" if input_set else KINDS[quantity][1]


def _told(name: str, found: Quantity, limit: float | None) -> str:
    ratio = f" {found.ratio.words}" if found.ratio is not None else ""
    bound = f", limit {signed_percent(limit)} %" if limit is not None else ""
    return f"{_words(name)}{ratio} ({amount(found.old, found.unit)} -> {amount(found.new, found.unit)}){bound}"


def _growth(measurement: LatencyMeasurement) -> Iterator[Finding]:
    if "growth" in measurement.quantities and is_beyond("growth", measurement, None):
        growth = measurement.quantities["growth"]
        yield Finding(
            kind="memory_growth",
            message=f"resident memory grows by {amount(growth.new, 'bytes')} per call, "
            f"{amount(max(0.0, growth.old), 'bytes')} before",
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
            message = f"{_words(name)}: measured in the old release, not in the new: {new.splitlines()[0]}"
            yield Finding(kind="quantity_lost", message=message)
