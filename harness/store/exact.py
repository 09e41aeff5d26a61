"""JSON that loses no number: it has no infinities and no NaN, and a missing bound is not the same as an infinite one.

So such numbers are written as the strings "inf", "-inf" and "nan", and read back only where the type asks for a float.
"""

import functools
import math
from typing import Any, TypeVar

from msgspec import inspect

from harness.machine.typed import converted

T = TypeVar("T")
NON_FINITE = ("-inf", "inf", "nan")


def plain_of(value: Any) -> Any:
    """Return builtins with what JSON cannot hold replaced: numbers that are not finite, and lone surrogates."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {plain_of(key): plain_of(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_of(item) for item in value]
        case _:
            return value


def value_of(plain: Any, type_: type[T]) -> T:
    """Return the ``type_`` that ``plain_of`` took. Raises ``msgspec.ValidationError``: another shape."""
    kind: Any = type_
    value: T = converted(_readable(plain, _shape_of(kind)), type_)
    return value


@functools.cache
def _shape_of(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _readable(value: Any, kind: inspect.Type) -> Any:
    """Return "inf", "-inf", "nan" as floats wherever ``kind`` has one; misfits stay for the conversion to name."""
    match kind, value:
        case inspect.UnionType(types=types), _:
            return _readable_union(value, types)
        case inspect.FloatType(), str() if value in NON_FINITE:
            return float(value)
        case inspect.DataclassType(fields=fields), dict():
            kinds = {field.encode_name: field.type for field in fields}
            return {key: _readable(item, kinds.get(key, inspect.AnyType())) for key, item in value.items()}
        case inspect.DictType(value_type=item_kind), dict():
            return {key: _readable(item, item_kind) for key, item in value.items()}
        case ((inspect.VarTupleType() | inspect.TupleType()), list()):
            return _readable_items(value, kind)
        case _:
            return value


def _readable_items(value: list[Any], kind: inspect.VarTupleType | inspect.TupleType) -> list[Any]:
    """Return the items of an array, each read as its own type; one of a wrong length is left as it is."""
    kinds = (kind.item_type,) * len(value) if isinstance(kind, inspect.VarTupleType) else kind.item_types
    if len(kinds) != len(value):
        return value
    return [_readable(item, item_kind) for item, item_kind in zip(value, kinds, strict=True)]


def _readable_union(value: Any, types: tuple[inspect.Type, ...]) -> Any:
    """Return ``value`` read as the one of ``types`` that it can be; a union of text and number keeps the text."""
    if isinstance(value, str) and any(isinstance(kind, inspect.StrType) for kind in types):
        return value
    for kind in types:
        read = _readable(value, kind)
        if read is not value:
            return read
    return value
