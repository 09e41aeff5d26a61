"""What is measured besides the steady call: a value per process and quantity, medians and ratios over rounds."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from harness.checks.latency.moderation import Prior, Spread, fit_prior, spread_over
from harness.core.measurement import CONTROL, NEW, OLD, ArmSample, PairSample, Quantity, RatioEstimate
from harness.core.quantities import parts_of

OLD_ARMS = (OLD, CONTROL)
# Calls that count as the first ones: profiling, compilation, a slow one, one to spare (docs/evidence.md#first-calls).
FIRST_CALLS = 4
# A call is still warming up while it takes twice the steady call: compilation costs more, noise less (as above).
WARMING = 2.0
# Calls at another shape that may recompile; those after them are what a call costs there.
SHAPE_CALLS = 4

# What the first rounds alone measure, which may be two.
OF_FIRST_ROUNDS = ("request", "request_cpu", "new_shape", "replay")

Value = Callable[[PairSample, str, ArmSample], float | None]
Estimate = Callable[[str, Callable[[PairSample], float | None]], RatioEstimate | None]


def quantities(samples: Sequence[PairSample], estimate: Estimate) -> dict[str, Quantity]:
    """Return all quantities that both releases have; ``estimate`` takes a name and sample -> log(new/old)."""
    quantities = {}
    for name, (unit, value) in _values(samples).items():
        old = _median(samples, OLD_ARMS, value)
        new = _median(samples, (NEW,), value)
        if old is None or new is None:
            continue
        ratio = estimate(name, _log_ratio(value)) if unit != "calls" and name != "growth" else None
        quantities[name] = Quantity(old=old, new=new, unit=unit, ratio=ratio)
    return quantities


def _values(samples: Sequence[PairSample]) -> dict[str, tuple[str, Value]]:
    """Return quantity -> (unit, how to take it from one process)."""
    fixed: dict[str, tuple[str, Value]] = {
        "load": ("s", lambda _, __, arm: arm.load_s),
        "call_0": ("s", lambda _, __, arm: _call(arm.calls_s, 0)),
        "call_1": ("s", lambda _, __, arm: _call(arm.calls_s, 1)),
        "first_calls": ("s", _first_calls),
        "calls_until_steady": ("calls", _calls_until_steady),
        "p50": ("s", lambda sample, name, _: steady_s(sample, name)),
        "mean": ("s", lambda _, __, arm: arm.mean_s),
        "p90": ("s", lambda _, __, arm: arm.p90_s),
        "p99": ("s", lambda _, __, arm: arm.p99_s),
        "request": ("s", lambda _, __, arm: arm.request_s),
        "request_cpu": ("s", lambda _, __, arm: arm.request_cpu_s),
        "peak_rss": ("bytes", lambda _, __, arm: arm.peak_rss_bytes),
        "device_memory": ("bytes", lambda _, __, arm: arm.device_bytes),
        "growth": ("bytes", _growth_per_call),
        "replay": ("s", lambda _, __, arm: arm.replay_s),
    }
    for name in dict.fromkeys(name for sample in samples for arm in sample.arms.values() for name in arm.shapes_s):
        fixed[f"new_shape:{name}"] = ("s", _first_at_shape(name))
        fixed[f"recompilation:{name}"] = ("calls", _recompilation(name))
    return fixed


def quantity_priors(models: Sequence[Sequence[PairSample]]) -> dict[str, Prior | None]:
    """Return what all models say of the variance of each quantity; a model's input sets are one shape, averaged."""
    spreads: dict[str, list[Spread]] = defaultdict(list)
    for samples in models:
        own: dict[str, list[Spread]] = defaultdict(list)
        for name, (_, value) in _values(samples).items():
            quantity, ratio = parts_of(name)[0], _log_ratio(value)
            logs = [log for sample in samples if (log := ratio(sample)) is not None]
            if quantity in OF_FIRST_ROUNDS and len(logs) > 1:
                own[quantity].append(spread_over(logs))
        for quantity, shapes in own.items():
            variance = statistics.fmean(shape.variance for shape in shapes)
            spreads[quantity].append(Spread(variance=variance, degrees=min(shape.degrees for shape in shapes)))
    return {quantity: fit_prior(of_models) for quantity, of_models in spreads.items()}


def _median(samples: Sequence[PairSample], arms: Sequence[str], value: Value) -> float | None:
    known = [number for sample in samples for number in _of_arms(sample, arms, value)]
    return float(statistics.median(known)) if known else None


def _log_ratio(value: Value) -> Callable[[PairSample], float | None]:
    def ratio(sample: PairSample) -> float | None:
        new = [math.log(number) for number in _of_arms(sample, (NEW,), value) if number > 0]
        old = [math.log(number) for number in _of_arms(sample, OLD_ARMS, value) if number > 0]
        return new[0] - statistics.fmean(old) if new and old else None

    return ratio


def _of_arms(sample: PairSample, arms: Sequence[str], value: Value) -> Iterator[float]:
    for name in arms:
        if name in sample.arms and (number := value(sample, name, sample.arms[name])) is not None:
            yield number


def steady_s(sample: PairSample, arm: str) -> float | None:
    """Return seconds of a warm call: the median over the arm's blocks; None without blocks."""
    times = [block.p50_s for block in sample.blocks if block.arm == arm]
    return statistics.median(times) if times else None


def _call(calls_s: Sequence[float], index: int) -> float | None:
    return calls_s[index] if index < len(calls_s) else None


def _first_calls(sample: PairSample, _: str, arm: ArmSample) -> float | None:
    """Return the sum over as many first calls as every arm made: sums of unlike numbers are no ratio of anything."""
    count = min(FIRST_CALLS, *(len(other.calls_s) for other in sample.arms.values()))
    return math.fsum(arm.calls_s[:count]) if count else None


def _calls_until_steady(sample: PairSample, name: str, arm: ArmSample) -> float | None:
    """Return after how many calls one is warm; None of a control that made fewer of them and may not have seen it."""
    steady, old = steady_s(sample, name), sample.arms.get(OLD, arm)
    if steady is None or not arm.calls_s or (name == CONTROL and len(arm.calls_s) < len(old.calls_s)):
        return None
    slow = [index for index, call_s in enumerate(arm.calls_s) if call_s > WARMING * steady]
    return float(max(slow, default=-1) + 1)


def _growth_per_call(sample: PairSample, name: str, arm: ArmSample) -> float | None:
    """Bytes per call between the end of the first block and the end of the last."""
    calls = sum([block.calls for block in sample.blocks if block.arm == name][1:])
    return arm.growth_bytes / calls if arm.growth_bytes is not None and calls else None


def _first_at_shape(name: str) -> Value:
    def value(_: PairSample, __: str, arm: ArmSample) -> float | None:
        calls_s = arm.shapes_s.get(name, ())[:SHAPE_CALLS]
        return math.fsum(calls_s) if calls_s else None

    return value


def _recompilation(name: str) -> Value:
    """How many warm calls of that shape the first ones there cost more than they should."""

    def value(_: PairSample, __: str, arm: ArmSample) -> float | None:
        calls_s = arm.shapes_s.get(name, ())
        if len(calls_s) <= SHAPE_CALLS:
            return None
        warm_s = statistics.median(calls_s[SHAPE_CALLS:])
        return max(0.0, (math.fsum(calls_s[:SHAPE_CALLS]) - SHAPE_CALLS * warm_s) / warm_s) if warm_s > 0 else None

    return value


def missing(samples: Sequence[PairSample]) -> dict[str, tuple[str, str]]:
    """Return quantity -> (why the old side, why the new side could not tell it in some round), empty where it could."""
    reasons: dict[str, tuple[str, str]] = {}
    for sample in samples:
        for arm, measured in sample.arms.items():
            for name, why in measured.missing.items():
                old, new = reasons.get(name, ("", ""))
                reasons[name] = (old, new or why) if arm == NEW else (old or why, new)
    return reasons


def excess_growth_bytes(samples: Sequence[PairSample]) -> int | None:
    """Return the least excess growth of memory over all rounds, None if unmeasured: arenas do not grow each round."""
    excess = []
    for sample in samples:
        grown = {name: arm.growth_bytes for name, arm in sample.arms.items() if arm.growth_bytes is not None}
        old = [grown[name] for name in OLD_ARMS if name in grown]
        if NEW in grown and old:
            excess.append(grown[NEW] - max(old))
    return min(excess) if excess else None
