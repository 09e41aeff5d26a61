"""What a worker recorded of a call made node by node, read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.search.bisect.traces import is_kept, key, read_trace, shown
from harness.worker import wire


def spec(offset: int | None = 0, digest: str = "d") -> dict[str, Any]:
    return {"dtype": "float32", "shape": [1], "stride": [1], "offset": offset, "nbytes": 4, "sha256": digest}


def begin(*place: int, tree: Any = ("list", []), **more: Any) -> dict[str, Any]:
    told = {"kind": "aten::mul", "schema": "aten::mul.Tensor(Tensor self)", "source": "f:1", "code": "x", "module": "m"}
    return {"place": place, "address": place, "begin": True, "tree": tree, **told, **more}


def end(*place: int, **more: Any) -> dict[str, Any]:
    return {"place": place, "begin": False, **more}


def written(folder: Path, *lines: dict[str, Any], torn: str = "") -> Path:
    trace = folder / wire.TRACE
    trace.mkdir(parents=True)
    (trace / wire.TENSORS_INDEX).write_text("".join(json.dumps(line) + "\n" for line in lines) + torn)
    (trace / wire.TENSORS_BIN).write_bytes(b"\0\0\x80?")
    return folder


def test_nodes_and_outputs_are_read_in_the_order_of_the_run(tmp_path: Path) -> None:
    output = ["list", [["tensor", spec()]]]
    trace = read_trace(
        written(
            tmp_path,
            {"block": [], "keys": [["prim::If", "", ""]]},
            begin(0, kind="prim::If"),
            {"place": [0], "choice": True},
            begin(0, 0, 1, tree=["list", [["tensor", spec()], ["int", 3]]]),
            end(0, 0, 1, tree=output),
            end(0, tree=output),
        )
    )
    assert list(trace.nodes) == [(0,), (0, 0, 1)]
    inner = trace.nodes[0, 0, 1]
    assert (inner.operator, inner.inputs, inner.module) == ("aten::mul.Tensor", ("float32[1]", "3"), "m")
    assert list(trace.outputs.calls) == [key((0, 0, 1)), key((0,))]
    assert trace.last is None


def test_the_innermost_open_node_is_where_the_process_ended(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, begin(0), begin(0, 1, 2), torn='{"place": [0, 1'))
    assert trace.last is not None
    assert trace.last.place == (0, 1, 2)
    assert not trace.nodes[0,].finished


def test_an_error_is_kept_with_its_node(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, begin(0), end(0, error="RuntimeError: no")))
    assert trace.nodes[0,].error == "RuntimeError: no"
    assert trace.nodes[0,].finished
    assert not trace.outputs.calls


def test_outputs_whose_bytes_were_not_kept_have_digests(tmp_path: Path) -> None:
    tree = ["list", [["tensor", spec(None, "big")]]]
    trace = read_trace(written(tmp_path, begin(0), end(0, tree=tree)))
    assert trace.digests == {(0,): ("big",)}
    assert not trace.outputs.calls
    assert not is_kept(tree)


@pytest.mark.parametrize(
    "line",
    [
        {"begin": True},
        end(7),
        begin(0, tree=[]),
        end(0, tree=["tensor", {"offset": 9}]),
        {"begin": True, "place": 7},
    ],
)
def test_a_trace_that_a_model_has_damaged_is_none(tmp_path: Path, line: Any) -> None:
    assert not read_trace(written(tmp_path, begin(0), line)).nodes
    assert not read_trace(written(tmp_path / "deep", begin(0), torn="[" * 100_000 + "\n")).nodes


def test_there_may_be_no_trace(tmp_path: Path) -> None:
    assert not read_trace(tmp_path).nodes


def test_values_in_words() -> None:
    assert shown(["list", [["none", None], ["tensor", spec()]]]) == "[None, float32[1]]"
    assert shown(["tuple", [["int", index] for index in range(9)]]) == "[0, 1, 2, 3, ...]"
