"""Limits as they are written: ``+5 %``, ``5 %``, 0.05, and 1.05 or ``x1.05`` for a ratio; pure.

One notation wherever limits are read. A number that two readers would read differently is refused.
"""

import math
import re

CHANGE = re.compile(r"\A\+?\s*([0-9]+(?:\.[0-9]+)?)\s*%\Z")
FACTOR = re.compile(r"\Ax\s*([0-9]+(?:\.[0-9]+)?)\Z")
# From here on a bare number may be a percentage as well as a factor.
AMBIGUOUS_FROM = 2.0
MOST = 1e9


class AmbiguousLimit(ValueError):
    """A limit that can be read in two ways; its text says which, and what to write."""


def ratio_of(value: object, *, ratios: bool) -> float:
    """Return the ratio new/old that a limit means, above 1.

    ``ratios``: whether a bare number between 1 and 2 is a ratio; otherwise it is refused, for it may be a percentage.
    Raises ``AmbiguousLimit``: it can be read in two ways; ``ValueError``: it is no limit.
    """
    if isinstance(value, str):
        if (match := CHANGE.match(value.strip())) is not None:
            return _above_one(1 + float(match[1]) / 100)
        if (match := FACTOR.match(value.strip())) is not None:
            return _above_one(float(match[1]))
        value = float(value)  # ValueError where it is none
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    if 0 < value < 1:
        return _above_one(1 + value)
    if 1 < value < AMBIGUOUS_FROM and ratios:
        return float(value)
    if 1 <= value <= MOST and not (ratios and value == 1):
        if value == 1:
            raise AmbiguousLimit(
                '1 may mean 1 % or that nothing may grow: write "+1 %", or a small one such as "+0.1 %"'
            )
        message = f"{value:g} may mean {value:g} % or +{100 * (value - 1):.4g} %"
        raise AmbiguousLimit(f'{message}: write "+{value:g} %" or "x{value:g}"')
    raise ValueError


def _above_one(ratio: float) -> float:
    if not 1 < ratio <= MOST:
        raise ValueError
    return ratio
