"""Requests that a manifest describes: values as they are, and tensors by their shape and dtype."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from harness.artifacts import declarations
from harness.config.schema import FLAG, Kind, Table, choice, read, shown, unknown
from harness.core.errors import FixtureError

REQUESTS: Final = Kind("an array of tables with arguments", tuple[dict[str, Any], ...])
LIST: Final = Kind("a list", list[Any])
REQUEST: Final = Table(
    {
        "name": Kind("a word of letters, digits and _", declarations.NAME.target),
        "method": Kind("the name of a method", declarations.NAME.target),
        "arguments": Kind("a list of arguments", list[Any]),
    }
)
DTYPES: Final = (
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
MOST_ELEMENTS: Final = 1 << 30
MOST_DIMENSIONS: Final = 64
WHOLE: Final = ("int64", "int32", "int16", "int8", "uint8")
_Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Each way to write a value that TOML has no word for, by its distinguishing key.
FORMS: Final[Mapping[str, Table]] = {
    "shape": Table(
        {
            "shape": Kind("a list of whole numbers >= 0", list[_Size]),
            "dtype": choice(*DTYPES),
            "below": Kind("a whole number >= 1", Annotated[int, Meta(ge=1, le=2**63 - 1)]),
        }
    ),
    "tuple": Table({"tuple": LIST}),
    "dict": Table({"dict": Kind("a table", dict[str, Any])}),
    "none": Table({"none": FLAG}),
}
WRITE: Final = (
    "write a value, a list, or one of { shape = [2, 3] }, { tuple = [...] }, { dict = {...} }, { none = true }"
)
DEEPEST: Final = 32
# As harness/worker/requests/values.py has them.
LONGEST_NAME: Final = 200
MOST_SETS: Final = 1000


def read_requests(
    tables: Sequence[Mapping[str, Any]], methods: Sequence[str], where: str
) -> tuple[Mapping[str, Any], ...]:
    """Return requests as ``GivenArtifact.requests`` holds them: each with a name, a method and its arguments.

    A request that names no method is one to each of ``methods``: the first keeps its name, the others are called
    ``NAME_METHOD``. One without a name is ``example`` if it is the first, else ``request_2`` and so on. Raises
    ``FixtureError``: ``where[n].key``, what was expected and what was found.
    """
    requests: dict[str, Mapping[str, Any]] = {}
    for number, table in enumerate(tables, start=1):
        here = f"{where}[{number}]"
        values = read(table, REQUEST, here, error=FixtureError)
        if "arguments" not in values:
            raise FixtureError(f"{here}.arguments: missing", "write arguments = [] for a request without any")
        arguments = [
            _value(value, f"{here}.arguments[{index}]") for index, value in enumerate(values["arguments"], start=1)
        ]
        name = values.get("name", "example" if number == 1 else f"request_{number}")
        for index, method in enumerate([values["method"]] if "method" in values else methods):
            full = f"{name}_{method}" if index else name
            if len(full) > LONGEST_NAME or len(requests) == MOST_SETS:
                raise FixtureError(
                    f"{here}.name: {shown(full)}", f"at most {LONGEST_NAME} characters, and {MOST_SETS} requests"
                )
            if full in requests:
                raise FixtureError(f"{here}.name: {shown(full)} is the name of two requests", "give it another name")
            requests[full] = {"name": full, "method": method, "arguments": arguments}
    return tuple(requests.values())


def _value(value: object, where: str, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise FixtureError(f"{where}: nested too deeply", f"at most {DEEPEST} deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise FixtureError(f"{where}: expected a finite number, got {value}", "give inf and nan in a file of requests")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise FixtureError(f"{where}: expected a number of 64 bits, got {shown(value)}")
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_value(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value, start=1)]
    if isinstance(value, dict):
        return _form(value, where, depth)
    raise FixtureError(f"{where}: expected a value of a request, got {shown(value)}", WRITE)


def _form(table: Mapping[str, Any], where: str, depth: int) -> dict[str, Any]:
    form = next((name for name in FORMS if name in table), None)
    if form is None:
        known = sorted({key for form in FORMS.values() for key in form.keys})
        name = next(iter(table), "")
        if not name:
            raise FixtureError(f"{where}: expected a value of a request, got an empty table", WRITE)
        raise unknown(f"{where}.{name}", "key", name, known, error=FixtureError)
    values: dict[str, Any] = read(table, FORMS[form], where, error=FixtureError)
    if form == "shape":
        _check_tensor(values, where)
    if form == "tuple":
        return {
            "tuple": [
                _value(item, f"{where}.tuple[{index}]", depth + 1) for index, item in enumerate(values["tuple"], 1)
            ]
        }
    if form == "dict":
        return {"dict": {key: _value(item, f"{where}.dict.{key}", depth + 1) for key, item in values["dict"].items()}}
    if form == "none" and not values["none"]:
        raise FixtureError(f"{where}.none: expected true, got false", "write false itself where it is meant")
    return values


def _check_tensor(values: Mapping[str, Any], where: str) -> None:
    shape, dtype = values["shape"], values.get("dtype", "float32")
    if len(shape) > MOST_DIMENSIONS or math.prod(shape) > MOST_ELEMENTS:
        raise FixtureError(f"{where}.shape: a tensor of more than {MOST_ELEMENTS:,} elements", "make it smaller")
    if "below" in values and dtype not in WHOLE:
        raise FixtureError(
            f"{where}.below: for whole numbers, and the dtype is {dtype}",
            f"write dtype = {shown(WHOLE[0])}, or leave it out",
        )
