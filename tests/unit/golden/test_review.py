"""Two records of one model: samples against samples, and shapes by the whole tensor."""

from typing import Any

import numpy as np
import pytest

from harness.domain.comparison import OutputComparison, TensorMetrics
from harness.golden.review import compare_records
from harness.tensors.samples import sampled
from tests.unit.builders.requests import float32, golden_outputs

LARGE = np.arange(1, 50_001, dtype=np.float32)


def kept(*values: Any) -> Any:
    return sampled(golden_outputs(*values))


def only(comparison: OutputComparison) -> TensorMetrics:
    (tensor,) = comparison.calls[0].tensors
    assert comparison.calls[0].tree == ()
    return tensor


def test_equal_samples_of_equal_tensors_are_equal() -> None:
    tensor = only(compare_records("m", kept(LARGE), kept(LARGE.copy())))
    assert (tensor.bit_equal, tensor.sampled) == (True, False)


def test_equal_samples_of_other_tensors_decide_nothing() -> None:
    other = LARGE.copy()
    other[1] += 1
    tensor = only(compare_records("m", kept(LARGE), kept(other)))
    assert (tensor.bit_equal, tensor.sampled) == (True, True)


def test_samples_that_differ_have_numbers() -> None:
    other = LARGE.copy()
    other[0] += 2
    tensor = only(compare_records("m", kept(LARGE), kept(other)))
    assert (tensor.max_abs, tensor.sampled, tensor.elements) == (2.0, True, 1021)


@pytest.mark.parametrize("small_first", [False, True])
def test_wholes_of_another_shape_differ_in_structure_though_their_samples_agree(small_first: bool) -> None:
    """Half as many elements at half the step: both samples have 1,000 elements."""
    one, other = kept(np.arange(8000, dtype=np.float32)), kept(np.arange(16_000, dtype=np.float32))
    if small_first:
        one, other = other, one
    (call,) = compare_records("m", one, other).calls
    assert [found.kind for found in call.tree] == ["structure"]
    assert {"(8000,)", "(16000,)"} == {
        text.removeprefix("shape ") for text in (call.tree[0].expected, call.tree[0].actual)
    }
    assert call.tensors == ()


def test_a_tensor_as_large_as_the_others_sample_is_another_shape() -> None:
    whole = np.arange(8000, dtype=np.float32)
    (call,) = compare_records("m", kept(whole), kept(whole[::8].copy())).calls
    assert call.tree[0].expected == "shape (8000,)" and call.tree[0].actual == "shape (1000,)"


@pytest.mark.parametrize("wide_first", [False, True])
def test_one_that_is_a_sample_only_for_its_dtype_is_compared_element_by_element(wide_first: bool) -> None:
    narrow = np.linspace(1, 2, 3000, dtype=np.float32)
    one, other = kept(narrow), kept(narrow.astype(np.float64))
    if wide_first:
        one, other = other, one
    (call,) = compare_records("m", one, other).calls
    assert [found.kind for found in call.tree] == ["dtype"]
    assert (call.tensors[0].max_abs, call.tensors[0].elements) == (0.0, 1000)


def test_small_tensors_are_compared_whole() -> None:
    tensor = only(compare_records("m", kept(float32(1, 2)), kept(float32(1, 3))))
    assert (tensor.max_abs, tensor.sampled) == (1.0, False)


def test_calls_that_only_one_has_are_said() -> None:
    one, two = kept(float32(1)), kept(float32(1), float32(1))
    assert compare_records("m", two, one).missing_calls == (("example", 1),)
    assert compare_records("m", one, two).calls[1].tree[0].actual == "call 1"
