"""Running results and a histogram of errors over a pair of arrays, in blocks that fit the cache."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.artifacts.tensors.decode import Array
from harness.checks.outputs import elementwise
from harness.core.comparison import ERROR_EDGES

# Elements per block: 512 KiB in float64, so that the temporaries of one block stay in a core's cache.
BLOCK_ELEMENTS = 1 << 16
Counts = npt.NDArray[np.int64]


def error_counts(errors: Array, scale: float) -> Counts:
    """Return how many ``errors`` are zero, then how many fall into each bin of ``ERROR_EDGES``.

    ``errors``: absolute, float64, >= 0, not NaN; ``scale``: largest expected magnitude; where it is 0 every error that
    is not zero falls into the last bin.
    """
    nonzero = errors[errors > 0]
    counts = np.zeros(len(ERROR_EDGES) + 1, dtype=np.int64)
    counts[0] = errors.size - nonzero.size
    edges = np.asarray(ERROR_EDGES) * scale
    counts[1:] = np.bincount(np.searchsorted(edges, nonzero, side="right") - 1, minlength=len(ERROR_EDGES))
    return counts


@dataclass(slots=True)
class Totals:
    """Running results over the blocks; ``worst`` and ``misplaced`` are flat indices."""

    actual_unit: float
    expected_unit: float
    max_ulp: int | None
    nan_mismatches: int = 0
    nan_appeared: int = 0
    inf_mismatches: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    mismatched: int = 0
    worst: int | None = None
    misplaced: int | None = None
    error_norm: float = 0.0
    actual_norm: float = 0.0
    expected_norm: float = 0.0
    product: float = 0.0
    errors: Counts = field(default_factory=lambda: np.zeros(len(ERROR_EDGES) + 1, np.int64))

    def place(self, start: int, actual: Array, expected: Array) -> None:
        """Count NaNs and infinities in other places, in the block that begins at flat index ``start``."""
        nans, infs = elementwise.nan_mismatch(actual, expected), elementwise.inf_mismatch(actual, expected)
        self.nan_mismatches += int(np.count_nonzero(nans))
        self.nan_appeared += int(np.count_nonzero(nans & np.isnan(actual)))
        self.inf_mismatches += int(np.count_nonzero(infs & ~nans))
        either = nans | infs
        if self.misplaced is None and either.any():
            self.misplaced = start + int(either.argmax())

    def measure(self, actual: Array, expected: Array, tolerance: float, scale: float) -> int | None:
        errors = elementwise.absolute_error(actual, expected)
        magnitudes = np.abs(elementwise.widen(expected))
        at = int(errors.argmax())
        largest = float(errors[at])
        self.expected_norm = math.hypot(self.expected_norm, elementwise.l2_norm(magnitudes))
        self.actual_norm = math.hypot(self.actual_norm, elementwise.l2_norm(actual))
        self.product += elementwise.inner_product(actual, expected, self.actual_unit, self.expected_unit)
        self.errors += error_counts(errors, scale)
        if largest > 0.0:
            self.error_norm = math.hypot(self.error_norm, elementwise.l2_norm(errors))
            self.max_rel = max(self.max_rel, float(elementwise.relative_to(errors, magnitudes).max()))
            self.mismatched += int(np.count_nonzero(errors > tolerance))
        if largest <= self.max_abs:
            return None
        self.max_abs = largest
        return at

    def cosine(self) -> float | None:
        return elementwise.cosine_of(
            self.product, self.actual_norm / self.actual_unit, self.expected_norm / self.expected_unit
        )


def total(golden: Array, new: Array, ulps: tuple[Array, Array, int] | None, tolerance: float, scale: float) -> Totals:
    """Return the results over all elements of a pair.

    Args:
        golden, new: equal shape, in the units to be measured in.
        ulps: (actual, expected, bits) for ``ulp_distance``, elements on the first axis; None for dtypes without ULPs.
        tolerance: elements with a larger error count as mismatched.
        scale: largest finite magnitude of ``golden``.
    """
    expected, actual = golden.reshape(-1), new.reshape(-1)
    totals = Totals(
        actual_unit=elementwise.unit_of(elementwise.largest_magnitude(actual)),
        expected_unit=elementwise.unit_of(scale),
        max_ulp=None if ulps is None else 0,
    )
    for block in blocks(expected.size):
        theirs, ours = expected[block], actual[block]
        finite = elementwise.both_finite(ours, theirs)
        whole = bool(finite.all())
        if not whole:
            totals.place(block.start, ours, theirs)
            theirs, ours = theirs[finite], ours[finite]
        if ours.size == 0:
            continue
        at = totals.measure(ours, theirs, tolerance, scale)
        if at is not None:
            totals.worst = block.start + (at if whole else int(np.flatnonzero(finite)[at]))
        if ulps is not None and totals.max_ulp is not None:
            new_bits, golden_bits, bits = ulps[0][block], ulps[1][block], ulps[2]
            if not whole:
                new_bits, golden_bits = new_bits[finite], golden_bits[finite]
            distances = elementwise.ulp_distance(new_bits, golden_bits, bits)
            totals.max_ulp = max(totals.max_ulp, int(distances.max()))
    return totals


def blocks(size: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ELEMENTS, size)) for start in range(0, size, BLOCK_ELEMENTS))
