"""The answers of two processes read as those of one."""

from pathlib import Path

from harness.store import probe_files
from harness.artifacts.tensors.decode import Buffer, decode
from harness.artifacts.tensors.outputs import Outputs, SideEffects, joined
from harness.artifacts.tensors.recorded import read_outputs
from tests.unit.builders.tensors import Recorder, Tree, write_calls


def decoded_values(tree: Tree, buffer: Buffer) -> list[float]:
    return [float(value) for value in decode(tree[1], buffer).values]


def test_tensors_of_the_second_process_are_found_after_those_of_the_first() -> None:
    first, second = Recorder(), Recorder()
    one = Outputs(calls={("a", 0): first.tensor([1.0, 2.0])}, buffer=first.buffer, effects={})
    changed = SideEffects(changed={"input[0]": second.tensor([5.0])})
    calls = {("b", 0): ["tuple", [second.tensor([3.0]), ["int", 4]]]}
    both = joined(one, Outputs(calls=calls, buffer=second.buffer, effects={("b", 0): changed}))
    assert decoded_values(both.calls["a", 0], both.buffer) == [1.0, 2.0]
    assert decoded_values(both.calls["b", 0][1][0], both.buffer) == [3.0]
    assert both.effects is not None
    assert decoded_values(both.effects["b", 0].changed["input[0]"], both.buffer) == [5.0]


def test_a_probe_is_read_with_the_one_that_goes_on_with_it(tmp_path: Path) -> None:
    write_calls(tmp_path / "first", {("a", 0): ["int", 1]})
    write_calls(tmp_path / "second", {("b", 0): ["int", 2]})
    (tmp_path / "first" / probe_files.REST).write_text("second")
    assert list(read_outputs(tmp_path / "first", "m").calls) == [("a", 0), ("b", 0)]
