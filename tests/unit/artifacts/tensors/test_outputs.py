"""Side effects of calls, from the wire into comparisons."""

from typing import Any

import pytest

from harness.checks.outputs.noise import old_noise
from harness.checks.outputs.outputs import compare_outputs
from harness.core.comparison import CallComparison
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs, SideEffects, same_answers, side_effects
from tests.unit.builders.tensors import Recorder, float32

KEY = ("example", 0)


def side(changed: dict[str, float] | None = None, *shared: tuple[str, ...]) -> Outputs:
    """Return one call that answers 1.0, and leaves the given values in its inputs."""
    recorder = Recorder()
    answer = recorder.tensor(float32(1))
    trees = {path: recorder.tensor(float32(4, value)) for path, value in (changed or {}).items()}
    return Outputs({KEY: answer}, recorder.buffer, effects={KEY: SideEffects(trees, shared)})


def compared(old: Outputs, new: Outputs, **options: Any) -> CallComparison:
    (call,) = compare_outputs("m", "alone", old, new, **options).calls
    return call


def test_inputs_that_both_sides_change_are_compared_like_outputs() -> None:
    call = compared(side({"input[0]": 2}), side({"input[0]": 3}))
    assert call.inputs_changed == ("input[0]",)
    assert [(tensor.path, tensor.max_abs) for tensor in call.tensors] == [("input[0]", 1.0)]
    assert call.equal == 1  # the output


def test_inputs_that_one_side_changes_are_named() -> None:
    call = compared(side({"input[0]": 2, "input[1]": 2}), side({"input[1]": 2, "input[2]": 0}))
    assert (call.inputs_changed, call.inputs_changed_old, call.inputs_changed_new) == (
        ("input[1]",),
        ("input[0]",),
        ("input[2]",),
    )


def test_shared_memory_that_only_one_side_has_is_named_whatever_the_order() -> None:
    old = side(None, ("input[0]", "output[0]"), ("output[1]", "output[2]"))
    new = side(None, ("output[2]", "output[1]"), ("input[1]", "output[0]"))
    call = compared(old, new)
    assert (call.aliases_old, call.aliases_new) == (("input[0] = output[0]",), ("input[1] = output[0]",))


def test_where_nobody_looked_nothing_is_said() -> None:
    known = side({"input[0]": 2}, ("input[0]", "output"))
    golden = Outputs(known.calls, known.buffer)
    call = compared(golden, known)
    assert (call.inputs_changed_new, call.aliases_new) == ((), ())
    assert compared(known, golden).inputs_changed_old == ()


def test_repeats_that_change_an_input_otherwise_give_noise() -> None:
    noise = old_noise(side({"input[0]": 2}), [side({"input[0]": 2.5})])
    assert noise.largest["example", "input[0]"] == 0.5
    assert noise.unstable == ("input[0]",)


def test_same_answers_have_the_same_side_effects() -> None:
    one = side({"input[0]": 2}, ("input[0]", "output"))
    assert same_answers(one, side({"input[0]": 2}, ("input[0]", "output")))
    assert not same_answers(one, side({"input[0]": 3}, ("input[0]", "output")))
    assert not same_answers(one, side({"input[0]": 2}))


@pytest.mark.parametrize(
    "line",
    [
        {"changed": [[["input"]]]},
        {"changed": [[[], ["int", 1]]]},
        {"changed": 3},
        {"shared": [["input"], 4]},
        {"shared": [[["input", {}]]]},
    ],
)
def test_damaged_side_effects_are_our_fault(line: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        side_effects(line)
