"""Moderated variances, to which all models of a run contribute, as in Smyth (2004), limma.

Three rounds say little of how much the rounds of a model vary, and those of all models together say a lot. So the
variance of one model is a mean of its own and of what is usual in this run, weighted by degrees of freedom. How much
the usual one weighs comes of the variances themselves: where the models differ in earnest it weighs next to nothing.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks.latency.distributions import digamma, trigamma, trigamma_inverse

# Two variances cannot tell chance from a difference.
LEAST_MODELS = 3
# The weight of the usual variance is itself estimated, roughly where the models are few. Simulated (three rounds, 6 to
# 40 models, any true weight), intervals of 95 % hold in 94 to 95 % with this bound and in 93 % without it.
MOST_LENT = 2.0
# As limma has it: a variance of zero is no sign that there is no noise.
LEAST_SHARE = 1e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    variance: float
    degrees: float


def spread_over(values: Sequence[float]) -> Spread:
    return Spread(variance=statistics.variance(values), degrees=len(values) - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """What is usual in this run.

    Attributes:
        variance: the usual one; ``degrees``: how many rounds it weighs, infinite where the models do not differ.
        pooled: degrees of freedom of all models together: no more may stand behind any interval.
        models: of how many models it was learnt.
    """

    variance: float
    degrees: float
    pooled: float
    models: int


def fit_prior(spreads: Sequence[Spread]) -> Prior | None:
    """Return the prior by the moments of the logarithms (Smyth 2004, section 6.2); None from too few models."""
    known = [spread for spread in spreads if spread.degrees > 0]
    if len(known) < LEAST_MODELS:
        return None
    pooled = math.fsum(spread.degrees for spread in known)
    least = LEAST_SHARE * statistics.median(spread.variance for spread in known)
    if least <= 0:
        return None
    centred = [
        math.log(max(spread.variance, least)) - digamma(spread.degrees / 2) + math.log(spread.degrees / 2)
        for spread in known
    ]
    by_chance = statistics.fmean(trigamma(spread.degrees / 2) for spread in known)
    beyond = statistics.variance(centred) - by_chance
    if beyond <= 0:
        usual = math.fsum(spread.variance * spread.degrees for spread in known) / pooled
        return Prior(variance=usual, degrees=math.inf, pooled=pooled, models=len(known))
    degrees = 2 * trigamma_inverse(beyond)
    usual = math.exp(statistics.fmean(centred) + digamma(degrees / 2) - math.log(degrees / 2))
    return Prior(variance=usual, degrees=degrees, pooled=pooled, models=len(known))


def moderated(own: Spread, prior: Prior | None) -> Spread:
    """Return the variance of a model as its own rounds and the other models say together."""
    if prior is None:
        return own
    lent = min(prior.degrees, MOST_LENT + prior.models / 2)
    together = lent + own.degrees
    variance = (lent * prior.variance + own.degrees * own.variance) / together
    # Rounded down to tenths: few different quantiles are computed then, and none is too small.
    degrees = math.floor(10 * min(together, max(own.degrees, prior.pooled))) / 10
    return Spread(variance=variance, degrees=max(degrees, own.degrees))
