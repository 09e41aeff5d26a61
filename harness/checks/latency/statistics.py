"""Statistics of the paired benchmark. The unit is a round: a process may be faster or slower for its whole life.

Within a round, the releases run short blocks turn by turn; the logarithm of the ratio within a turn is free of the
machine's slow drift, and the median over turns is free of single disturbances. Across rounds, these medians are
independent, and Student's t makes an interval of them, with a variance that the other models of the run have a part in
(``harness/checks/latency/moderation.py``). Where both processes of the old release timed a model, both stand against
the new one: their mean has half the luck of one of them. (Against one, the variance of the difference of
equal processes is 2 sigma^2; against the mean of two, 1.5 sigma^2.)
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from harness.checks.latency.distributions import quantile
from harness.checks.latency.looks import level_at
from harness.checks.latency.moderation import Prior, Spread, moderated, spread_over
from harness.checks.latency.quantities import excess_growth_bytes, missing, quantities
from harness.core.measurement import (
    CONTROL,
    NEW,
    NO_PROBLEM,
    OLD,
    LatencyMeasurement,
    PairSample,
    Problem,
    RatioEstimate,
)
from harness.core.quantities import parts_of

LEVEL = 0.05
NO_PRIORS: Mapping[str, Prior | None] = {}

LogRatio = Callable[[PairSample], float | None]


def estimate(
    samples: Sequence[PairSample],
    numerator: str = NEW,
    denominators: Sequence[str] = (OLD, CONTROL),
    *,
    level: float = LEVEL,
    prior: Prior | None = None,
) -> RatioEstimate | None:
    """Return the ratio of steady-state times, or None where no round has blocks of both.

    ``samples``: of one model; samples of the same ``round`` share their processes and count as one pair; ``level``:
    two-sided, such that the interval holds at all looks together (a repeated confidence interval; Jennison and
    Turnbull, 2000, chapter 9). Raises ``ValueError``: a time is not positive and finite.
    """
    return interval(list(round_logs(samples, numerator, denominators).values()), level=level, prior=prior)


def round_logs(
    samples: Sequence[PairSample], numerator: str = NEW, denominators: Sequence[str] = (OLD, CONTROL)
) -> dict[int, float]:
    return _per_round(samples, lambda sample: log_ratio(sample, numerator, denominators))


def spread_of(*phases: Sequence[PairSample]) -> Spread:
    """Return how much the rounds of a model vary, each phase about its own mean."""
    logs = [list(round_logs(samples).values()) for samples in phases]
    degrees = sum(max(len(own) - 1, 0) for own in logs)
    squares = math.fsum((log - statistics.fmean(own)) ** 2 for own in logs for log in own)
    return Spread(variance=squares / degrees if degrees else 0.0, degrees=degrees)


def log_ratio(sample: PairSample, numerator: str, denominators: Sequence[str]) -> float | None:
    """Return the median over turns of log(numerator / geometric mean of denominators), None without a turn."""
    turns: dict[int, dict[str, float]] = {}
    for block in sample.blocks:
        turns.setdefault(block.turn, {})[block.arm] = logarithm(block.p50_s)
    ratios = [ratio for turn in turns.values() if (ratio := against(turn, numerator, denominators)) is not None]
    return statistics.median(ratios) if ratios else None


def against(logs: Mapping[str, float], numerator: str, denominators: Sequence[str]) -> float | None:
    """Return a logarithm less the mean of the others' that are there; None where either side is missing."""
    below = [logs[arm] for arm in denominators if arm in logs]
    return logs[numerator] - statistics.fmean(below) if below and numerator in logs else None


def _per_round(samples: Sequence[PairSample], ratio_of: LogRatio) -> dict[int, float]:
    rounds: dict[int, list[float]] = {}
    for sample in samples:
        ratio = ratio_of(sample)
        if ratio is not None:
            rounds.setdefault(sample.round, []).append(ratio)
    return {number: statistics.median(ratios) for number, ratios in rounds.items()}


def interval(logs: Sequence[float], *, level: float = LEVEL, prior: Prior | None = None) -> RatioEstimate | None:
    """Return mean +- t * sd / sqrt(n) of the logarithms, exponentiated; t has the two-sided ``level``.

    ``prior``: moderates the variance, and lends its degrees of freedom to the n - 1 of the logarithms; never to a
    single one, which nothing has confirmed.
    """
    if not logs:
        return None
    centre, pairs = statistics.fmean(logs), len(logs)
    if pairs == 1:
        return RatioEstimate(ratio=exp(centre), low=0.0, high=math.inf, pairs=1, detectable=math.inf)
    mean = spread_of_mean(logs, prior)
    half = quantile(1 - level / 2, mean.degrees) * math.sqrt(mean.variance)
    return estimate_of(centre, half, pairs)


def spread_of_mean(logs: Sequence[float], prior: Prior | None) -> Spread:
    """Return the variance of the mean of two or more logarithms, with what the other models say of it."""
    spread = moderated(spread_over(logs), prior)
    return Spread(variance=spread.variance / len(logs), degrees=spread.degrees)


def estimate_of(centre: float, half: float, pairs: int) -> RatioEstimate:
    return RatioEstimate(
        ratio=exp(centre),
        low=exp(centre - half),
        high=exp(centre + half),
        pairs=pairs,
        detectable=exp(half),
    )


def measure(
    model: str,
    samples: Sequence[PairSample],
    fresh: Sequence[PairSample] = (),
    *,
    looks: Sequence[int] = (),
    prior: Prior | None = None,
    beside: Mapping[str, Prior | None] = NO_PRIORS,
    problem: Problem = NO_PROBLEM,
) -> LatencyMeasurement:
    """Return everything that the benchmark learnt about one model.

    Args:
        fresh: from the rounds after a suspicion; ``confirmation`` comes of these alone, never of those that raised it.
        looks: after how many rounds of either one planned to look; empty: once, at what there is.
        prior: what all models of the run say of the variance of the steady call; ``beside``: of other quantities.

    Raises:
        ValueError: a time is not positive and finite.
    """
    both = (*samples, *fresh)
    same = estimate(both, CONTROL, (OLD,))
    return LatencyMeasurement(
        model=model,
        samples=both,
        steady=estimate(samples, level=level_at(len(samples), looks), prior=prior),
        same_against_same=same if same is not None and same.pairs > 1 else None,
        confirmation=estimate(fresh, level=level_at(len(fresh), looks), prior=prior),
        quantities=quantities(samples, partial(_estimated, samples, beside)),
        fresh_quantities=quantities(fresh, partial(_estimated, fresh, beside)),
        lenders=prior.models if prior is not None else 0,
        missing=missing(both),
        growth_bytes=excess_growth_bytes(both),
        waited=_waited(both),
        spent_s=math.fsum(sample.spent_s for sample in both),
        problem=problem.words,
        problem_of=problem.arm,
        refused=problem.refused,
    )


def _estimated(
    samples: Sequence[PairSample], priors: Mapping[str, Prior | None], name: str, ratio_of: LogRatio
) -> RatioEstimate | None:
    logs = list(_per_round(samples, ratio_of).values())
    return interval(logs, prior=priors.get(parts_of(name)[0]))


def between(samples: Sequence[PairSample], old: str, new: str) -> list[PairSample]:
    names = {old: OLD, new: NEW}
    return [
        replace(
            sample,
            blocks=tuple(replace(block, arm=names[block.arm]) for block in sample.blocks if block.arm in names),
            arms={names[arm]: measured for arm, measured in sample.arms.items() if arm in names},
        )
        for sample in samples
    ]


def _waited(samples: Sequence[PairSample]) -> float:
    """Return the largest share over the arms of the time of their blocks in which the caller waited for a core."""
    shares: dict[str, list[float]] = {}
    for sample in samples:
        for block in sample.blocks:
            shares.setdefault(block.arm, []).append(block.waited)
    return max(map(statistics.fmean, shares.values()), default=0.0)


def logarithm(time_s: float) -> float:
    """Return the logarithm of a time. Raises ``ValueError`` unless it is positive and finite."""
    if not (time_s > 0.0 and math.isfinite(time_s)):
        raise ValueError(f"a time of {time_s} s cannot be part of a ratio")
    return math.log(time_s)


def exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf
