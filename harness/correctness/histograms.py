"""Histograms of errors: counts per decade in a few fixed bins, so that any two can be added or drawn."""

import numpy as np
import numpy.typing as npt

from harness.tensors.decode import Array

Counts = npt.NDArray[np.int64]

# Lower edges of |new - old| / max|old|. Before the first bin with an edge comes that of errors that are exactly zero,
# and 0.0 holds what is smaller than the next edge.
ERROR_EDGES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Lower edges of distances in units in the last place; 0 is a bin of its own.
ULP_EDGES = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


def error_counts(errors: Array, scale: float) -> Counts:
    """Return how many ``errors`` are zero, then how many fall into each bin of ``ERROR_EDGES``.

    Args:
        errors: absolute, float64, >= 0, not NaN.
        scale: largest expected magnitude; where it is 0 every error that is not zero falls into the last bin.
    """
    nonzero = errors[errors > 0]
    counts = np.zeros(len(ERROR_EDGES) + 1, dtype=np.int64)
    counts[0] = errors.size - nonzero.size
    edges = np.asarray(ERROR_EDGES) * scale
    counts[1:] = np.bincount(np.searchsorted(edges, nonzero, side="right") - 1, minlength=len(ERROR_EDGES))
    return counts


def ulp_counts(distances: Array) -> Counts:
    """Return how many ``distances`` (uint64, any shape) fall into each bin of ``ULP_EDGES``."""
    edges = np.asarray(ULP_EDGES, dtype=np.uint64)
    return np.bincount(np.searchsorted(edges, distances.reshape(-1), side="right") - 1, minlength=len(ULP_EDGES))
