"""Whether activity goes with pauses more often than chance, and what recurs; pure.

The test rotates the pauses against everybody's activity. In each of some equal blocks of the recording, about one for
each pause, they are shifted in a circle by an offset of its own, drawn at random, the same for all processes. What
varies more slowly than a block (a build that runs for a minute) is the same in all rotations and cannot be significant
(the interval jitter of Amarasingham, Harrison, Hatsopoulos and Geman, Journal of Neurophysiology 107, 2012). The
p-value compares the score of one series with the greatest score over all series in each rotation, which corrects for
their number whatever their dependence (Westfall and Young, Resampling-Based Multiple Testing, 1993), and counts the
recording itself (Phipson and Smyth, 2010).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.checks.interference.recording import Series

ROTATIONS, SEED = 4000, 43
# Of sums of products that are equal.
ROUNDING = 1e-9
# A peak of the autocorrelation that counts as a period; white noise of 1000 cells has 0.1 once in a thousand lags.
PERIODIC = 0.3
LEAST_CYCLES = 5


class Tested(NamedTuple):
    """By series: excess over the mean of the rotations in cells, score in their standard deviations, corrected p."""

    excess: Series
    score: Series
    p_value: Series


def rotation_test(
    pairs: Sequence[tuple[Series, npt.NDArray[np.float64], int]], *, rotations: int = ROTATIONS, seed: int = SEED
) -> list[Tested]:
    """Test every row of activity against the pauses, for each (pauses (cells,), activity (series, cells), blocks).

    The p-values are corrected for all rows of all of them.
    """
    if not pairs:
        return []
    chance = np.random.default_rng(seed)
    scored = []
    for pauses, activity, blocks in pairs:
        observed = np.zeros(len(activity))
        table = np.zeros((len(activity), rotations))
        for begin, end in pairwise(np.linspace(0, len(pauses), blocks + 1).astype(int).tolist()):
            if end == begin:
                continue
            products = _products(pauses[begin:end], activity[:, begin:end])
            observed += products[:, 0]
            table += products[:, chance.integers(end - begin, size=rotations)]
        mean, spread = table.mean(axis=1), table.std(axis=1)
        spread[spread <= ROUNDING * (1 + mean)] = np.inf  # what is always active, or never
        scored.append((observed - mean, (observed - mean) / spread, (table - mean[:, None]) / spread[:, None]))
    greatest = np.sort(np.max([drawn.max(axis=0, initial=0.0) for _, _, drawn in scored], axis=0))
    return [
        Tested(excess, score, (1 + rotations - np.searchsorted(greatest, score)) / (1 + rotations))
        for excess, score, _ in scored
    ]


def _products(pauses: Series, activity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sums of products of each series with the pauses by how far these are rotated, (series, cells)."""
    spectra = np.fft.rfft(activity).conj() * np.fft.rfft(pauses)
    return np.fft.irfft(spectra, len(pauses))


def runs(active: npt.NDArray[np.bool_], bridge: int = 2) -> list[tuple[int, int]]:
    """Return (begin, end) of the stretches that are active; gaps of up to ``bridge`` cells do not part them."""
    padded = np.diff(np.concatenate(((False,), active, (False,))).astype(np.int8))
    stretches: list[tuple[int, int]] = []
    for begin, end in zip(np.flatnonzero(padded == 1).tolist(), np.flatnonzero(padded == -1).tolist(), strict=True):
        if stretches and begin - stretches[-1][1] <= bridge:
            stretches[-1] = stretches[-1][0], end
        else:
            stretches.append((begin, end))
    return stretches


def period(series: Series) -> int | None:
    """Return after how many cells a series recurs, by the first high peak of its autocorrelation; None: it does not."""
    cells = len(series)
    centred = series - series.mean()
    if cells < 4 * LEAST_CYCLES or not centred.any():
        return None
    spectrum = np.fft.rfft(centred, 2 * cells)
    most = cells // LEAST_CYCLES
    correlation = np.fft.irfft(spectrum * spectrum.conj())[: most + 1] / np.arange(cells, cells - most - 1, -1)
    correlation /= correlation[0]
    below = np.flatnonzero(correlation < 0)  # what lies before is the stretch itself
    if not len(below):
        return None
    rest = correlation[below[0] :]
    # Multiples of a period have peaks as high: the first one that is nearly the highest is the period itself.
    high = np.flatnonzero(rest >= max(PERIODIC, 0.8 * rest.max()))
    if not len(high):
        return None
    end = high[0]
    while end + 1 < len(rest) and rest[end + 1] >= rest[end]:
        end += 1
    return int(below[0] + end)
