"""Statistics of the duel. The unit is a pair of fresh processes: a process keeps its luck for its whole life.

Within a pair, the old and the new release run short blocks in alternation; the logarithm of the ratio of neighbouring
blocks is free of the machine's slow drift, and the median over them is free of single disturbances. Across pairs,
these medians are independent, and Student's t makes an interval of them.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise

from harness.domain.measurement import LatencyMeasurement, PairSample, RatioEstimate

NUMERATOR, DENOMINATOR, TWIN = "new", "old", "twin"

# Student's t, 0.975 quantile by degrees of freedom. Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
T_975 = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
    11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 20: 2.086,
    21: 2.080, 22: 2.074, 23: 2.069, 24: 2.064, 25: 2.060, 26: 2.056, 27: 2.052, 28: 2.048, 29: 2.045, 30: 2.042,
    40: 2.021, 60: 2.000, 100: 1.984,
}  # fmt: skip

LogRatio = Callable[[PairSample], list[float]]


def estimate(
    samples: Sequence[PairSample], numerator: str = NUMERATOR, denominator: str = DENOMINATOR
) -> RatioEstimate | None:
    """Return the ratio of steady-state times, or None where no round has blocks of both arms.

    Args:
        samples: of one model; samples of the same ``round`` share their processes and count as one pair.
        numerator, denominator: arms. Blocks of other arms are left out before neighbours are paired.

    Raises:
        ValueError: a time is not positive and finite.
    """
    return _across_rounds(samples, lambda sample: block_log_ratios(sample, numerator, denominator))


def estimate_load(
    samples: Sequence[PairSample], numerator: str = NUMERATOR, denominator: str = DENOMINATOR
) -> RatioEstimate | None:
    """Return the ratio of load times, or None where no round has both.

    Raises:
        ValueError: a time is not positive and finite.
    """

    def ratio(sample: PairSample) -> list[float]:
        if numerator not in sample.load_s or denominator not in sample.load_s:
            return []
        return [_log_ratio(sample.load_s[numerator], sample.load_s[denominator])]

    return _across_rounds(samples, ratio)


def estimate_first_calls(
    samples: Sequence[PairSample], numerator: str = NUMERATOR, denominator: str = DENOMINATOR
) -> RatioEstimate | None:
    """Return the ratio of the summed times of the first calls, or None where no round has both.

    A round counts only if both arms made the same number of calls: sums of unlike length are no ratio of anything.

    Raises:
        ValueError: a time is not positive and finite.
    """

    def ratio(sample: PairSample) -> list[float]:
        ours, theirs = sample.first_calls_s.get(numerator, ()), sample.first_calls_s.get(denominator, ())
        if not ours or len(ours) != len(theirs):
            return []
        return [_log_ratio(math.fsum(ours), math.fsum(theirs))]

    return _across_rounds(samples, ratio)


def block_log_ratios(sample: PairSample, numerator: str, denominator: str) -> list[float]:
    """Return log(numerator / denominator) of every two neighbouring blocks of different arms.

    A block may have two neighbours, one on each side: a drift of the machine then enters once with each sign.

    Raises:
        ValueError: a time is not positive and finite.
    """
    blocks = [block for block in sample.blocks if block.arm in (numerator, denominator)]
    ratios = []
    for one, other in pairwise(blocks):
        if one.arm == numerator and other.arm == denominator:
            ratios.append(_log_ratio(one.per_call_s, other.per_call_s))
        elif one.arm == denominator and other.arm == numerator:
            ratios.append(_log_ratio(other.per_call_s, one.per_call_s))
    return ratios


def steady_median_s(samples: Sequence[PairSample], arm: str) -> float | None:
    """Return seconds per call of one arm: the median over rounds of the median over blocks; None without blocks."""
    rounds: dict[int, list[float]] = {}
    for sample in samples:
        times = [block.per_call_s for block in sample.blocks if block.arm == arm]
        if times:
            rounds.setdefault(sample.round, []).extend(times)
    return statistics.median(statistics.median(times) for times in rounds.values()) if rounds else None


def measure(
    model: str, samples: Sequence[PairSample], confirmation: Sequence[PairSample] = (), problem: str = ""
) -> LatencyMeasurement:
    """Return everything that the duel learnt about one model.

    Args:
        model: picks its own samples out of both sequences.
        samples: of the duel, any models.
        confirmation: of fresh process pairs started after a suspicion; estimated by themselves, never pooled with
            the samples that raised it.
        problem: why something was not measured, in words.

    Raises:
        ValueError: a time is not positive and finite.
    """
    own = tuple(sample for sample in samples if sample.model == model)
    again = [sample for sample in confirmation if sample.model == model]
    return LatencyMeasurement(
        model=model,
        samples=own,
        steady=estimate(own),
        same_against_same=estimate(own, TWIN, DENOMINATOR),
        load=estimate_load(own),
        first_calls=estimate_first_calls(own),
        confirmation=estimate(again),
        steady_old_s=steady_median_s(own, DENOMINATOR),
        steady_new_s=steady_median_s(own, NUMERATOR),
        problem=problem,
    )


def student_t(degrees: int) -> float:
    """Return the 0.975 quantile of Student's t for ``degrees`` >= 1; between rows of the table the wider one."""
    return T_975[max(row for row in T_975 if row <= degrees)]


def _across_rounds(samples: Sequence[PairSample], ratios_of: LogRatio) -> RatioEstimate | None:
    rounds: dict[int, list[float]] = {}
    for sample in samples:
        ratios = ratios_of(sample)
        if ratios:
            rounds.setdefault(sample.round, []).extend(ratios)
    return _interval([statistics.median(ratios) for ratios in rounds.values()])


def _interval(logs: list[float]) -> RatioEstimate | None:
    """Return mean +- t(0.975, n - 1) * sd / sqrt(n) of the logarithms, exponentiated."""
    if not logs:
        return None
    centre, pairs = statistics.fmean(logs), len(logs)
    if pairs == 1:
        return RatioEstimate(ratio=math.exp(centre), low=0.0, high=math.inf, pairs=1, detectable=math.inf)
    half = student_t(pairs - 1) * statistics.stdev(logs) / math.sqrt(pairs)
    return RatioEstimate(
        ratio=math.exp(centre),
        low=_exp(centre - half),
        high=_exp(centre + half),
        pairs=pairs,
        detectable=_exp(half),
    )


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def _log_ratio(numerator_s: float, denominator_s: float) -> float:
    for time_s in (numerator_s, denominator_s):
        if not (time_s > 0.0 and math.isfinite(time_s)):
            raise ValueError(f"a time of {time_s} s cannot be part of a ratio")
    return math.log(numerator_s) - math.log(denominator_s)
