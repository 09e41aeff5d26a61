"""Requests that a manifest describes."""

import json
import tomllib
from typing import Any

import pytest

from harness.core.errors import FixtureError
from harness.artifacts.requests import DEEPEST, read_requests


def read(text: str, methods: tuple[str, ...] = ("forward",)) -> list[dict[str, Any]]:
    found = read_requests(tomllib.loads(text)["requests"], methods, "r")
    return [dict(request) for request in found]


def test_values_are_kept_as_they_are_written() -> None:
    arguments = (
        '[1, 2.5, "a", true, [1, [2]], {shape = [2, 3], dtype = "int64", below = 9}, {tuple = [1, {none = true}]}, '
        "{dict = {shape = 1, b = {shape = []}}}]"
    )
    (request,) = read(f'requests = [{{name = "big", method = "encode", arguments = {arguments}}}]')
    assert request == {
        "name": "big",
        "method": "encode",
        "arguments": [
            1,
            2.5,
            "a",
            True,
            [1, [2]],
            {"shape": [2, 3], "dtype": "int64", "below": 9},
            {"tuple": [1, {"none": True}]},
            {"dict": {"shape": 1, "b": {"shape": []}}},
        ],
    }
    assert json.loads(json.dumps(request)) == request


def test_requests_without_a_name_or_a_method_are_named_and_go_to_each_method() -> None:
    text = 'requests = [{arguments = [1]}, {arguments = [2]}, {method = "score", arguments = [3]}]'
    assert [(request["name"], request["method"]) for request in read(text, ("forward", "encode"))] == [
        ("example", "forward"),
        ("example_encode", "encode"),
        ("request_2", "forward"),
        ("request_2_encode", "encode"),
        ("request_3", "score"),
    ]


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ("[{}]", "r[1].arguments: missing"),
        ("[{arguments = 1}]", "r[1].arguments: expected a list of arguments, got 1"),
        ('[{arguments = [], method = "a b"}]', "r[1].method: expected the name of a method"),
        ('[{name = "a", arguments = []}, {name = "a", arguments = []}]', 'r[2].name: "a" is the name of two requests'),
        ("[{arguments = [1, {}]}]", "r[1].arguments[2]: expected a value of a request, got an empty table"),
        ("[{arguments = [{sape = [1]}]}]", 'r[1].arguments[1].sape: unknown key; did you mean "shape"?'),
        ("[{arguments = [[{shape = [1], dtpe = 1}]]}]", 'arguments[1][1].dtpe: unknown key; did you mean "dtype"?'),
        ('[{arguments = [{shape = [1], dtype = "float31"}]}]', "arguments[1].dtype: expected one of float64, float32"),
        ("[{arguments = [{shape = [-1]}]}]", "arguments[1].shape: expected a list of whole numbers >= 0"),
        (
            "[{arguments = [{shape = [100000, 100000]}]}]",
            "arguments[1].shape: a tensor of more than 1,073,741,824 elements",
        ),
        (
            "[{arguments = [{shape = [1], below = 9}]}]",
            "arguments[1].below: for whole numbers, and the dtype is float32",
        ),
        (
            '[{arguments = [{shape = [1], dtype = "bool", below = 2}]}]',
            "below: for whole numbers, and the dtype is bool",
        ),
        (f'[{{name = "{"a" * 201}", arguments = []}}]', "r[1].name"),
        (f"[{'{arguments = []}, ' * 1001}]", "r[1001].name"),
        ("[{arguments = [{shape = [1], below = 0}]}]", "arguments[1].below: expected a whole number >= 1"),
        ("[{arguments = [{none = false}]}]", "arguments[1].none: expected true, got false"),
        ("[{arguments = [{dict = {a = {b = 1}}}]}]", "arguments[1].dict.a.b: unknown key"),
        ("[{arguments = [{tuple = [nan]}]}]", "arguments[1].tuple[1]: expected a finite number, got nan"),
        ("[{arguments = [9223372036854775808]}]", "arguments[1]: expected a number of 64 bits"),
        ("[{arguments = [1979-05-27]}]", "arguments[1]: expected a value of a request"),
    ],
)
def test_a_mistake_is_named_by_its_full_key(requests: str, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        read(f"requests = {requests}")
    assert said in str(caught.value)


def test_depth_ends_in_a_message() -> None:
    deep: Any = 1
    for _ in range(DEEPEST + 2):
        deep = [deep]
    with pytest.raises(FixtureError, match="nested too deeply"):
        read_requests([{"arguments": [deep]}], ("forward",), "r")
