"""Answers that hold something to compare, and those that hold nothing."""

from typing import Any

import numpy as np
import pytest

from harness.correctness.outputs import hold_value
from harness.tensors.outputs import Outputs, SideEffects
from tests.unit.builders.tensors import Recorder, Tree

KEY = ("guessed", 0)


def tensor(*values: float, recorder: Recorder) -> Tree:
    return recorder.tensor(np.array(values, dtype=np.float32))


def trees(recorder: Recorder, *values: float) -> list[Any]:
    """Return answers of every kind that hold the values, and nothing beside them."""
    one = tensor(*values, recorder=recorder)
    return [one, ["list", [["none", None], one]], ["dict", [[["str", "a"], one]]], ["namedtuple", ["N", [["a", one]]]]]


@pytest.mark.parametrize("values", [(), (np.nan, np.nan), (np.inf, -np.inf)])
def test_nan_infinity_and_emptiness_hold_nothing(values: tuple[float, ...]) -> None:
    recorder = Recorder()
    for tree in trees(recorder, *values):
        assert not hold_value(Outputs({KEY: tree}, recorder.buffer))


def test_one_finite_number_is_a_value() -> None:
    recorder = Recorder()
    for tree in trees(recorder, np.nan, 0.0):
        assert hold_value(Outputs({KEY: tree}, recorder.buffer))


@pytest.mark.parametrize(
    ("tree", "holds"),
    [
        (["none", None], False),
        (["list", []], False),
        (["dict", []], False),
        (["object", "Thing"], False),
        (["float", "nan"], False),
        (["float", "0.5"], True),
        (["int", 0], True),
        (["bool", False], True),
        (["str", ""], True),
    ],
)
def test_plain_values(tree: Tree, holds: bool) -> None:
    assert hold_value(Outputs({KEY: tree})) is holds


def test_input_that_a_call_changed_is_an_answer_too() -> None:
    recorder = Recorder()
    changed = {KEY: SideEffects({"input[0]": tensor(1.0, recorder=recorder)})}
    assert hold_value(Outputs({KEY: ["none", None]}, recorder.buffer, effects=changed))
    assert not hold_value(Outputs({KEY: ["none", None]}, recorder.buffer, effects={KEY: SideEffects()}))
