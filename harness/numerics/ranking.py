"""Whether two tensors of scores rank alike: what a classification head is asked for, whatever its numbers are."""

import numpy as np

from harness.numerics.decode import Array

TOP = 5
# Rows are ranked in slices of about this many elements, so that the copies stay small beside the outputs.
SLICE_ELEMENTS = 1 << 18


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
    """Return the indices of the five largest scores of each row, in order of index."""
    # Stable, so that of equal scores the first ones count on both sides; NaN sorts last, so it counts as largest.
    descending = np.argsort(-scores, axis=1, kind="stable")
    nans = np.isnan(scores)
    if nans.any():
        descending = np.argsort(np.where(nans, -np.inf, -scores), axis=1, kind="stable")
    return np.sort(descending[:, :TOP], axis=1)
