"""Answers as trees of values: JSON with its lists of numbers as tensors, and tensors of the Open Inference protocol.

What differs between two answers to the same request is then told by the rules that hold for outputs of models.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from harness.artifacts.tensors.trees import Tree

Path: TypeAlias = tuple[str | int, ...]
DATATYPES: Final = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    **{f"FP{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{sign}INT{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}
"""Of the Open Inference protocol -> of the wire; BYTES are texts."""
NAMES: Final = "names of outputs"
"""A key beside the outputs, which are compared by name: a client may take them by their place."""
JSON_LENGTH: Final = "inference-header-content-length"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the Open Inference protocol: its bytes, or the texts of one of BYTES."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes = b""
    texts: tuple[str, ...] = ()


def parsed(body: bytes, headers: Mapping[str, str], protocol: str) -> Any:
    """Return an answer's JSON; of protocol ``v2`` with its outputs as ``Tensor`` by name.

    Raises ``ValueError``: it is no JSON, or its tensors contradict themselves.
    """
    raw = b""
    if protocol == "v2" and headers.get(JSON_LENGTH, "").isdecimal():
        length = int(headers[JSON_LENGTH])
        body, raw = body[:length], body[length:]
    try:
        value = json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _with_tensors(value, raw) if protocol == "v2" else value


def _with_tensors(value: Any, raw: bytes) -> Any:
    outputs = value.get("outputs") if isinstance(value, dict) else None
    if not isinstance(outputs, list) or not all(isinstance(item, dict) and "name" in item for item in outputs):
        return value
    by_name, at = {}, 0
    for item in outputs:
        size = (item.get("parameters") or {}).get("binary_data_size")
        own = raw[at : at + size] if isinstance(size, int) else None
        at += size if isinstance(size, int) else 0
        by_name[item["name"]] = _tensor(item, own)
    return {**value, "outputs": by_name, NAMES: [item["name"] for item in outputs]}


def _tensor(item: Mapping[str, Any], raw: bytes | None) -> Any:
    """Return a tensor, or what the server sent where that is none: the structure then says what differs."""
    shape = tuple(item.get("shape") or ())
    datatype = item.get("datatype")
    count = math.prod(shape)
    try:
        if datatype == "BYTES":
            texts = tuple(_texts(raw) if raw is not None else map(str, _flat(item.get("data"))))
            return Tensor("str", shape, texts=texts) if len(texts) == count else item
        dtype = DATATYPES[str(datatype)]
        if raw is None:
            numbers = np.array(item["data"], dtype="float32" if dtype == "bfloat16" else dtype)
            raw = _bfloat16(numbers) if dtype == "bfloat16" else numbers.tobytes()
        width = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    except (KeyError, ValueError, TypeError, OverflowError):
        return item
    return Tensor(dtype, shape, raw) if len(raw) == count * width else item


def _bfloat16(numbers: "np.ndarray[Any, Any]") -> bytes:
    return (np.ascontiguousarray(numbers, dtype="<f4").view("<u4") >> 16).astype("<u2").tobytes()


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for item in data:
            yield from _flat(item)
    else:
        yield data


def _texts(raw: bytes) -> Iterator[str]:
    """Yield the texts of a tensor of BYTES: each behind its length, four bytes, little endian."""
    at = 0
    while at + 4 <= len(raw):
        length = int.from_bytes(raw[at : at + 4], "little")
        yield raw[at + 4 : at + 4 + length].decode("utf-8", "backslashreplace")
        at += 4 + length


def without(value: Any, ignored: Sequence[str]) -> Any:
    """Return a value without what lies at paths such as ``meta.id`` or ``items.*.at``."""
    for path in ignored:
        value = _without(value, path.split("."))
    return value


def _without(value: Any, steps: Sequence[str]) -> Any:
    step, rest = steps[0], steps[1:]
    match value:
        case dict():
            items = {key: _without(item, rest) if rest else None for key, item in value.items() if step in (key, "*")}
            return {key: items.get(key, item) for key, item in value.items() if rest or key not in items}
        case list() if rest:
            return [_without(item, rest) if step in (str(at), "*") else item for at, item in enumerate(value)]
        case list():
            return [item for at, item in enumerate(value) if step not in (str(at), "*")]
        case _:
            return value


def floats_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where an answer has numbers with a fraction: a whole number there is one of them too, as ``1`` of 1.0."""
    match value:
        case float():
            yield path
        case dict():
            for key, item in value.items():
                yield from floats_in(item, (*path, key))
        case list():
            numbers = _numbers(value)
            if numbers is None:
                for at, item in enumerate(value):
                    yield from floats_in(item, (*path, at))
            elif numbers == "float64":
                yield path
        case _:
            pass


def tree_of(value: Any, floats: frozenset[Path], buffer: bytearray, path: Path = ()) -> Tree:
    """Return the wire's tree of an answer, whose numbers are appended to ``buffer``; ``floats``: of all answers."""
    match value:
        case None:
            return ["none", None]
        case bool():
            return ["bool", value]
        case int() if path not in floats:
            return ["int", value]
        case int() | float():
            return ["float", repr(float(value))]
        case str():
            return ["str", value]
        case Tensor(dtype="str"):
            return [
                "dict",
                [[["str", "shape"], ["str", str(list(value.shape))]], [["str", "texts"], _list(value.texts)]],
            ]
        case Tensor():
            return _spec(value.dtype, value.shape, value.data, buffer)
        case list():
            return _list_tree(value, floats, buffer, path)
        case _:
            return [
                "dict",
                [[["str", key], tree_of(item, floats, buffer, (*path, key))] for key, item in value.items()],
            ]


def _list_tree(value: list[Any], floats: frozenset[Path], buffer: bytearray, path: Path) -> Tree:
    numbers = _numbers(value)
    if numbers is not None:
        dtype = "float64" if path in floats else numbers
        try:
            array = np.array(value, dtype=dtype)
        except (ValueError, OverflowError):  # rows of other lengths, or a number of more than 64 bits
            pass
        else:
            return _spec(dtype, array.shape, array.tobytes(), buffer)
    return ["list", [tree_of(item, floats, buffer, (*path, at)) for at, item in enumerate(value)]]


def _list(texts: Sequence[str]) -> Tree:
    return ["list", [["str", text] for text in texts]]


def _spec(dtype: str, shape: Sequence[int], data: bytes, buffer: bytearray) -> Tree:
    spec = {"dtype": dtype, "shape": list(shape), "offset": len(buffer), "nbytes": len(data)}
    buffer += data
    return ["tensor", spec]


def _numbers(value: list[Any]) -> str | None:
    """Return the dtype of a list of numbers, nested or not; None where it holds anything else, or nothing."""
    types = set(map(type, value))
    if types == {list}:
        inner = {_numbers(item) for item in value}
        if None in inner or (len(inner) > 1 and "bool" in inner):
            return None
        return "float64" if "float64" in inner else next(iter(inner), None)
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64"
    return "float64" if types and types <= {int, float} else None
