"""How the quantiles of two servers' answers compare. The unit is a round: a pair of fresh processes.

Requests within a round are not independent: a pause delays all that wait, and a process may be faster or slower for its
whole life. So the quantile is that of all requests of a side together, where even the tail has many, and its
uncertainty is how much the ratio moves when one round is left out (the delete-one jackknife; Efron and Stein, 1981),
with Student's t of one degree less than there are rounds. Of the mean of the rounds' own ratios, the other candidate,
the interval was wider in each of fifteen simulated kinds of load, for a round alone has few requests beyond its 99th
percentile.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from harness.checks.latency.distributions import quantile as student
from harness.core.measurement import RatioEstimate

LEVEL = 0.05
QUANTILES = (0.5, 0.9, 0.99, 0.999)
BEYOND = 20
"""Requests of a side beyond a quantile from which on it is told: below, single pauses decide (their count has a
standard deviation of a fifth of itself and more)."""

Times = npt.NDArray[np.float64]
"""Seconds to each answer of a side in a round; infinite where none came."""
Statistic = Callable[[Iterable[int]], float]
"""A number from the rounds at these places."""
LARGEST_LOG = 700.0


def resolved(rounds: Sequence[Times]) -> tuple[float, ...]:
    """Return those of ``QUANTILES`` that a side's requests suffice for."""
    requests = sum(len(times) for times in rounds)
    return tuple(share for share in QUANTILES if requests * (1 - share) >= BEYOND or share == QUANTILES[0])


def quantile(rounds: Sequence[Times], share: float) -> float:
    """Return the time in seconds within which ``share`` of the requests were answered; infinite where fewer were."""
    together = np.concatenate(rounds)
    return float(np.partition(together, place := _place(len(together), share))[place])


def ratio(old: Sequence[Times], new: Sequence[Times], share: float) -> RatioEstimate | None:
    """Return new/old of a quantile with its interval; ``old[i]`` and ``new[i]`` are of one round.

    None where either side left more than ``1 - share`` of its requests without an answer.
    """
    before = partial(_chosen_quantile, old, share)
    after = partial(_chosen_quantile, new, share)
    return jackknife(len(old), after, before)


def jackknife(rounds: int, numerator: "Statistic", denominator: "Statistic") -> RatioEstimate | None:
    """Return the ratio of two statistics of the same rounds, with its interval by leaving out each round in turn.

    None where one of them is not positive and finite. Raises ``ValueError``: no rounds.
    """
    everything = range(rounds)
    if not everything:
        raise ValueError("no rounds")
    subsets = [
        everything,
        *([kept for kept in everything if kept != left_out] for left_out in everything if rounds > 1),
    ]
    logs = []
    for kept in subsets:
        above, below = numerator(kept), denominator(kept)
        if not (0 < above < math.inf and 0 < below < math.inf):
            return None
        logs.append(math.log(above / below))
    whole, *without = logs
    half = math.inf
    if without:
        mean = math.fsum(without) / rounds
        error = math.sqrt((rounds - 1) / rounds * math.fsum((log - mean) ** 2 for log in without))
        half = student(1 - LEVEL / 2, rounds - 1) * error
    low, high = math.exp(whole - half), _exp(whole + half)
    return RatioEstimate(ratio=math.exp(whole), low=low, high=high, pairs=rounds, detectable=_exp(half))


def _exp(log: float) -> float:
    return math.exp(log) if log < LARGEST_LOG else math.inf


def _chosen_quantile(rounds: Sequence[Times], share: float, kept: Iterable[int]) -> float:
    return quantile([rounds[place] for place in kept], share)


def _place(count: int, share: float) -> int:
    """Return the place, from 0, of the smallest value that ``share`` of ``count`` sorted values do not exceed."""
    return max(math.ceil(count * share - 1e-9) - 1, 0)
