"""Each error on zero, NaN, Inf, denormal, negative, empty, 0-d and non-contiguous arrays."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.checks.outputs.elementwise import (
    ShapeMismatch,
    absolute_error,
    both_finite,
    inf_mismatch,
    l2_norm,
    largest_magnitude,
    nan_mismatch,
    relative_l2,
    relative_to,
    ulp_distance,
    widen,
)
from tests.unit.builders.tensors import bfloat16_patterns

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
VECTORS = hnp.arrays(np.float32, st.integers(1, 20), elements=FINITE)
INT64 = st.integers(-(2**63), 2**63 - 1)


def f64(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def test_absolute_error_of_ordinary_values() -> None:
    assert absolute_error(f64(-1, 0, 2, 5e-324), f64(1, 0, 3.5, 0)).tolist() == [2, 0, 1.5, 5e-324]


def test_absolute_error_is_nan_or_inf_where_a_side_is() -> None:
    errors = absolute_error(f64(math.nan, math.inf, math.inf, 1e308), f64(0, 1, math.inf, -1e308))
    assert np.isnan(errors).tolist() == [True, False, True, False]
    assert np.isinf(errors).tolist() == [False, True, False, True]


def test_float32_differences_are_taken_in_float64() -> None:
    big, small = np.array([3e38], np.float32), np.array([-3e38], np.float32)
    assert float(absolute_error(big, small)[0]) == 2 * float(big[0])


def test_complex_error_is_the_modulus() -> None:
    assert absolute_error(np.array([3 + 4j]), np.array([0j])).tolist() == [5.0]


@given(ours=INT64, theirs=INT64)
def test_int64_differences_are_exact(ours: int, theirs: int) -> None:
    errors = absolute_error(np.array([ours]), np.array([theirs]))
    assert errors.tolist() == [float(abs(ours - theirs))]


@given(ours=st.integers(0, 2**64 - 1), theirs=INT64)
def test_signed_and_unsigned_integers_mix(ours: int, theirs: int) -> None:
    error = float(absolute_error(np.array([ours], np.uint64), np.array([theirs]))[0])
    assert error == pytest.approx(abs(ours - theirs), rel=1e-15)
    assert (error == 0) == (ours == theirs)


def test_small_integers_and_bools_do_not_wrap() -> None:
    assert absolute_error(np.array([255, 0], np.uint8), np.array([0, 255], np.uint8)).tolist() == [255, 255]
    assert absolute_error(np.array([True, False]), np.array([False, False])).tolist() == [1, 0]


def relative(ours: Any, theirs: Any) -> Any:
    return relative_to(absolute_error(ours, theirs), np.abs(widen(theirs)))


def test_relative_error_divides_by_the_expected_magnitude() -> None:
    assert relative(f64(-1, 3, 0, 1, 0), f64(-2, 2, 0, 0, 4)).tolist() == [0.5, 0.5, 0, math.inf, 1]


def test_relative_error_of_denormals_may_exceed_float64() -> None:
    assert relative(f64(1e-323, 1e300), f64(5e-324, 5e-324)).tolist() == [1.0, math.inf]


@given(VECTORS)
def test_relative_error_is_never_negative_nor_nan_on_finite_values(values: Any) -> None:
    errors = relative(values[::-1], values)
    assert bool((errors >= 0).all())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_counts_neighbours(dtype: Any) -> None:
    values = np.array([1.0, -1.0, 0.0, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max], dtype)
    assert ulp_distance(np.nextafter(values, dtype(-np.inf)), values, values.itemsize * 8).tolist() == [1] * 5


def test_ulp_is_zero_between_the_zeros_and_crosses_them() -> None:
    tiny = np.finfo(np.float32).smallest_subnormal
    ours, theirs = np.array([0.0, -tiny], np.float32), np.array([-0.0, tiny], np.float32)
    assert ulp_distance(ours, theirs, 32).tolist() == [0, 2]


def test_ulp_spans_the_whole_range_of_float64() -> None:
    top = np.finfo(np.float64).max
    assert ulp_distance(f64(top), f64(-top), 64).tolist() == [2 * 0x7FEFFFFFFFFFFFFF]


def test_ulp_of_bfloat16_counts_patterns() -> None:
    assert ulp_distance(bfloat16_patterns([1.0078125]), bfloat16_patterns([-1.0]), 16).tolist() == [2 * 0x3F80 + 1]


@given(VECTORS)
def test_ulp_is_symmetric_and_zero_only_for_equal_values(values: Any) -> None:
    other = values[::-1]
    assert (ulp_distance(values, other, 32) == ulp_distance(other, values, 32)).all()
    assert ((ulp_distance(values, other, 32) == 0) == (values == other)).all()


def test_nan_placement() -> None:
    assert nan_mismatch(f64(math.nan, math.nan, 1), f64(math.nan, 1, 1)).tolist() == [False, True, False]


def test_infinity_placement_minds_the_sign() -> None:
    ours, theirs = f64(math.inf, -math.inf, math.inf, math.nan, 1), f64(math.inf, math.inf, 1, math.inf, 1)
    assert inf_mismatch(ours, theirs).tolist() == [False, True, True, True, False]


def test_placement_looks_at_both_complex_parts() -> None:
    ours = np.array([complex(1, math.nan), complex(math.inf, 0), 1j])
    theirs = np.array([complex(math.nan, 1), complex(-math.inf, 0), 1j])
    assert nan_mismatch(ours, theirs).tolist() == [True, False, False]
    assert inf_mismatch(ours, theirs).tolist() == [False, True, False]
    assert both_finite(ours, theirs).tolist() == [False, False, True]


def test_integers_have_no_special_places() -> None:
    ints = np.array([1, 2])
    assert not nan_mismatch(ints, ints).any()
    assert not inf_mismatch(ints, f64(1, 2)).any()
    assert both_finite(ints, f64(1, math.nan)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        (f64(), 0.0),
        (f64(math.nan), 0.0),
        (f64(-3, 2, math.nan, -math.inf), 3.0),
        (f64(-5e-324), 5e-324),
        (np.array([-(2**63)]), 2.0**63),
        (np.array([False, True]), 1.0),
        (np.array([3 + 4j, complex(math.nan, 9)]), 5.0),
        (np.array(-2.5, np.float32), 2.5),
    ],
)
def test_largest_magnitude_is_over_finite_values(values: Any, largest: float) -> None:
    assert largest_magnitude(values) == largest


def test_norm_neither_overflows_nor_underflows() -> None:
    assert l2_norm(f64(3e200, 4e200)) == pytest.approx(5e200)
    assert l2_norm(f64(3e-200, 4e-200)) == pytest.approx(5e-200)
    assert l2_norm(np.array([3 + 4j])) == 5.0
    assert l2_norm(f64()) == 0.0


@pytest.mark.parametrize(
    ("norms", "quotient"),
    [((0.0, 0.0), 0.0), ((1.0, 0.0), math.inf), ((1.0, 4.0), 0.25), ((1.0, math.inf), None)],
)
def test_relative_l2_of_norms(norms: tuple[float, float], quotient: float | None) -> None:
    assert relative_l2(*norms) == quotient


@pytest.mark.parametrize("measure", [absolute_error, nan_mismatch, inf_mismatch, both_finite])
def test_broadcasting_is_refused(measure: Any) -> None:
    with pytest.raises(ShapeMismatch, match=r"\(1,\) against \(2,\)"):
        measure(f64(1), f64(1, 2))


def test_ulp_refuses_broadcasting() -> None:
    with pytest.raises(ShapeMismatch):
        ulp_distance(f64(1), f64(1, 2), 64)


@pytest.mark.parametrize("measure", [absolute_error, nan_mismatch, inf_mismatch, both_finite])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_shape_is_kept_down_to_scalars_and_empties(measure: Any, shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.complex64, np.int64, np.bool_):
        result = measure(np.zeros(shape, dtype), np.zeros(shape, dtype))
        assert isinstance(result, np.ndarray)
        assert result.shape == shape


def test_non_contiguous_views_are_measured_as_seen() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = values.T[::2]
    other = view.copy()
    other[1, 2] += 1
    assert absolute_error(other, view).sum() == 1
    assert ulp_distance(other, view, 32).astype(bool).sum() == 1
    assert nan_mismatch((view * 1j)[::-1], view * 1j).shape == view.shape
