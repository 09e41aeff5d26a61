"""What a worker has left is believed only where it is what a worker writes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.core.outcome import Outcome
from harness.core.probe import ModelResult, ProbeResult
from harness.probing.verification import legible_outputs, verified
from harness.worker import wire
from tests.programs import stub

SPEC = {"dtype": "float32", "shape": [2], "stride": [1], "offset": 0, "nbytes": 8, "sha256": "x", "device": "cpu"}
DEEP: Any = ["none", None]
for _ in range(150):
    DEEP = ["list", [DEEP]]

DAMAGED: Sequence[Any] = (
    DEEP,
    [],
    ["tensor"],
    ["tensor", None],
    ["tensor", {}],
    ["tensor", {**SPEC, "offset": -4}],
    ["tensor", {**SPEC, "offset": 4}],
    ["tensor", {**SPEC, "nbytes": 4}],
    ["tensor", {**SPEC, "dtype": "float7"}],
    ["tensor", {**SPEC, "shape": [0, 2**62, 2**62], "nbytes": 0, "stride": [1, 1, 1]}],
    ["tensor", {**SPEC, "shape": [1] * 100 + [2], "stride": [1] * 101}],
    ["tensor", {**SPEC, "stride": []}],
    ["tensor", {**SPEC, "plain": [1.0]}],
    ["tensor", {**SPEC, "sha256": 7}],
    ["dict", [[["str", "a"]]]],
    ["float", "seven"],
    ["nonsense", 1],
)


def left(folder: Path, tree: Any, *, data: dict[str, Any] | None = None, verb: str = "run", **line: Any) -> ProbeResult:
    """Return the result of a completed probe that has recorded one call of ``m``, looked through."""
    (folder / wire.OUTPUTS).mkdir(parents=True)
    told = {"model": "m", "set": "example", "call": 0, "tree": tree, **line}
    (folder / wire.OUTPUTS / wire.TENSORS_INDEX).write_text(json.dumps(told) + "\n")
    (folder / wire.OUTPUTS / wire.TENSORS_BIN).write_bytes(bytes(8))
    request = stub.run_request([stub.write_artifact(folder, "m")], stub.PATIENT, verb=verb)
    models = (ModelResult(model="m", outcome=Outcome.COMPLETED),)
    result = ProbeResult(
        key="k", side="old", outcome=Outcome.COMPLETED, directory=str(folder), models=models, data=data or {}
    )
    return verified(request, result)


def test_a_healthy_record_is_taken_as_it_is(tmp_path: Path) -> None:
    result = left(tmp_path, ["tensor", SPEC], data={"numerics": {"a": True, "b": None}, "custom": [1]})
    assert result.outcomes == {Outcome.COMPLETED}
    assert result.data == {"numerics": {"a": True, "b": None}, "custom": [1]}
    assert list(legible_outputs(tmp_path, "m").calls) == [("example", 0)]


@pytest.mark.parametrize("tree", DAMAGED)
def test_an_answer_that_no_worker_writes_fails_its_model(tmp_path: Path, tree: Any) -> None:
    result = left(tmp_path, tree)
    (model,) = result.models
    assert (result.outcome, model.outcome, model.phase) == (Outcome.COMPLETED, Outcome.PROTOCOL_ERROR, wire.RECORD)
    assert model.failure is not None
    assert model.failure.type == "DamagedRecord"
    assert legible_outputs(tmp_path, "m").calls == {}


@pytest.mark.parametrize("entry", [*({"tree": tree} for tree in DAMAGED), {"set": 7}, {"method": None}, {}])
def test_inputs_that_no_worker_records_fail_their_model(tmp_path: Path, entry: dict[str, Any]) -> None:
    folder = tmp_path / wire.INPUTS
    folder.mkdir()
    line = {"model": "m", "set": "example", "method": "forward", "tree": ["tensor", SPEC], **entry}
    (folder / wire.TENSORS_INDEX).write_text(json.dumps(line) + "\n")
    (folder / wire.TENSORS_BIN).write_bytes(bytes(8))
    (model,) = left(tmp_path, ["none", None], verb="adopt").models
    assert model.outcome is (Outcome.PROTOCOL_ERROR if entry else Outcome.COMPLETED)


@pytest.mark.parametrize("line", [{"set": 7}, {"call": "x"}, {"changed": 7}, {"changed": [[["input", 0], DEEP]]}])
def test_a_line_that_no_worker_writes_fails_its_model(tmp_path: Path, line: dict[str, Any]) -> None:
    assert Outcome.PROTOCOL_ERROR in left(tmp_path, ["none", None], **line).outcomes


@pytest.mark.parametrize(
    "data",
    [
        {"numerics": [1]},
        {"switches": {"profiling": 1}},
        {"limits": {"memory": 1}},
        {"adopted": {"input_sets": [["a"]], "inputs_note": ""}},
        {"served_otherwise:m": {"calls": "many"}},
    ],
)
def test_a_mark_that_no_worker_writes_is_left_out_and_fails_the_models(tmp_path: Path, data: dict[str, Any]) -> None:
    result = left(tmp_path, ["none", None], data={**data, "kept": 1})
    assert (result.data, result.models[0].outcome) == ({"kept": 1}, Outcome.PROTOCOL_ERROR)


def test_an_export_without_its_mark_has_not_completed(tmp_path: Path) -> None:
    assert left(tmp_path, ["none", None], verb="export").models[0].outcome is Outcome.PROTOCOL_ERROR
    exported = {"exported": {"operators": ["aten::add"], "input_sets": [["example", "forward"]], "warnings": []}}
    found = left(tmp_path / "healthy", ["none", None], verb="export", data=exported)
    assert found.outcomes == {Outcome.COMPLETED}
    assert found.data == exported


def test_answers_that_take_too_much_to_describe_fail_their_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_INDEX_BYTES", 1 << 20)
    assert left(tmp_path / "small", ["str", "a" * 1000]).outcomes == {Outcome.COMPLETED}
    (model,) = left(tmp_path / "large", ["str", "a" * (1 << 20)]).models
    assert model.failure is not None
    assert "its answers take more than 1 MiB to describe" in model.failure.message


def test_a_line_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_LINE_BYTES", 1000)
    (model,) = left(tmp_path, ["str", "a" * 1000]).models
    assert model.failure is not None
    assert "a line of tensors.jsonl is longer" in model.failure.message


def test_what_failed_before_keeps_its_own_failure(tmp_path: Path) -> None:
    crashed = ModelResult(model="m", outcome=Outcome.CRASH, phase="call", input_set="example", call=1)
    result = ProbeResult(
        key="k", side="old", outcome=Outcome.CRASH, directory=str(tmp_path), models=(crashed,), data={"numerics": 1}
    )
    request = stub.run_request([stub.write_artifact(tmp_path, "m")], stub.PATIENT)
    assert verified(request, result).models == (crashed,)
