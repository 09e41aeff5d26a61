"""Calls as data: what is peculiar about their arguments, and further calls at the edges of what an operator takes."""

import copy
import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

Tensor = dict[str, Any]
Call = dict[str, Any]
FLOATS = {"float32", "float64", "float16", "bfloat16"}
PARTS = {"complex64": "float32", "complex128": "float64"}
COMPLEX = set(PARTS)
DENORMAL = {"float32": 1e-40, "float64": 1e-310, "float16": 3e-7, "bfloat16": 1e-40}
HUGE = {"float32": 1e30, "float64": 1e300, "float16": 6e4, "bfloat16": 1e30}
TINY = {"float32": 1.1754944e-38, "float64": 2.2250738585072014e-308, "float16": 6.1e-5, "bfloat16": 1.1754944e-38}


def is_tensor(value: object) -> bool:
    return isinstance(value, dict) and "dtype" in value


def tensors(call: Call) -> list[Tensor]:
    """Return the tensors of a call, in order; to change one is to change the call."""

    def within(value: Any) -> Iterator[Tensor]:
        if is_tensor(value):
            yield value
        elif isinstance(value, list):
            for item in value:
                yield from within(item)

    return [*within(call["arguments"]), *within(list(call["keywords"].values()))]


def logical(tensor: Tensor) -> list[Any]:
    """Return the elements in the order of their indices, whatever the strides."""
    if "strides" not in tensor:
        return list(tensor["values"])
    places = product(*map(range, tensor["shape"]))
    return [
        tensor["values"][sum(at * step for at, step in zip(place, tensor["strides"], strict=True))] for place in places
    ]


def dense(tensor: Tensor) -> None:
    tensor["values"] = logical(tensor)
    tensor.pop("strides", None)


def stored(tensor: Tensor, order: list[int]) -> None:
    """Store a contiguous tensor with its dimensions in this order, the outermost first."""
    shape, step, strides = tensor["shape"], 1, [0] * len(tensor["shape"])
    for dimension in reversed(order):
        strides[dimension] = step
        step *= shape[dimension]
    values: list[Any] = [None] * step
    for place, value in zip(product(*map(range, shape)), logical(tensor), strict=True):
        values[sum(at * stride for at, stride in zip(place, strides, strict=True))] = value
    tensor["values"], tensor["strides"] = values, strides


def part(tensor: Tensor, dimension: int, start: int, stop: int) -> None:
    """Keep the indices ``start`` to ``stop`` of one dimension; the tensor is contiguous afterwards."""
    indices = product(*map(range, tensor["shape"]))
    kept = [value for place, value in zip(indices, logical(tensor), strict=True) if start <= place[dimension] < stop]
    tensor["shape"] = [*tensor["shape"][:dimension], stop - start, *tensor["shape"][dimension + 1 :]]
    tensor["values"] = kept
    tensor.pop("strides", None)


def features(call: Call) -> tuple[str, ...]:
    """Return what is peculiar about the arguments, sorted; nothing of a plain call."""
    return tuple(sorted(set(_features(call))))


def _features(call: Call) -> Iterator[str]:
    given = tensors(call)
    floats = {item["dtype"] for item in given if item["dtype"] in FLOATS | COMPLEX}
    if len(floats) > 1:
        yield "mixed dtypes"
    for place, tensor in enumerate(given):
        dtype, shape = tensor["dtype"], tensor["shape"]
        if dtype in FLOATS | COMPLEX:
            numbers = [part for item in tensor["values"] for part in (item if isinstance(item, list) else [item])]
            real = PARTS.get(dtype, str(dtype))
            for number in numbers:
                if math.isnan(number):
                    yield "NaN"
                elif math.isinf(number):
                    yield "infinity"
                elif number == 0:
                    if math.copysign(1, number) < 0:
                        yield "-0.0"
                elif abs(number) < TINY[real]:
                    yield "denormal"
                elif abs(number) >= HUGE[real] / 1.01:
                    yield "huge"
        elif any(abs(number) >= 2**31 - 1 for number in tensor["values"]):
            yield "huge"
        elif dtype == "uint8" and 255 in tensor["values"]:
            yield "huge"
        if 0 in shape:
            yield "empty"
        elif place == 0 and not shape:
            yield "0-d"
        elif place == 0 and math.prod(shape) == 1:
            yield "one element"
        strides = tensor.get("strides")
        if strides is not None and 0 not in shape:
            wide = [(step, size) for step, size in zip(strides, shape, strict=True) if size > 1]
            if any(step == 0 for step, _ in wide):
                yield "expanded"
            elif len(shape) == 4 and strides[1] == 1:
                yield "channels-last"
            elif wide:
                yield "not contiguous"


def rounded(call: Call) -> Call:
    """Return the call with short numbers: three digits."""
    short = copy.deepcopy(call)
    for tensor in tensors(short):
        if tensor["dtype"] in FLOATS:
            tensor["values"] = [float(f"{item:.3g}") for item in tensor["values"]]
        elif tensor["dtype"] in COMPLEX:
            tensor["values"] = [[float(f"{number:.3g}") for number in item] for item in tensor["values"]]
    return short


def edges(call: Call) -> Iterator[Call]:
    """Yield the calls at the edges next to a plain one; many are refused, which is an answer too."""
    given = tensors(call)
    for place in [at for at, item in enumerate(given) if item["dtype"] in FLOATS and item["values"]][:2]:
        dtype = given[place]["dtype"]
        for special in ([math.nan], [math.inf], [-math.inf], [0.0, -0.0], [DENORMAL[dtype]], [HUGE[dtype]]):
            yield _with(call, place, lambda tensor, special=special: _put(tensor, special))  # type: ignore[misc]
        yield _with(call, place, lambda tensor: _fill(tensor, math.nan))
        yield _with(call, place, lambda tensor: _fill(tensor, -math.inf))
        yield _with(call, place, lambda tensor: _fill(tensor, 1.0))
        yield _with(call, place, lambda tensor: _fill(tensor, 0.0))
        yield _with(call, place, _tie)
    for place in [at for at, item in enumerate(given) if item["dtype"] not in FLOATS | COMPLEX and item["values"]][:1]:
        most = {"int64": 2**63 - 1, "uint8": 255, "int32": 2**31 - 1}.get(given[place]["dtype"])
        if most is not None:
            yield _with(call, place, lambda tensor, most=most: _put(tensor, [most]))  # type: ignore[misc]
            yield _with(call, place, lambda tensor: _fill(tensor, 1))
            yield _with(call, place, lambda tensor: _fill(tensor, 0))
    for place, tensor in list(enumerate(given))[:2]:
        shape = tensor["shape"]
        if tensor["values"]:
            yield _with(call, place, lambda tensor: tensor.update(shape=[], values=tensor["values"][:1]))
            yield _with(
                call, place, lambda tensor: tensor.update(shape=[1] * len(tensor["shape"]), values=tensor["values"][:1])
            )
        if shape and "strides" not in tensor:
            yield _with(call, place, lambda tensor: part(tensor, 0, 0, 0))
            yield _with(call, place, lambda tensor: part(tensor, len(tensor["shape"]) - 1, 0, 0))
            yield _with(call, place, _expand)
        if len(shape) > 1 and "strides" not in tensor:
            yield _with(call, place, lambda tensor: stored(tensor, list(range(len(tensor["shape"])))[::-1]))
        if len(shape) == 4 and "strides" not in tensor:
            yield _with(call, place, lambda tensor: stored(tensor, [0, 2, 3, 1]))
    floating = [at for at, item in enumerate(given) if item["dtype"] in FLOATS]
    for dtype in ("float64", "float16", "bfloat16", "int64", "uint8", "bool", "int32"):
        if floating:
            yield (cast := _cast(call, floating, dtype))
            if dtype in FLOATS and given[floating[0]]["values"]:
                for number in (math.nan, math.inf):
                    yield _with(cast, floating[0], lambda tensor, number=number: _put(tensor, [number]))  # type: ignore[misc]
    if len(floating) > 1:
        for dtype in ("float64", "float16", "bfloat16", "int64"):
            yield _cast(call, floating[:1], dtype)
            yield _cast(call, floating[1:], dtype)


def _with(call: Call, place: int, change: Callable[[Tensor], object]) -> Call:
    changed = copy.deepcopy(call)
    tensor = tensors(changed)[place]
    dense(tensor)
    change(tensor)
    return changed


def _put(tensor: Tensor, special: list[Any]) -> None:
    tensor["values"][: len(special)] = special[: len(tensor["values"])]


def _fill(tensor: Tensor, value: Any) -> None:
    tensor["values"] = [value] * len(tensor["values"])


def _tie(tensor: Tensor) -> None:
    tensor["values"] = [float(at % 3) for at in range(len(tensor["values"]))]


def _expand(tensor: Tensor) -> None:
    size = tensor["shape"][0]
    part(tensor, 0, 0, 1)
    stored(tensor, list(range(len(tensor["shape"]))))
    tensor["shape"][0], tensor["strides"][0] = size, 0


def _cast(call: Call, places: list[int], dtype: str) -> Call:
    changed = copy.deepcopy(call)
    given = tensors(changed)
    for place in places:
        tensor = given[place]
        tensor["dtype"] = dtype
        if dtype not in FLOATS:
            low = 0 if dtype in ("uint8", "bool") else -100
            whole = [min(max(round(item), low), 100) if math.isfinite(item) else 0 for item in tensor["values"]]
            tensor["values"] = [bool(item) for item in whole] if dtype == "bool" else whole
    return changed
