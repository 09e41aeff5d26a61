"""Errors between two arrays, element by element. Every function wants equal shapes: broadcasting would hide a bug.

Values are computed in float64 (complex128); integers of every width are subtracted exactly before they are rounded to
float64. NaN and infinities are the business of the placement functions: mask with ``both_finite`` first.
"""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Squares beyond these magnitudes leave the range of float64 (1e-308 to 1e308).
SQUARE_SAFE = (1e-140, 1e140)

ULP_BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
ULP_BITS |= {"complex32": 16, "complex64": 32, "complex128": 64}


class ShapeMismatch(ValueError):
    """Raised when two arrays of different shape are compared."""


def widen(values: Array) -> Array:
    """Return ``values`` in float64, or complex128 where they are complex; same shape."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64, copy=False)


@np.errstate(all="ignore")
def absolute_error(actual: Array, expected: Array) -> FloatArray:
    """Return |actual - expected|, elementwise.

    Returns:
        Same shape, float64, >= 0. The modulus for complex; +inf where the difference exceeds float64; NaN where
        either is NaN or both are the same infinity.
    """
    _require_equal_shapes(actual, expected)
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        return _integer_distance(actual, expected)
    return np.asarray(np.abs(widen(actual) - widen(expected)), dtype=np.float64)


@np.errstate(all="ignore")
def relative_to(error: FloatArray, magnitude: FloatArray) -> FloatArray:
    """Return ``error / magnitude`` with 0 / 0 = 0; both float64 >= 0 and of equal shape."""
    ratio: FloatArray = np.asarray(error / magnitude)
    ratio[error == 0] = 0.0
    return ratio


@np.errstate(all="ignore")
def ulp_distance(actual: Array, expected: Array, bits: int) -> npt.NDArray[np.uint64]:
    """Return how many representable numbers lie between two floats, elementwise; 0 between the two zeros.

    The bit patterns of IEEE numbers, read as sign and magnitude, are in the order of their values
    (https://randomascii.wordpress.com/2012/02/25/comparing-floating-point-numbers-2012-edition/). ``actual``,
    ``expected``: equal shape, dtype of ``bits`` bits each: floats, or bfloat16 as uint16 patterns. Finite: for NaN the
    distance means nothing; ``bits``: 16, 32 or 64.
    """
    _require_equal_shapes(actual, expected)
    ours, theirs = _ordered(actual, bits), _ordered(expected, bits)
    # Wraps modulo 2**64 to the right number also where the signed difference would overflow.
    distance = np.maximum(ours, theirs).view(np.uint64) - np.minimum(ours, theirs).view(np.uint64)
    return np.asarray(distance, dtype=np.uint64)


def nan_mismatch(actual: Array, expected: Array) -> BoolArray:
    """Return where exactly one side is NaN; for complex numbers in either part."""
    _require_equal_shapes(actual, expected)
    ours, theirs = _by_part(actual, expected)
    return _any_part(np.isnan(ours) != np.isnan(theirs), actual.ndim)


def inf_mismatch(actual: Array, expected: Array) -> BoolArray:
    """Return where one side is infinite and the other is not the same infinity; for complex in either part."""
    _require_equal_shapes(actual, expected)
    ours, theirs = _by_part(actual, expected)
    return _any_part(_signed_infinity(ours) != _signed_infinity(theirs), actual.ndim)


def both_finite(actual: Array, expected: Array) -> BoolArray:
    _require_equal_shapes(actual, expected)
    finite: BoolArray = np.asarray(np.isfinite(actual) & np.isfinite(expected))
    return finite


@np.errstate(all="ignore")
def largest_magnitude(values: Array) -> float:
    """Return max |value| over the finite elements, 0.0 if there are none."""
    if values.size == 0:
        return 0.0
    if values.dtype.kind != "c":
        top = max(float(values.max()), -float(values.min()))
        if math.isfinite(top):
            return top
        values = values[np.isfinite(values)]
        return max(float(values.max()), -float(values.min())) if values.size else 0.0
    finite = np.abs(widen(values[np.isfinite(values)]))
    return float(finite.max()) if finite.size else 0.0


@np.errstate(all="ignore")
def l2_norm(values: Array) -> float:
    """Return the Euclidean norm of finite values of any shape, without overflow or underflow on the way."""
    flat = np.abs(widen(values)).reshape(-1)
    top = float(flat.max()) if flat.size else 0.0
    if top == 0.0 or math.isinf(top):
        return top
    if SQUARE_SAFE[0] < top < SQUARE_SAFE[1]:
        return math.sqrt(float(np.sum(flat * flat)))
    flat = flat / top
    return top * math.sqrt(float(np.sum(flat * flat)))


@np.errstate(all="ignore")
def inner_product(actual: Array, expected: Array, actual_unit: float, expected_unit: float) -> float:
    """Return the sum of (actual / actual_unit) * (expected / expected_unit); complex numbers as pairs of reals."""
    ours, theirs = _by_part(widen(actual), widen(expected))
    if actual_unit != 1.0:
        ours = ours / actual_unit
    if expected_unit != 1.0:
        theirs = theirs / expected_unit
    return float(np.sum(ours * theirs))


def unit_of(magnitude: float) -> float:
    """Return what to divide by so that products of numbers up to ``magnitude`` stay in range: mostly 1.0."""
    return 1.0 if magnitude == 0.0 or SQUARE_SAFE[0] < magnitude < SQUARE_SAFE[1] else magnitude


def relative_l2(difference_norm: float, expected_norm: float) -> float | None:
    """Return a quotient of norms: 0 where both are 0, inf where only expected is, None where it leaves float64."""
    if difference_norm == 0.0:
        return 0.0
    if math.isinf(expected_norm):
        return None
    return difference_norm / expected_norm if expected_norm > 0.0 else math.inf


def cosine_of(product: float, actual_norm: float, expected_norm: float) -> float | None:
    """Return ``product / (actual_norm * expected_norm)`` in [-1, 1], or None where that is undefined."""
    if actual_norm == 0.0 or expected_norm == 0.0 or not math.isfinite(product + actual_norm + expected_norm):
        return None
    return min(1.0, max(-1.0, product / actual_norm / expected_norm))


def _integer_distance(actual: Array, expected: Array) -> FloatArray:
    if actual.dtype.itemsize < 8 and expected.dtype.itemsize < 8:  # bytes of an int64
        return np.asarray(np.abs(actual.astype(np.int64) - expected.astype(np.int64)), dtype=np.float64)
    ours, theirs = _magnitude(actual), _magnitude(expected)
    same_sign = (actual < 0) == (expected < 0)
    apart = np.asarray(np.maximum(ours, theirs) - np.minimum(ours, theirs), dtype=np.float64)
    return np.where(same_sign, apart, ours.astype(np.float64) + theirs.astype(np.float64))


def _magnitude(values: Array) -> npt.NDArray[np.uint64]:
    wide = values.astype(np.uint64)  # modulo 2**64, so that 0 - wide is the magnitude of a negative number
    return np.where(values < 0, np.uint64(0) - wide, wide)


def _ordered(values: Array, bits: int) -> npt.NDArray[np.int64]:
    patterns = np.ascontiguousarray(values).view(f"i{bits // 8}").astype(np.int64)
    lowest = -(1 << (bits - 1))
    return np.where(patterns < 0, np.int64(lowest) - patterns, patterns)


def parts_of(values: Array) -> Array:
    """Complex numbers get a trailing axis of real and imaginary part."""
    if values.dtype.kind != "c":
        return values
    flat = np.ascontiguousarray(values)
    return flat.view(flat.real.dtype).reshape((*values.shape, 2))


def _by_part(actual: Array, expected: Array) -> tuple[Array, Array]:
    if actual.dtype.kind == expected.dtype.kind:
        return parts_of(actual), parts_of(expected)
    if "c" in (actual.dtype.kind, expected.dtype.kind):
        return parts_of(actual.astype(np.complex128)), parts_of(expected.astype(np.complex128))
    return actual, expected


def _any_part(differs: Array, ndim: int) -> BoolArray:
    mask: BoolArray = np.asarray(differs.any(axis=-1) if differs.ndim > ndim else differs)
    return mask


def _signed_infinity(values: Array) -> Array:
    return np.asarray(np.isposinf(values).astype(np.int8) - np.isneginf(values).astype(np.int8))


def _require_equal_shapes(actual: Array, expected: Array) -> None:
    if actual.shape != expected.shape:
        raise ShapeMismatch(f"shapes differ: {actual.shape} against {expected.shape}")
