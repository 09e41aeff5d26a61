"""What answers differ in: each planted difference is told with its place, and its healthy twin is not."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from harness.checks.shadow.answers import parsed, without
from harness.checks.shadow.client import Exchange
from harness.checks.shadow.compare import compare
from harness.core.shadow import AnswerDifference, Failure, ServerSettings
from harness.core.traffic import TrafficRequest

JSON = {"content-type": "application/json"}
REQUEST = TrafficRequest(path="/v2/models/m/infer?x=1", line=2)


def settings(protocol: str = "http", **more: Any) -> ServerSettings:
    return ServerSettings(file="server.toml", command=("serve",), protocol=protocol, **more)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] = JSON) -> Exchange:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Exchange(status=status, headers=headers, body=body)


def v2(*outputs: tuple[str, list[Any]], datatype: str = "FP32", **more: Any) -> Exchange:
    tensors = [{"name": name, "datatype": datatype, "shape": [len(data)], "data": data} for name, data in outputs]
    return answer({"model_name": "m", "outputs": tensors, **more})


def binary(values: list[float], name: str = "scores") -> Exchange:
    raw = np.array(values, dtype="<f4").tobytes()
    described = {"name": name, "datatype": "FP32", "shape": [len(values)], "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"model_name": "m", "outputs": [described]}).encode()
    headers = {"content-type": "application/octet-stream", "inference-header-content-length": str(len(head))}
    return answer(head + raw, headers=headers)


def differences(
    old: Exchange, new: Exchange, protocol: str = "http", again: Exchange | None = None, **more: Any
) -> tuple[AnswerDifference, ...]:
    olds = [[old], [again or old]]
    return compare([REQUEST], olds, [[new], [new]], settings(protocol, **more)).differences


@pytest.mark.parametrize(
    ("old", "new", "protocol"),
    [
        (answer({"x": [1, 2]}), answer({"x": [1.0, 2.0000001]}), "http"),  # 1 is what some write for 1.0
        (answer({"x": 1}), answer({"x": 1.0}), "http"),
        (answer({"a": 1, "b": 2}), answer(b'{"b": 2,  "a": 1}'), "http"),
        (v2(("a", [1.0, 2.0])), v2(("a", [1.000001, 2.0])), "v2"),
        (binary([1.0, 2.0]), binary([1.0, 2.000001]), "v2"),
        (answer([], 404), answer([], 404), "http"),
        (answer(b"text", headers={"date": "1"}), answer(b"text", headers={"date": "2", "server": "x"}), "http"),
        (Exchange(failure=Failure.TIMEOUT), answer(1), "http"),  # nobody knows what it would have been
    ],
)
def test_the_same_within_rounding_is_no_difference(old: Exchange, new: Exchange, protocol: str) -> None:
    assert differences(old, new, protocol) == ()


@pytest.mark.parametrize(
    ("old", "new", "protocol", "kind", "path"),
    [
        (answer(1), answer(1, 500), "http", "status", ""),
        (answer(1), answer(b"<html>", headers={"content-type": "text/html"}), "http", "content type", ""),
        (answer(1), Exchange(failure=Failure.CUT_OFF), "http", "failure", ""),
        (answer({"x": [1.0, 2.0]}), answer({"x": [1.0, 2.01]}), "http", "values", "['x']"),
        (answer({"x": [[1.0], [2.0]]}), answer({"x": [[1.0, 2.0]]}), "http", "structure", "['x']"),
        (answer({"ids": [7, 8]}), answer({"ids": [7, 9]}), "http", "values", "['ids']"),
        (answer({"x": 10**7}), answer({"x": 10**7 + 1}), "http", "structure", "['x']"),
        (answer({"x": "a"}), answer({"x": "b"}), "http", "structure", "['x']"),
        (answer({"x": True}), answer({"x": 1}), "http", "structure", "['x']"),
        (answer({"x": [{"y": 1.0}]}), answer({"x": [{"y": 1.5}]}), "http", "values", "['x'][0]['y']"),
        (answer(b"abc"), answer(b"abz"), "http", "body", ""),
        (v2(("a", [1.0])), v2(("a", [1.1])), "v2", "values", "['outputs']['a']"),
        (v2(("a", [1.0])), v2(("a", [1.0]), datatype="FP64"), "v2", "dtype", "['outputs']['a']"),
        (v2(("a", [1.0]), ("b", [2.0])), v2(("b", [2.0]), ("a", [1.0])), "v2", "structure", "['names of outputs'][0]"),
        (v2(("a", ["x"]), datatype="BYTES"), v2(("a", ["y"]), datatype="BYTES"), "v2", "structure", None),
        (binary([1.0, 2.0]), binary([1.0, float("nan")]), "v2", "nan_placement", "['outputs']['scores']"),
        (binary([1.0, 2.0]), binary([1.0]), "v2", "structure", "['outputs']['scores']"),
        (answer(1, headers={**JSON, "x-model": "1"}), answer(1), "http", "header", "x-model"),
    ],
)
def test_a_planted_difference_is_told_with_its_place(
    old: Exchange, new: Exchange, protocol: str, kind: str, path: str | None
) -> None:
    found = differences(old, new, protocol)[0]
    assert (found.kind, found.unstable, found.answers, found.of) == (kind, False, 2, 2)
    assert (found.endpoint, found.line) == ("POST /v2/models/m/infer", 2)
    assert path is None or found.path == path


def test_other_names_of_outputs_are_told_once_each_and_not_by_their_order_too() -> None:
    found = differences(v2(("scores", [1.0])), v2(("output__0", [1.0])), "v2")
    assert [each.path for each in found] == ["['outputs']['scores']", "['outputs']['output__0']"]


@pytest.mark.parametrize(
    ("old", "again", "new"),
    [
        (answer({"at": 1.0}), answer({"at": 5.0}), answer({"at": 9.0})),
        (answer({"id": "a"}), answer({"id": "b"}), answer({"id": "c"})),
        (answer(b"a"), answer(b"b"), answer(b"c")),
        (answer(1), answer(1, 503), answer(1, 500)),
    ],
)
def test_where_the_old_server_differs_from_itself_nothing_is_red(old: Exchange, again: Exchange, new: Exchange) -> None:
    assert [each.unstable for each in differences(old, new, again=again)] == [True]
    assert differences(old, again, again=again) == ()  # an answer that the old server gave itself


def test_what_may_differ_is_left_out_by_path_and_by_header() -> None:
    old, new = (
        answer({"a": {"id": 1, "x": 2.0}, "l": [{"id": 3}]}),
        answer({"a": {"id": 4, "x": 2.0}, "l": [{"id": 5}]}),
    )
    assert len(differences(old, new)) == 2
    assert differences(old, new, ignore=("a.id", "l.*.id")) == ()
    assert differences(old, new, ignore=("*.id", "l")) == ()
    assert differences(v2(("a", [1.0]), id="7"), v2(("a", [1.0]), id="8"), "v2", ignore=("id",)) == ()
    assert without({"a": [1, 2]}, ["a.0"]) == {"a": [2]}
    tagged = [answer(1, headers={**JSON, "x-request": at}) for at in "ab"]
    assert differences(tagged[0], tagged[1], ignore_headers=("x-request",)) == ()


def test_a_factor_or_a_dtype_says_how_precise_answers_are() -> None:
    old, new = answer({"x": [1.0]}), answer({"x": [1.002]})
    assert len(differences(old, new)) == 1
    assert differences(old, new, computes_in="float16") == ()
    assert differences(old, new, computes_in=0.01) == ()


def test_what_contradicts_itself_is_compared_as_it_is() -> None:
    torn = answer({"outputs": [{"name": "a", "datatype": "FP32", "shape": [3], "data": [1.0]}]})
    assert isinstance(parsed(torn.body, JSON, "v2")["outputs"]["a"], dict)
    assert differences(torn, torn, "v2") == ()
    assert differences(v2(("a", [1.0])), torn, "v2")[0].kind == "structure"


def test_tensors_of_texts_and_of_bfloat16_are_read_from_raw_bytes() -> None:
    text = b"".join(struct.pack("<I", len(each)) + each for each in (b"ab", b""))
    raw = text + np.array([1.5], "<f4").tobytes()[2:]
    outputs = [
        {"name": "t", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": len(text)}},
        {"name": "b", "datatype": "BF16", "shape": [1], "parameters": {"binary_data_size": 2}},
    ]
    head = json.dumps({"outputs": outputs}).encode()
    value = parsed(head + raw, {"inference-header-content-length": str(len(head))}, "v2")["outputs"]
    assert value["t"].texts == ("ab", "")
    assert (value["b"].dtype, value["b"].data) == ("bfloat16", b"\xc0\x3f")


def test_one_answer_in_many_is_counted_as_one() -> None:
    requests = [TrafficRequest(path="/m", line=at) for at in range(2, 202)]
    right = [answer({"x": [float(at)]}) for at in range(200)]
    wrong = [*right[:-1], answer({"x": [200.0]})]
    compared = compare(requests, [right, right], [right, wrong], settings())
    assert [(each.answers, each.of, each.line) for each in compared.differences] == [(1, 400, 201)]
    assert (compared.requests, compared.equal) == (200, 199)
