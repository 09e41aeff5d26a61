"""What a worker recorded, read back."""

import json
import mmap
from pathlib import Path

import pytest

from harness.store.probe_files import IN_MEMORY_BYTES
from harness.artifacts.tensors import recorded
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs, SideEffects
from harness.artifacts.tensors.recorded import read_inputs, read_outputs
from harness.worker import wire


def record(folder: Path, *lines: str, data: bytes = b"") -> Path:
    folder.mkdir(parents=True)
    (folder / wire.TENSORS_INDEX).write_text("".join(lines))
    (folder / wire.TENSORS_BIN).write_bytes(data)
    return folder


def line(model: str, input_set: str, call: int) -> str:
    return json.dumps({"model": model, "set": input_set, "call": call, "tree": ["int", call]}) + "\n"


def test_calls_of_one_model_come_in_the_order_they_were_made(tmp_path: Path) -> None:
    record(
        tmp_path / "outputs",
        line("m", "z", 0),
        line("n", "z", 0),
        line("m", "z", 1),
        line("m", "a", 0),
        data=b"\x01\x02",
    )
    found = read_outputs(tmp_path, "m")
    assert list(found.calls) == [("z", 0), ("z", 1), ("a", 0)]
    assert found.calls["z", 1] == ["int", 1]
    assert bytes(memoryview(found.buffer)) == b"\x01\x02"


def test_outputs_without_tensors_have_an_empty_buffer(tmp_path: Path) -> None:
    record(tmp_path / "outputs", line("m", "example", 0))
    found = read_outputs(str(tmp_path), "m")
    assert (found.buffer, list(found.calls)) == (b"", [("example", 0)])


def test_other_folder_can_be_read(tmp_path: Path) -> None:
    record(tmp_path / "inputs", line("m", "example", 0))
    assert list(read_outputs(tmp_path, "m", folder="inputs").calls) == [("example", 0)]
    assert read_outputs(tmp_path, "m").calls == {}


@pytest.mark.parametrize("missing", [wire.TENSORS_INDEX, wire.TENSORS_BIN])
def test_worker_that_recorded_nothing_has_no_outputs(tmp_path: Path, missing: str) -> None:
    folder = record(tmp_path / "outputs", line("m", "example", 0))
    (folder / missing).unlink()
    assert read_outputs(tmp_path, "m") == Outputs(calls={}, buffer=b"")


def test_line_that_was_torn_by_a_kill_costs_only_its_own_call(tmp_path: Path) -> None:
    record(tmp_path / "outputs", line("m", "example", 0), line("m", "example", 1)[:-9])
    assert list(read_outputs(tmp_path, "m").calls) == [("example", 0)]


def test_damage_in_the_middle_is_never_skipped(tmp_path: Path) -> None:
    record(tmp_path / "outputs", "{torn\n", line("m", "example", 1))
    with pytest.raises(ValueError, match="Expecting property name"):
        read_outputs(tmp_path, "m")


def test_only_large_files_are_mapped_so_that_hundreds_of_models_need_no_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "IN_MEMORY_BYTES", 4)
    record(tmp_path / "small" / "outputs", line("m", "example", 0), data=b"1234")
    record(tmp_path / "large" / "outputs", line("m", "example", 0), data=b"12345")
    small, large = (read_outputs(tmp_path / name, "m").buffer for name in ("small", "large"))
    assert (small, isinstance(large, mmap.mmap), bytes(memoryview(large))) == (b"1234", True, b"12345")


def test_files_up_to_four_mebibytes_are_read_into_memory() -> None:
    assert IN_MEMORY_BYTES == 4 * 1024 * 1024


def test_side_effects_of_a_call_are_read_with_it(tmp_path: Path) -> None:
    effects = {"changed": [[["input", 0, ["str", "x"]], ["int", 1]]], "shared": [[["input", 0], ["output", 1, "at"]]]}
    told = {**json.loads(line("m", "z", 0)), **effects}
    record(tmp_path / "outputs", json.dumps(told) + "\n", line("m", "z", 1))
    found = read_outputs(tmp_path, "m").effects
    assert found is not None
    assert found["z", 0] == SideEffects(changed={"input[0]['x']": ["int", 1]}, shared=(("input[0]", "output[1].at"),))
    assert found["z", 1] == SideEffects()


@pytest.mark.parametrize(
    "damage",
    [
        "[" * 100_000 + "\n",
        "[]\n",
        "{}\n",
        '{"model": "m"}\n',
        "7\n",
        '{"model": "m", "set": 7, "call": 0, "tree": 0}\n',
    ],
)
def test_whatever_lies_in_the_record_is_named_as_damage(tmp_path: Path, damage: str) -> None:
    record(tmp_path / "outputs", line("m", "example", 0), damage)
    with pytest.raises(DecodeError, match=r"line 2 of outputs/tensors\.jsonl"):
        read_outputs(tmp_path, "m")


def test_a_name_that_no_file_can_hold_is_read_in_another_spelling(tmp_path: Path) -> None:
    record(tmp_path / "outputs", line("m", "\ud800", 0))
    assert list(read_outputs(tmp_path, "m").calls) == [("?", 0)]


def test_inputs_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    entry = {"set": "example", "method": "encode", "tree": ["tuple", [["int", 1]]]}
    found = read_inputs(record(tmp_path / "inputs", json.dumps(entry) + "\n", data=b"ab"))
    assert found.entries == (("example", "encode", entry["tree"]),)
    assert bytes(found.buffer) == b"ab"
