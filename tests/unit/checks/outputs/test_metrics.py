"""All numbers of one pair."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.checks.outputs import elementwise, metrics, totals
from harness.checks.outputs.elementwise import ShapeMismatch
from harness.checks.outputs.metrics import agreement, is_head, largest_difference, tensor_metrics
from harness.checks.outputs.tolerances import FACTORS
from harness.core.comparison import TensorMetrics
from harness.artifacts.tensors.decode import STORED, Decoded, decode, plain_number
from harness.worker import wire
from tests.unit.builders.tensors import Recorder, bfloat16_patterns, decoded, float32, near


def measured(expected: Any, actual: Any, **options: Any) -> TensorMetrics:
    ours = actual if isinstance(actual, Decoded) else decoded(actual)
    theirs = expected if isinstance(expected, Decoded) else decoded(expected)
    return tensor_metrics("output", theirs, ours, **{"precision": None} | options)


def float64(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def test_ordinary_difference_fills_every_field() -> None:
    result = measured(float32(1, -2, 4), float32(1, -2.5, 4), noise=0.25)
    assert result == TensorMetrics(
        path="output",
        dtype="float32",
        elements=3,
        bit_equal=False,
        max_abs=0.5,
        max_rel=0.25,
        max_ulp=1 << 21,
        rel_l2=near(0.5 / math.sqrt(21)),
        cosine=near(22 / math.sqrt(21 * 23.25)),
        scale=4.0,
        tolerance_abs=near(4e-5),
        mismatched=1,
        worst_index=(1,),
        worst_expected="-2.0",
        worst_actual="-2.5",
        noise_abs=0.25,
        error_histogram=(2, *[0] * 9, 1, 0),
    )


@pytest.mark.parametrize("hashed", [True, False])
def test_equal_bytes_are_bit_equal_with_and_without_digests(*, hashed: bool) -> None:
    recorder = Recorder(hashed=hashed)
    values = float32(3, -4, math.nan)
    result = measured(recorder.decoded(values), recorder.decoded(values), noise=0.0)
    assert result.bit_equal
    assert (result.scale, result.rel_l2, result.cosine, result.max_ulp, result.noise_abs) == (4.0, 0.0, 1.0, 0, 0.0)
    assert (result.nan_mismatches, result.mismatched, result.worst_index) == (0, 0, ())
    assert result.tolerance_abs == near(4e-5)


def test_other_nan_payloads_and_zero_signs_are_equal_values_with_other_bits() -> None:
    payload = np.array([0x7FC00001, 0x80000000], dtype=np.uint32).view(np.float32)
    result = measured(float32(math.nan, 0.0), payload)
    assert not result.bit_equal
    assert (result.nan_mismatches, result.max_abs, result.mismatched, result.worst_index) == (0, 0.0, 0, ())
    assert (result.rel_l2, result.cosine, result.max_ulp) == (0.0, None, 0)


def test_nan_and_infinity_placement_are_counted_and_the_first_is_shown() -> None:
    result = measured(float32(1, 2, math.inf, 4, 5), float32(9, 2, -math.inf, math.nan, 5))
    assert (result.nan_mismatches, result.nan_appeared, result.inf_mismatches) == (1, 1, 1)
    assert (result.max_abs, result.mismatched) == (8.0, 1)
    assert (result.worst_index, result.worst_expected, result.worst_actual) == ((2,), "inf", "-inf")


def test_worst_index_skips_the_nans_before_it() -> None:
    result = measured(float32(math.nan, math.inf, 1, 2), float32(math.nan, math.inf, 1, 3))
    assert (result.nan_mismatches, result.inf_mismatches, result.worst_index) == (0, 0, (3,))


def test_all_nan_leaves_no_pair_to_measure() -> None:
    result = measured(float32(math.nan), float32(1))
    assert (result.nan_mismatches, result.max_abs, result.scale, result.cosine) == (1, 0.0, 0.0, None)
    assert largest_difference(decoded(float32(math.nan)), decoded(float32(1))) == 0.0


def test_expected_zeros_make_relative_numbers_infinite_but_not_undefined() -> None:
    result = measured(float32(0, 0), float32(0, -1))
    assert (result.max_rel, result.rel_l2, result.cosine) == (math.inf, math.inf, None)
    assert (result.scale, result.tolerance_abs, result.mismatched) == (0.0, 0.0, 1)


def test_denormals_are_measured() -> None:
    result = measured(float32(1e-44), float32(1.1e-44))
    assert result.max_ulp == 1
    assert result.max_abs == near(1.4e-45, rel=0.01)
    assert result.mismatched == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_empty_tensors_are_bit_equal(shape: tuple[int, ...]) -> None:
    result = measured(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    assert (result.bit_equal, result.elements, result.scale, result.cosine) == (True, 0, 0.0, None)


def test_empty_tensors_of_other_dtypes_are_not_bit_equal() -> None:
    result = measured(np.zeros(0, np.float32), np.zeros(0, np.complex64))
    assert (result.bit_equal, result.elements, result.max_abs, result.max_ulp) == (False, 0, 0.0, None)


def test_scalar_has_an_empty_index_and_shown_values() -> None:
    result = measured(np.float32(1), np.float32(2))
    assert (result.elements, result.worst_index, result.worst_expected, result.worst_actual) == (1, (), "1.0", "2.0")


def test_integers_are_exact_at_any_size() -> None:
    result = measured(np.array([2**62, 5]), np.array([2**62 + 1, 5]), precision="float16")
    assert (result.max_abs, result.mismatched, result.tolerance_abs, result.max_ulp) == (1.0, 1, 0.0, None)
    assert result.worst_actual == str(2**62 + 1)


def test_bools_count_flips() -> None:
    result = measured(decoded(np.array([1, 0, 1], np.uint8), "bool"), decoded(np.array([1, 1, 0], np.uint8), "bool"))
    assert (result.mismatched, result.max_abs, result.worst_expected, result.worst_actual) == (2, 1.0, "False", "True")


def test_bfloat16_has_ulps_and_a_bound_of_its_own() -> None:
    result = measured(
        decoded(bfloat16_patterns([1.0]), "bfloat16"), decoded(bfloat16_patterns([1.0078125]), "bfloat16")
    )
    assert (result.max_ulp, result.mismatched) == (1, 0)
    assert result.tolerance_abs == FACTORS["bfloat16"]


def test_float8_neighbours_are_within_tolerance_and_have_no_ulps() -> None:
    codes = np.array([0x7E, 0x7D], dtype=np.uint8)
    result = measured(decoded(codes, "float8_e4m3fn"), decoded(codes - np.array([0, 1], np.uint8), "float8_e4m3fn"))
    assert (result.max_abs, result.mismatched, result.max_ulp) == (32.0, 0, None)


def test_complex_values_use_modulus_and_parts() -> None:
    result = measured(np.array([3 + 4j, 1], np.complex64), np.array([3 + 4j, complex(1, math.nan)], np.complex64))
    assert (result.nan_mismatches, result.scale, result.worst_index) == (1, 5.0, (1,))
    halves = np.array([[1.0, 2.0]], np.float16)
    moved = measured(decoded(halves, "complex32", [1]), decoded(np.nextafter(halves, 9), "complex32", [1]))
    assert moved.max_ulp == 1


def test_quantized_tensors_are_measured_in_quanta() -> None:
    quantizer = {"scale": 0.1, "zero_point": 10}
    expected = decoded(np.array([10, 20, 30], np.uint8), "quint8", quantizer=quantizer)
    result = measured(expected, decoded(np.array([10, 21, 28], np.uint8), "quint8", quantizer=quantizer))
    assert (result.max_abs, result.mismatched, result.tolerance_abs, result.scale) == (2.0, 1, 1.0, 20.0)
    assert (result.max_rel, result.worst_index) == (0.1, (2,))


def test_other_quantizer_over_equal_codes_is_a_difference() -> None:
    codes = np.array([10, 20], np.uint8)
    expected = decoded(codes, "quint8", quantizer={"scale": 0.5, "zero_point": 0})
    result = measured(expected, decoded(codes, "quint8", quantizer={"scale": 1.0, "zero_point": 0}))
    assert (result.bit_equal, result.max_abs, result.mismatched) == (False, 20.0, 2)


def test_per_channel_quanta_follow_each_channel() -> None:
    quantizer = {"scales": [1.0, 0.25], "zero_points": [0, 0], "axis": 0}
    expected = decoded(np.array([[4], [4]], np.int8), "qint8", quantizer=quantizer)
    assert measured(expected, decoded(np.array([[4], [1.5]], np.float32))).max_abs == 2.0


def test_other_dtype_is_compared_by_value_without_ulps() -> None:
    result = measured(float32(1, 2), np.array([1, 2], np.float16))
    assert (result.bit_equal, result.dtype, result.max_abs, result.max_ulp) == (False, "float32", 0.0, None)


def test_lower_computing_precision_widens_the_bound() -> None:
    assert measured(float32(1), float32(1.001)).mismatched == 1
    assert measured(float32(1), float32(1.001), precision="float16").mismatched == 0


def test_reference_gives_distances_of_both_sides() -> None:
    result = measured(float32(1, 2), float32(1, 2.5), reference=decoded(np.array([1.25, 2.25], np.float64)))
    assert (result.reference_old_abs, result.reference_new_abs) == (0.25, 0.25)


@pytest.mark.parametrize(
    "reference", [np.array([1], np.float64), np.array([[1, 2]], np.float64), np.array([math.nan, 2], np.float64)]
)
def test_useless_reference_is_left_out(reference: Any) -> None:
    result = measured(float32(1, 2), float32(1, 3), reference=decoded(reference))
    assert (result.reference_old_abs, result.reference_new_abs) == (None, None)


def test_reference_is_not_asked_about_elements_that_are_nowhere_finite() -> None:
    result = measured(
        float32(math.nan, 2), float32(math.nan, 3), reference=decoded(np.array([math.nan, 2], np.float64))
    )
    assert (result.reference_old_abs, result.reference_new_abs) == (0.0, 1.0)
    nothing = measured(float32(math.nan), float32(1), reference=decoded(np.array([1], np.float64)))
    assert nothing.reference_old_abs is None


def test_integers_have_no_reference() -> None:
    assert measured(np.array([1]), np.array([2]), reference=decoded(np.array([2]))).reference_new_abs is None


def plain(text: str) -> Decoded:
    return decode(plain_number("float", text), b"")


def test_python_floats_get_the_bound_of_float64() -> None:
    assert measured(plain("0.1"), plain(repr(0.1 * (1 + 2e-16)))).mismatched == 0
    assert measured(plain("0.1"), plain("0.1000001")).mismatched == 1
    assert measured(plain("nan"), plain("nan")).bit_equal


def test_python_floats_from_float32_tensors_get_the_bound_of_float32() -> None:
    ours, theirs = float(np.float32(0.1)), float(np.nextafter(np.float32(0.1), np.float32(1)))
    assert measured(plain(repr(ours)), plain(repr(theirs))).mismatched == 0
    assert measured(plain(repr(ours)), plain(repr(theirs)), precision="float64").mismatched == 1


def test_unequal_shapes_are_refused() -> None:
    with pytest.raises(ShapeMismatch):
        measured(float32(1), float32(1, 2))


def test_extremes_of_float64_stay_in_range() -> None:
    result = measured(np.array([1e300, 1e300], np.float64), np.array([1e300, -1e300], np.float64))
    assert (result.rel_l2, result.cosine) == (near(math.sqrt(2)), 0.0)
    assert measured(np.array([1.7e308], np.float64), np.array([-1.7e308], np.float64)).max_abs == math.inf


@settings(max_examples=40)
@given(
    expected=hnp.arrays(np.float32, 40, elements=st.floats(width=32)),
    actual=hnp.arrays(np.float32, 40, elements=st.floats(width=32)),
    block=st.integers(1, 45),
)
def test_blocks_add_up_to_the_whole(expected: Any, actual: Any, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "BLOCK_ELEMENTS", block)
        result = measured(expected, actual)
    finite = elementwise.both_finite(actual, expected)
    errors = elementwise.absolute_error(actual[finite], expected[finite])
    assert result.nan_mismatches == elementwise.nan_mismatch(actual, expected).sum()
    nans, infs = elementwise.nan_mismatch(actual, expected), elementwise.inf_mismatch(actual, expected)
    assert result.inf_mismatches == (infs & ~nans).sum()
    assert result.nan_appeared == (nans & np.isnan(actual)).sum()
    assert result.max_abs == errors.max(initial=0.0)
    assert result.mismatched == (errors > result.tolerance_abs).sum()
    if not result.bit_equal and finite.any():
        assert result.max_ulp == elementwise.ulp_distance(actual[finite], expected[finite], 32).max()
        ours, theirs = (side[finite].astype(np.float64) for side in (actual, expected))
        norms = elementwise.l2_norm(ours), elementwise.l2_norm(theirs)
        similarity = elementwise.cosine_of(float(np.sum(ours * theirs)), *norms)
        assert result.cosine == (None if similarity is None else near(similarity, abs=1e-12))


@given(hnp.arrays(np.float32, st.integers(0, 9), elements=st.floats(width=32)))
def test_value_equals_itself_whatever_it_is(values: Any) -> None:
    assert measured(values, values.copy()).bit_equal


def test_histograms_and_agreement_come_with_every_difference() -> None:
    expected = np.array([[1.0, 2.0], [4.0, 3.0]], dtype=np.float32)
    actual = np.array([[1.0, 2.0], [3.0, 3.5]], dtype=np.float32)
    result = measured(expected, actual)
    assert (result.top1_agreement, result.top5_agreement) == (0.5, None)
    assert result.error_histogram == (2, *[0] * 9, 2, 0)
    equal = measured(expected, expected)
    assert (equal.error_histogram, equal.top1_agreement) == ((), None)


def test_integers_have_errors_and_no_ulps_and_infinities_are_left_out() -> None:
    labels = measured(np.array([[3, 4]]), np.array([[3, 6]]))
    assert (sum(labels.error_histogram), labels.max_ulp, labels.top1_agreement) == (2, None, None)
    assert sum(measured(float32(1, math.inf, 2), float32(1, math.inf, 3)).error_histogram) == 2


@pytest.mark.parametrize("expected", STORED)
def test_values_of_any_two_dtypes_can_be_measured(expected: str) -> None:
    for actual in STORED:
        one, other = _of_bytes(expected, 1), _of_bytes(actual, 60)
        found = tensor_metrics("output", one, other, precision=None, reference=other)
        assert (found.elements, found.bit_equal) == (3, False), actual
        assert found.cosine is None or -1 <= found.cosine <= 1, actual


def test_a_real_number_beside_a_complex_one_has_no_imaginary_part() -> None:
    found = measured(np.array([1, 2j], dtype=np.complex64), float32(1, 2))
    assert (found.cosine, found.max_abs) == (near(1 / 5), near(8**0.5))


def _of_bytes(dtype: str, value: int) -> Decoded:
    data = bytes([value]) * (3 * wire.DTYPE_BYTES[dtype])
    spec: dict[str, Any] = {"dtype": dtype, "shape": [3], "offset": 0, "nbytes": len(data)}
    if dtype in wire.QUANTIZED:
        spec["quantizer"] = {"scale": 0.5, "zero_point": 1}
    return decode(spec, data)


SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]], dtype=np.float32)


def test_the_share_of_rows_with_the_same_winner() -> None:
    changed = SCORES.copy()
    changed[1] = [0.4, 0.5, 0.1]
    assert agreement(SCORES, changed) == (0.75, None)
    assert agreement(SCORES, SCORES * 3) == (1.0, None)


def test_the_five_largest_are_a_set_and_ties_go_to_the_first() -> None:
    row = np.array([[9.0, 8, 7, 6, 5, 4, 4]])
    assert agreement(row, row[:, [1, 0, 2, 3, 4, 5, 6]]) == (0.0, 1.0)
    assert agreement(row, np.array([[9.0, 8, 7, 6, 0, 4, 4]])) == (1.0, 0.0)
    assert agreement(np.zeros((1, 7)), np.zeros((1, 7))) == (1.0, 1.0)


def test_nan_counts_as_the_largest() -> None:
    row = np.array([[np.nan, 1.0, 2, 3, 4, 5, 6]])
    assert agreement(row, np.array([[7.0, 1, 2, 3, 4, 5, 6]])) == (1.0, 1.0)
    assert agreement(row, np.array([[0.0, 1, 2, 3, 4, 5, 6]])) == (0.0, 0.0)


def test_slices_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3, 11, 8))
    whole = agreement(one, other)
    monkeypatch.setattr(metrics, "SLICE_ELEMENTS", 16)
    assert agreement(one, other) == whole


@pytest.mark.parametrize(
    ("values", "head"),
    [
        (np.zeros((2, 3), np.float16), True),
        (np.zeros(3), False),
        (np.zeros((3, 1)), False),
        (np.zeros((0, 3)), False),
        (np.zeros((2, 3), np.int64), False),
        (np.zeros((2, 3), np.complex64), False),
    ],
)
def test_a_head_is_floating_with_rows_and_classes(values: np.ndarray, *, head: bool) -> None:
    assert is_head(values) is head


@pytest.mark.parametrize(
    ("ours", "theirs", "similarity"),
    [
        (float64(1, 2), float64(2, 4), 1.0),
        (float64(1, 2), float64(-1, -2), -1.0),
        (float64(1, 0), float64(0, 1), 0.0),
        (float64(1e300, 1e300), float64(1e-300, 1e-300), 1.0),
        (np.array([1j]), np.array([1 + 0j]), 0.0),
        (float64(0, 0), float64(0, 1), None),
        (float64(), float64(), None),
        (np.array(3), np.array(-2), -1.0),
    ],
)
def test_cosine(ours: Any, theirs: Any, similarity: float | None) -> None:
    assert measured(theirs, ours).cosine == (None if similarity is None else near(similarity, abs=1e-15))


def test_nan_in_place_of_an_infinity_is_one_element() -> None:
    result = measured(float32(math.inf, math.nan, 1), float32(math.nan, -math.inf, 1))
    assert (result.nan_mismatches, result.nan_appeared, result.inf_mismatches) == (2, 1, 0)


@pytest.mark.parametrize(
    ("expected", "actual", "signs", "order"),
    [
        (float32(1, -2, 3), float32(-1, 2, 3), True, False),
        (float32(1, -2, 3), float32(3, 1, -2), False, True),
        (float32(1, -2, 3), float32(1, -2, 4), False, False),
        (float32(1, -2, 3), float32(1, -2, 3), False, False),
        (float32(math.nan, 1, -2), float32(math.nan, -2, 1), False, True),
        (float32(math.inf, 1, 2), float32(math.inf, -1, 2), True, False),
        (np.array([4, 7]), np.array([7, 4]), False, True),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), False, False),
        (np.array([1 + 1j], np.complex64), np.array([-1 - 1j], np.complex64), True, False),
    ],
)
def test_signs_and_order_are_told_from_other_values(expected: Any, actual: Any, signs: bool, order: bool) -> None:
    result = measured(expected, actual)
    assert (result.same_magnitudes, result.same_values) == (signs, order)
