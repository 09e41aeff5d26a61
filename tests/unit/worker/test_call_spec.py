"""Inputs of a package are bound by its call specification as Triton's backend names them; what it refuses is one line."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

TENSOR: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def tuple_of(*children: dict[str, Any]) -> dict[str, Any]:
    return {"type": "builtins.tuple", "context": "null", "children_spec": list(children)}


def list_of(*children: dict[str, Any]) -> dict[str, Any]:
    return {**tuple_of(*children), "type": "builtins.list"}


def dict_of(**entries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "builtins.dict", "context": json.dumps(list(entries)), "children_spec": list(entries.values())}


def spec(*arguments: dict[str, Any], **keywords: dict[str, Any]) -> str:
    """Return what ``loader.get_call_spec()[0]`` of torch 2.6.0 says of such a package."""
    return json.dumps([1, tuple_of(tuple_of(*arguments), dict_of(**keywords))])


NESTED = spec(TENSOR, dict_of(keyA=TENSOR, b=tuple_of(TENSOR, list_of(TENSOR))), scale=TENSOR, more=dict_of(q=TENSOR))
NAMES = ["ARGS[0]", "ARGS[1][keyA]", "ARGS[1][b][0]", "ARGS[1][b][1][0]", "KWARGS[scale]", "KWARGS[more][q]"]
PLAIN = spec(TENSOR, TENSOR)


def inputs(*names: str, kind: str = "input", dtype: str = "float32") -> list[dict[str, Any]]:
    return [{"name": name, "kind": kind, "dtype": dtype} for name in names]


@pytest.fixture
def call_spec(imported: Callable[[str], Any]) -> Any:
    return imported("requests.call_spec")


def test_tensors_are_named_by_their_places_in_order(call_spec: Any) -> None:
    places = call_spec.Places(NESTED)
    assert places.names == NAMES
    assert places.arguments == [
        ("leaf", 0),
        ("dict", [("keyA", ("leaf", 1)), ("b", ("tuple", [("leaf", 2), ("list", [("leaf", 3)])]))]),
    ]
    assert places.keywords == [("scale", ("leaf", 4)), ("more", ("dict", [("q", ("leaf", 5))]))]
    assert call_spec.Places(spec(x=TENSOR)).names == ["KWARGS[x]"]
    assert call_spec.Places(PLAIN).keywords == []


@pytest.mark.parametrize(
    ("text", "names", "numbers"),
    [
        (NESTED, NAMES, [0, 1, 2, 3, 4, 5]),
        (NESTED, NAMES[::-1], [5, 4, 3, 2, 1, 0]),
        (NESTED, [f"INPUT__{number}" for number in (3, 4, 5, 0, 1, 2)], [3, 4, 5, 0, 1, 2]),
        (NESTED, ["INPUT__5", *NAMES[:5]], [5, 0, 1, 2, 3, 4]),
        (spec(TENSOR, scale=TENSOR), ["KWARGSscale", "ARGS[0]"], [1, 0]),  # as the backend's code has it
        (PLAIN, ["ARGS[1]", "INPUT__0"], [1, 0]),
        (spec(list_of(TENSOR, TENSOR)), ["ARGS[0][1]", "ARGS[0][0]"], [1, 0]),
        (spec(x=TENSOR), ["INPUT__0"], [0]),
    ],
)
def test_an_input_is_bound_by_its_place_or_its_number(
    call_spec: Any, text: str, names: Sequence[str], numbers: Sequence[int]
) -> None:
    assert call_spec.Places(text).numbers_of(inputs(*names)) == numbers


@pytest.mark.parametrize(
    ("text", "given", "why"),
    [
        (PLAIN, inputs("x", "ARGS[1]"), "x is no input of the package, which takes ARGS[0], ARGS[1], or INPUT__0"),
        (PLAIN, inputs("ARGS[0]", "ARGS[2]"), "ARGS[2] is no input of the package"),
        (PLAIN, inputs("INPUT__0", "INPUT__2"), "INPUT__2 is no input of the package"),
        (PLAIN, inputs("INPUT__0", "INPUT__01"), "INPUT__01 is no input of the package"),
        (PLAIN, inputs("ARGS[0]", "INPUT__0", "ARGS[1]"), "ARGS[0] and INPUT__0 are both ARGS[0]"),
        (PLAIN, inputs("ARGS[1]"), "the configuration has no input for ARGS[0]"),
        (NESTED, inputs(*NAMES[:4]), "the configuration has no input for KWARGS[scale], KWARGS[more][q]"),
        (NESTED, inputs("ARGS[1]"), "ARGS[1] is no input of the package, which takes ARGS[0], ARGS[1][keyA]"),
        (PLAIN, inputs("ARGS[0]") + inputs("s", kind="state"), "and s is made by it"),
        (PLAIN, inputs("ARGS[0]") + inputs("n", kind="batch"), "and n is made by it"),
        (PLAIN, inputs("ARGS[0]", dtype="text"), "passes packages tensors alone, and ARGS[0] is a text"),
        ("", [], "a call specification that the backend does not read"),
        ("[1]", [], "a call specification that the backend does not read"),
        (json.dumps([1, TENSOR]), [], "a call specification that the backend does not read"),
        (json.dumps([1, tuple_of(list_of(TENSOR), dict_of())]), [], "and the backend reads a tuple and a dict"),
        (
            spec(TENSOR, {**tuple_of(TENSOR), "type": "collections.namedtuple"}),
            [],
            "ARGS[1] is a collections.namedtuple, and the backend knows tuples, lists and dicts of tensors",
        ),
        (spec({**dict_of(a=TENSOR), "context": "[1]"}), [], "ARGS[0] has keys that are no texts"),
        (spec({**dict_of(a=TENSOR), "context": "[]"}), [], "ARGS[0] has keys that are no texts"),
        (spec({**dict_of(a=TENSOR), "context": "["}), [], "ARGS[0] has keys that are no texts"),
    ],
)
def test_what_the_backend_would_not_serve_is_one_line(
    call_spec: Any, text: str, given: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(call_spec.NotServed) as error:
        call_spec.Places(text).numbers_of(given)
    assert why in str(error.value) and "\n" not in str(error.value)
