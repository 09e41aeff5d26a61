"""What differs between two answers of one call: the gravest thing, and how far beyond the gate's own tolerance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from benchmarks.atlas.arguments import is_tensor
from harness.checks.outputs.tolerances import tolerance_for
from harness.core.atlas import Kind

Answer = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """``tolerances``: the largest difference of values in units of what rounding explains; 0 of another kind."""

    kind: Kind
    tolerances: float = 0.0


ORDER = list(Kind)
DRAWN = (Kind.NAN, Kind.INFINITY, Kind.VALUES, Kind.ORDER)
"""What another random stream shows as."""


def difference(old: Answer, new: Answer) -> Difference | None:
    """Return the gravest difference, None where both answer alike or one of them lacks the operator."""
    if any("missing" in item or "unwritten" in item for item in (old, new)):
        return None
    if "lost" in old or "lost" in new:
        return None if ("lost" in old) == ("lost" in new) else Difference(Kind.LOST)
    if "error" in old or "error" in new:
        if ("error" in old) == ("error" in new):
            return None
        return Difference(Kind.REFUSED if "error" in new else Kind.ACCEPTED)
    pairs = [(old["outputs"], new["outputs"]), (old["changed"], new["changed"])]
    differences = [item for item in starmap(_of, pairs) if item is not None]
    if not differences and old["aliases"] != new["aliases"]:
        differences.append(Difference(Kind.ALIASING))
    gravest = min(differences, key=lambda item: (ORDER.index(item.kind), -item.tolerances), default=None)
    if gravest is not None and gravest.kind in DRAWN and old["drawn"] and new["drawn"]:
        return Difference(Kind.STREAM)
    return gravest


def _of(old: Any, new: Any) -> Difference | None:
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return Difference(Kind.SHAPE)
        found = [item for item in map(_of, old, new) if item is not None]
        return min(found, key=lambda item: (ORDER.index(item.kind), -item.tolerances), default=None)
    if is_tensor(old) and is_tensor(new):
        return _of_tensors(old, new)
    if type(old) is not type(new):
        return Difference(Kind.DTYPE)
    return None if old == new or old != old and new != new else Difference(Kind.VALUES)


def _of_tensors(old: dict[str, Any], new: dict[str, Any]) -> Difference | None:
    if old["dtype"] != new["dtype"]:
        return Difference(Kind.DTYPE)
    if old["shape"] != new["shape"]:
        return Difference(Kind.SHAPE)
    before, after = _numbers(old), _numbers(new)
    if [math.isnan(item) for item in before] != [math.isnan(item) for item in after]:
        return Difference(Kind.NAN)
    infinite = [(a, b) for a, b in zip(before, after, strict=True) if math.isinf(a) or math.isinf(b)]
    if any(a != b for a, b in infinite):
        return Difference(Kind.INFINITY)
    tolerances = _tolerances(old["dtype"], before, after)
    if tolerances > 1:
        return Difference(Kind.ORDER if _reordered(before, after) else Kind.VALUES, tolerances)
    return Difference(Kind.STRIDES) if _strides(old) != _strides(new) else None


def _numbers(tensor: dict[str, Any]) -> list[float]:
    return [
        part for item in tensor["values"] for part in (item if isinstance(item, list) else [item])
    ]  # of an answer, always in the order of indices


def _tolerances(dtype: str, old: Sequence[float], new: Sequence[float]) -> float:
    """Return the largest difference in tolerances; where none is allowed, infinity for any."""
    finite = [(a, b) for a, b in zip(old, new, strict=True) if math.isfinite(a) and math.isfinite(b)]
    apart = max((abs(a - b) for a, b in finite), default=0)
    if not apart:
        return 0.0
    scale = float(max(abs(a) for a, _ in finite))
    allowed = tolerance_for(dtype, None, scale) if scale else 0.0
    return float(apart) / allowed if allowed else math.inf


def _reordered(old: Sequence[float], new: Sequence[float]) -> bool:
    whole = [[item for item in values if not math.isnan(item)] for values in (old, new)]
    return len(set(whole[0])) > 1 and sorted(whole[0]) == sorted(whole[1])


def _strides(tensor: dict[str, Any]) -> list[int]:
    if "strides" not in tensor or 0 in tensor["shape"]:
        return []
    shape = tensor["shape"]
    plain = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    told = [(step, size) for step, size in zip(tensor["strides"], shape, strict=True)]
    kept = [step for step, size in told if size > 1]
    return [] if kept == [step for step, size in zip(plain, shape, strict=True) if size > 1] else kept
