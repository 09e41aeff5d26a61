"""Student's t with any number of degrees of freedom, and the derivatives of log-gamma, without SciPy."""

import math
from functools import lru_cache
from statistics import NormalDist

# Above it the normal distribution is as good: the quantiles that are asked for differ by less than 0.01 %.
NORMAL_FROM = 1e5
TERMS = 300
TINY, CLOSE = 1e-300, 1e-15


@lru_cache(maxsize=4096)
def quantile(probability: float, degrees: float) -> float:
    """Return the t with P(T <= t) = ``probability``, for 0.5 <= ``probability`` < 1 and ``degrees`` >= 1."""
    low, high = 0.0, 1.0
    while cumulative(high, degrees) < probability:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        if cumulative(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return high


def cumulative(t: float, degrees: float) -> float:
    """Return P(T <= t) for ``t`` >= 0: Abramowitz and Stegun (1964), 26.7.1 with the incomplete beta function."""
    if degrees >= NORMAL_FROM:
        return NormalDist().cdf(t)
    return 1 - 0.5 * _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized I_x(a, b) by its continued fraction (Press et al. 2007, Numerical Recipes, 6.4)."""
    if x in (0.0, 1.0):
        return x
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x),
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _apart(1 + term * d), _apart(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < CLOSE:
            break
    return value


def _apart(value: float) -> float:
    return value if abs(value) > TINY else TINY


# The asymptotic series (Abramowitz and Stegun, 6.3.18 and 6.4.12) are exact to 1e-12 from here on.
SERIES_FROM = 10.0


def digamma(x: float) -> float:
    """Return the derivative of log-gamma at ``x`` > 0."""
    total = 0.0
    while x < SERIES_FROM:
        total -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return total + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """Return the second derivative of log-gamma at ``x`` > 0."""
    total = 0.0
    while x < SERIES_FROM:
        total += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * 5 / 66))))
    return total + 1 / x + square / 2 + series / x


def trigamma_inverse(value: float) -> float:
    """Return the x with trigamma(x) = ``value`` > 0, by bisection: trigamma falls."""
    low, high = 1e-8, 1.0
    while trigamma(high) > value:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if trigamma(middle) > value:
            low = middle
        else:
            high = middle
    return high
