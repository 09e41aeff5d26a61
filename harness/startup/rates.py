"""Bounds of a probability from a number of repeats."""

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


def interval(successes: int, repeats: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the probabilities between which ``successes`` in ``repeats`` put the true one.

    The exact two-sided interval of Clopper and Pearson: each bound is a one-sided one that errs half as often.

    Args:
        successes: 0 to ``repeats``.
        repeats: at least 0; (0, 1) after 0 of them.
        confidence: above 0 and below 1.
    """
    one_sided = (1 + confidence) / 2
    return (
        1.0 - upper_bound(repeats - successes, repeats, one_sided),
        upper_bound(successes, repeats, one_sided),
    )


def more_often(failures: int, repeats: int, before: int, repeats_before: int) -> bool:
    """Whether something clearly fails more often than it did before: Fisher's exact test, one-sided, 5 %.

    One failure in one run of each is no difference; five of five after one of ten is.
    """
    total, failed = repeats + repeats_before, failures + before
    if not repeats or not repeats_before:
        return False
    ways = math.comb(total, failed)
    at_least = sum(
        math.comb(repeats, count) * math.comb(repeats_before, failed - count)
        for count in range(failures, min(repeats, failed) + 1)
    )
    return 20 * at_least < ways


def _at_most(failures: int, repeats: int, probability: float) -> float:
    """Return the binomial tail, by logarithms: binomial coefficients of large numbers overflow floats."""
    once, never = math.log(probability), math.log1p(-probability)
    return math.fsum(
        math.exp(_log_ways(count, repeats) + count * once + (repeats - count) * never) for count in range(failures + 1)
    )


def _log_ways(count: int, of: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
