"""Every number about one pair of tensors, and whether two tensors of scores rank alike."""

import numpy as np

from harness.artifacts.tensors.decode import Array, Decoded
from harness.checks.outputs import elementwise
from harness.checks.outputs.tolerances import EXACT, Precision, tolerance_for
from harness.checks.outputs.totals import blocks, total
from harness.core.comparison import TensorMetrics
from harness.worker import wire

TOP = 5
# Rows are ranked in slices of about this many elements, so that the copies stay small beside the outputs.
SLICE_ELEMENTS = 1 << 18
# Of larger tensors nobody asks whether signs or the order alone differ: that takes copies of both.
MOST_REARRANGED = 1 << 22


def is_head(values: Array) -> bool:
    """Whether a tensor may hold scores: real floating, at least two axes, two classes or more on the last one."""
    return values.dtype.kind == "f" and values.ndim >= 2 and values.shape[-1] >= 2 and values.size > 0


def agreement(expected: Array, actual: Array) -> tuple[float, float | None]:
    """Return in which share of rows the arg-max is the same, and in which the set of the five largest.

    Args:
        expected, actual: of equal shape, of which ``is_head`` holds; every axis but the last numbers rows.

    Returns:
        Both in [0, 1]. Of equal scores the first counts, as in ``torch.argmax`` on the CPU; NaN is larger than any
        number, as in torch. The second is None where a row has no more than five classes: every set is the same.
    """
    classes = expected.shape[-1]
    theirs, ours = expected.reshape(-1, classes), actual.reshape(-1, classes)
    rows_at_once = max(1, SLICE_ELEMENTS // classes)
    same_first = same_top = 0
    for start in range(0, len(theirs), rows_at_once):
        old, new = theirs[start : start + rows_at_once], ours[start : start + rows_at_once]
        same_first += int(np.count_nonzero(old.argmax(axis=1) == new.argmax(axis=1)))
        if classes > TOP:
            same_top += int(np.count_nonzero((_top(old) == _top(new)).all(axis=1)))
    rows = len(theirs)
    return same_first / rows, same_top / rows if classes > TOP else None


def _top(scores: Array) -> Array:
    # Stable, so that of equal scores the first ones count on both sides; NaN sorts last, so it counts as largest.
    descending = np.argsort(-scores, axis=1, kind="stable")
    nans = np.isnan(scores)
    if nans.any():
        descending = np.argsort(np.where(nans, -np.inf, -scores), axis=1, kind="stable")
    return np.sort(descending[:, :TOP], axis=1)


@np.errstate(all="ignore")
def tensor_metrics(
    path: str,
    expected: Decoded,
    actual: Decoded,
    *,
    precision: Precision,
    noise: float | None = None,
    reference: Decoded | None = None,
) -> TensorMetrics:
    """Return every number the judging chain needs about one pair of tensors.

    Args:
        actual: of the same shape. Where its dtype differs, the values are still compared (``max_ulp`` is None).
        precision: see ``tolerance_for``. A Python float has no dtype of its own: where both values fit float32
            exactly they left a float32 tensor by ``.item()``, and count as computed there unless told otherwise.
        reference: the float64 run's tensor, if there is one; ignored unless its shape is the same.

    Returns:
        ``worst_index`` is the first element with another NaN or infinity if there is one, else that of ``max_abs``;
        empty where nothing but bits differ. Quantized tensors are measured in quanta of the expected side. The
        distances from the reference are left out (None) for exact and quantized dtypes, where bits are equal, and
        where the reference is not finite although both outputs are.

    Raises:
        ShapeMismatch: shapes differ.
        ValueError: ``precision`` names no dtype.
    """
    if expected.values.shape != actual.values.shape:
        raise elementwise.ShapeMismatch(f"shapes differ: {actual.values.shape} against {expected.values.shape}")
    golden, new = in_units_of(expected, expected), in_units_of(actual, expected)
    scale = elementwise.largest_magnitude(golden)
    if same_bits(expected, actual):
        return bit_equal_metrics(path, expected, scale, precision=precision, noise=noise)
    tolerance = tolerance_for(expected.dtype, _precision_of(expected, actual, precision), scale)
    totals = total(golden, new, _ulp_pair(expected, actual), tolerance, scale)
    old_distance, new_distance = _reference_distances(expected, actual, reference)
    worst = totals.misplaced if totals.misplaced is not None else totals.worst
    head = is_head(expected.values) and is_head(actual.values)
    top1, top5 = agreement(expected.values, actual.values) if head else (None, None)
    off = totals.max_abs > tolerance and totals.misplaced is None and golden.size <= MOST_REARRANGED
    index = () if worst is None else tuple(int(step) for step in np.unravel_index(worst, golden.shape))
    return TensorMetrics(
        path=path,
        dtype=expected.dtype,
        elements=golden.size,
        bit_equal=False,
        nan_mismatches=totals.nan_mismatches,
        nan_appeared=totals.nan_appeared,
        inf_mismatches=totals.inf_mismatches,
        max_abs=totals.max_abs,
        max_rel=totals.max_rel,
        max_ulp=totals.max_ulp,
        rel_l2=elementwise.relative_l2(totals.error_norm, totals.expected_norm),
        cosine=totals.cosine(),
        scale=scale,
        tolerance_abs=tolerance,
        mismatched=totals.mismatched,
        worst_index=index,
        worst_expected="" if worst is None else str(expected.values[index]),
        worst_actual="" if worst is None else str(actual.values[index]),
        noise_abs=noise,
        reference_old_abs=old_distance,
        reference_new_abs=new_distance,
        error_histogram=tuple(totals.errors.tolist()),
        same_magnitudes=off and _within(np.abs(golden), np.abs(new), tolerance),
        same_values=off and golden.dtype.kind != "c" and _within(np.sort(golden, None), np.sort(new, None), tolerance),
        top1_agreement=top1,
        top5_agreement=top5,
    )


def _within(expected: Array, actual: Array, tolerance: float) -> bool:
    errors = elementwise.absolute_error(actual, expected)
    return bool((np.isnan(errors) | (errors <= tolerance)).all())  # of equal infinities, whose places are compared


def bit_equal_metrics(
    path: str, expected: Decoded, scale: float, *, precision: Precision, noise: float | None = None
) -> TensorMetrics:
    """Return the metrics of a tensor whose bytes did not change; ``scale`` is its largest finite magnitude."""
    return TensorMetrics(
        path=path,
        dtype=expected.dtype,
        elements=expected.values.size,
        bit_equal=True,
        max_ulp=0 if expected.dtype in elementwise.ULP_BITS else None,
        rel_l2=0.0,
        cosine=1.0 if scale > 0.0 else None,
        scale=scale,
        tolerance_abs=tolerance_for(expected.dtype, _precision_of(expected, expected, precision), scale),
        noise_abs=noise,
    )


def same_bits(expected: Decoded, actual: Decoded) -> bool:
    """Return whether dtype, quantizer and every byte are equal; the shapes must be."""
    if expected.dtype != actual.dtype or not _same_quantizer(expected, actual):
        return False
    if expected.sha256 and actual.sha256:
        return expected.sha256 == actual.sha256
    return expected.raw.tobytes() == actual.raw.tobytes()


@np.errstate(all="ignore")
def largest_difference(expected: Decoded, actual: Decoded) -> float:
    """Return max |actual - expected| over the finite pairs, in the units of ``tensor_metrics``; 0.0 without any."""
    golden, new = in_units_of(expected, expected).reshape(-1), in_units_of(actual, expected).reshape(-1)
    largest = 0.0
    for block in blocks(golden.size):
        finite = elementwise.both_finite(new[block], golden[block])
        errors = elementwise.absolute_error(new[block][finite], golden[block][finite])
        largest = max(largest, float(errors.max(initial=0.0)))
    return largest


def in_units_of(tensor: Decoded, expected: Decoded) -> Array:
    """Return the values of ``tensor`` as they are, or in quanta of ``expected`` where that is quantized."""
    if expected.scales is None or expected.zero_points is None:
        return tensor.values
    if tensor.zero_points is not None and _same_quantizer(tensor, expected):
        # Exact, where dividing the dequantized values would not be.
        return np.asarray(tensor.raw.astype(np.float64) - expected.zero_points)
    return np.asarray(elementwise.widen(tensor.values) / expected.scales)


def _ulp_pair(expected: Decoded, actual: Decoded) -> tuple[Array, Array, int] | None:
    """Return (actual, expected, bits): numbers or patterns by flat element, complex parts on a second axis."""
    bits = elementwise.ULP_BITS.get(expected.dtype)
    if bits is None or expected.dtype != actual.dtype:
        return None
    return _patterns(actual), _patterns(expected), bits


def _patterns(tensor: Decoded) -> Array:
    parts = elementwise.parts_of(tensor.raw)
    return parts.reshape(tensor.values.size, *parts.shape[tensor.values.ndim :])


def _same_quantizer(first: Decoded, other: Decoded) -> bool:
    if first.scales is None or other.scales is None or first.zero_points is None or other.zero_points is None:
        return first.scales is other.scales
    return np.array_equal(first.scales, other.scales) and np.array_equal(first.zero_points, other.zero_points)


def _precision_of(expected: Decoded, actual: Decoded, precision: Precision) -> Precision:
    if precision is None and expected.plain and _fits_float32(expected.values) and _fits_float32(actual.values):
        return "float32"
    return precision


def _fits_float32(values: Array) -> bool:
    parts = elementwise.parts_of(values)
    return bool(np.array_equal(parts.astype(np.float32).astype(np.float64), parts, equal_nan=True))


def _reference_distances(
    expected: Decoded, actual: Decoded, reference: Decoded | None
) -> tuple[float | None, float | None]:
    """Return the largest distance of the old and of the new values from the float64 run, where that means something."""
    if expected.dtype in EXACT or expected.dtype in wire.QUANTIZED:
        return None, None
    if reference is None or reference.values.shape != expected.values.shape:
        return None, None
    exact, old, new = (side.values.reshape(-1) for side in (reference, expected, actual))
    old_distance = new_distance = 0.0
    compared = 0
    for block in blocks(exact.size):
        finite = elementwise.both_finite(new[block], old[block])
        truth = exact[block][finite]
        if not np.isfinite(truth).all():
            return None, None
        compared += truth.size
        old_errors = elementwise.absolute_error(old[block][finite], truth)
        new_errors = elementwise.absolute_error(new[block][finite], truth)
        old_distance = max(old_distance, float(old_errors.max(initial=0.0)))
        new_distance = max(new_distance, float(new_errors.max(initial=0.0)))
    return (old_distance, new_distance) if compared else (None, None)
