"""All calls of one model."""

import math
from typing import Any

import numpy as np
import pytest

from harness.checks.outputs import outputs as correctness_outputs
from harness.checks.outputs.metrics import tensor_metrics
from harness.checks.outputs.outputs import compare_outputs, hold_value
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs, SideEffects, same_answers
from tests.unit.builders.tensors import Recorder, Tree, float32, outputs


def only(comparison: OutputComparison) -> TensorMetrics:
    (tensor,) = comparison.tensors
    return tensor


def test_every_call_is_compared_in_the_order_of_the_golden() -> None:
    result = compare_outputs("m", "alone", outputs(float32(1), float32(1)), outputs(float32(1), float32(2)))
    assert (result.model, result.scenario) == ("m", "alone")
    assert [(call.input_set, call.call) for call in result.calls] == [("example", 0), ("example", 1)]
    assert [(call.equal, len(call.tensors)) for call in result.calls] == [(1, 0), (0, 1)]


def test_missing_and_extra_calls_are_reported() -> None:
    golden, probe = outputs(float32(1), float32(1)), outputs(float32(1), float32(1), float32(1))
    assert compare_outputs("m", "alone", probe, golden).missing_calls == (("example", 2),)
    extra = compare_outputs("m", "alone", golden, probe).calls[2]
    assert (extra.call, extra.tensors) == (2, ())
    assert [(item.kind, item.expected, item.actual) for item in extra.tree] == [("structure", "no such call", "call 2")]


def test_nothing_in_common_compares_nothing() -> None:
    result = compare_outputs("m", "alone", outputs(float32(1)), Outputs({}))
    assert (result.calls, result.missing_calls) == ((), (("example", 0),))


def test_structure_and_strides_reach_the_call() -> None:
    recorder = Recorder()
    square = np.eye(2, dtype=np.float32)
    golden = Outputs({("s", 0): ["tuple", [recorder.tensor(square), ["int", 1]]]}, recorder.buffer)
    probe = Outputs({("s", 0): ["tuple", [recorder.tensor(square, stride=[1, 2]), ["int", 2]]]}, recorder.buffer)
    (call,) = compare_outputs("m", "alone", golden, probe).calls
    assert [item.path for item in call.tree] == ["output[1]"]
    assert call.stride_changes == ("output[0]: stride (2, 1) -> (1, 2)",)
    assert (call.equal, call.tensors) == (1, ())


def test_noise_is_the_largest_over_repeats_and_calls_of_the_set() -> None:
    golden = outputs(float32(1), float32(2))
    repeats = [outputs(float32(1), float32(2.25)), outputs(float32(1.125))]
    result = compare_outputs("m", "alone", golden, outputs(float32(3), float32(3)), repeats=repeats)
    assert [tensor.noise_abs for tensor in result.tensors] == [0.25, 0.25]
    assert result.unstable == ("output",)


def test_quiet_repeats_give_zero_noise_and_no_repeats_give_none() -> None:
    golden = outputs(float32(math.nan, 1))
    probe, alike = outputs(float32(math.nan, 2)), outputs(float32(math.nan, 1))
    for repeats in ([golden], [alike], [golden, alike]):
        assert only(compare_outputs("m", "alone", golden, probe, repeats=repeats)).noise_abs == 0.0
    for without in ([], [outputs(float32(1))]):
        assert only(compare_outputs("m", "alone", golden, probe, repeats=without)).noise_abs is None


def test_call_is_compared_to_the_reference_of_that_call_only() -> None:
    golden, probe = outputs(float32(1), float32(1), float32(1)), outputs(float32(2), float32(2), float32(2))
    reference = outputs(np.array([1.5], np.float64), np.array([1.25], np.float64))
    result = compare_outputs("m", "alone", golden, probe, reference=reference)
    assert [tensor.reference_old_abs for tensor in result.tensors] == [0.5, 0.25, None]
    assert [tensor.reference_new_abs for tensor in result.tensors] == [0.5, 0.75, None]


def test_reference_of_another_input_set_or_tree_is_not_used() -> None:
    golden, probe = outputs(float32(1)), outputs(float32(2))
    for reference in (outputs(np.array([1], np.float64), input_set="other"), Outputs({("example", 0): ["none", None]})):
        assert only(compare_outputs("m", "alone", golden, probe, reference=reference)).reference_old_abs is None


def test_bytes_are_measured_once_and_equal_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    inner = tensor_metrics

    def counting(path: str, *args: object, **options: object) -> TensorMetrics:
        measured.append(path)
        return inner(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(correctness_outputs, "tensor_metrics", counting)
    golden = outputs(*[float32(1)] * 5)
    assert compare_outputs("m", "alone", golden, golden).calls[4].equal == 1
    assert measured == []
    compare_outputs("m", "alone", golden, outputs(float32(1), *[float32(3)] * 4))
    assert measured == ["output"]


def test_records_without_digests_compare_by_bytes() -> None:
    golden = outputs(float32(1), float32(2), hashed=False)
    probe = outputs(float32(1), float32(3), hashed=False)
    result = compare_outputs("m", "alone", golden, probe, repeats=[golden], reference=golden)
    assert [(call.equal, len(call.tensors)) for call in result.calls] == [(1, 0), (0, 1)]


def test_equal_codes_under_another_quantizer_are_no_known_bytes() -> None:
    recorder = Recorder()
    calls = [
        recorder.tensor(np.array([4], np.int8), "qint8", quantizer={"scale": s, "zero_point": 0}) for s in (1.0, 2.0)
    ]
    golden = Outputs({("s", 0): calls[0], ("s", 1): calls[0]}, recorder.buffer)
    probe = Outputs({("s", 0): calls[0], ("s", 1): calls[1]}, recorder.buffer)
    result = compare_outputs("m", "alone", golden, probe)
    assert [[tensor.max_abs for tensor in call.tensors] for call in result.calls] == [[], [4.0]]


def test_plain_floats_keep_the_sign_of_zero_apart() -> None:
    golden = Outputs({("s", 0): ["float", "0.0"], ("s", 1): ["float", "0.0"]})
    probe = Outputs({("s", 0): ["float", "0.0"], ("s", 1): ["float", "-0.0"]})
    result = compare_outputs("m", "alone", golden, probe)
    assert [(call.equal, len(call.tensors)) for call in result.calls] == [(1, 0), (0, 1)]


def test_of_a_long_list_only_what_differs_is_kept() -> None:
    golden = [["float", str(index)] for index in range(20_000)]
    probe = [*golden[:-1], ["float", "-1.0"]]
    first, second = compare_outputs(
        "m", "alone", *(Outputs({("s", 0): ["list", golden], ("s", 1): ["list", tree]}) for tree in (golden, probe))
    ).calls
    assert (first.equal, first.tensors, second.equal) == (20_000, (), 19_999)
    assert [tensor.path for tensor in second.tensors] == ["output[19999]"]


def test_computes_in_reaches_the_tolerance() -> None:
    golden, probe = outputs(float32(1)), outputs(float32(1.001))
    assert only(compare_outputs("m", "alone", golden, probe)).mismatched == 1
    assert only(compare_outputs("m", "alone", golden, probe, precision="float16")).mismatched == 0


def test_damaged_record_says_where() -> None:
    golden = outputs(float32(1))
    with pytest.raises(DecodeError, match="example call 0 output: bytes 0 to 4 lie outside the buffer of 0"):
        compare_outputs("m", "alone", Outputs(golden.calls, b""), outputs(float32(2)))


# same_answers


def test_same_bits_are_the_same_answers_wherever_they_lie() -> None:
    one, other = Recorder(), Recorder()
    other.tensor(float32(9, 9, 9))  # moves what follows
    first = Outputs({("example", 0): ["tuple", [one.tensor(float32(1)), ["int", 3]]]}, one.buffer)
    second = Outputs({("example", 0): ["tuple", [other.tensor(float32(1)), ["int", 3]]]}, other.buffer)
    assert first.calls != second.calls
    assert same_answers(first, second)
    assert same_answers(second, first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((float32(1),), (float32(2),)),
        ((float32(0.0),), (float32(-0.0),)),
        ((float32(1),), (np.array([1.0]),)),
        ((float32(1, 2),), (float32(1, 2).reshape(2, 1),)),
        ((float32(1),), (float32(1), float32(1))),
        ((float32(1), float32(2)), (float32(2), float32(1))),
    ],
    ids=["value", "sign of zero", "dtype", "shape", "one call more", "order"],
)
def test_any_difference_is_one(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert same_answers(outputs(*one), outputs(*one))
    assert not same_answers(outputs(*one), outputs(*other))
    assert not same_answers(outputs(*other), outputs(*one))


def test_nan_is_the_same_answer_as_the_same_nan() -> None:
    assert same_answers(outputs(float32(math.nan)), outputs(float32(math.nan)))


def test_values_that_are_no_tensors_count_too() -> None:
    def said(value: object) -> Outputs:
        return Outputs({("example", 0): ["dict", [["a", ["float", value]]]]})

    assert same_answers(said(1.5), said(1.5))
    assert not same_answers(said(1.5), said(1.25))


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
