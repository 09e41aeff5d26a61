"""What a number of repeats says about a probability."""

import math

CONFIDENCE = 0.95


def upper_bound(failures: int, repeats: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest probability of failure that ``failures`` in ``repeats`` do not exclude.

    The exact one-sided bound of Clopper and Pearson (1934): the p at which so few failures or fewer have probability
    1 - ``confidence``. For no failure at all that is ``1 - (1 - confidence) ** (1 / repeats)``, about 3 / repeats.

    Args:
        failures: 0 to ``repeats``.
        repeats: at least 0; nothing is known after 0 of them.
        confidence: above 0 and below 1.
    """
    if failures >= repeats:
        return 1.0
    if failures == 0:
        return float(-math.expm1(math.log1p(-confidence) / repeats))
    low, high = failures / repeats, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(failures, repeats, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(failures: int, repeats: int, probability: float) -> float:
    """Return the binomial tail, by logarithms: the coefficients of a few hundred of a thousand are no floats."""
    once, never = math.log(probability), math.log1p(-probability)
    return math.fsum(
        math.exp(_log_ways(count, repeats) + count * once + (repeats - count) * never) for count in range(failures + 1)
    )


def _log_ways(count: int, of: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
