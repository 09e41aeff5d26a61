"""What a release costs all timed models alike, and what each model pays beyond it: a random-effects model.

The logarithm of a model's ratio is common part + own part + noise. The noise is known from the rounds (moderated over
the models), the spread of the own parts is estimated by Paule and Mandel (1982), and the common part has the interval
of Hartung and Knapp (2001), whose factor is 1 with that estimate and is not let fall below. All models of a round share
its processes, and a process is fast or slow for its whole life: what the rounds differ by in common is no evidence of
many models, so it is added, estimated of both contrasts that the three processes allow.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.latency.distributions import quantile
from harness.checks.latency.moderation import LEAST_MODELS, Prior, fit_prior, spread_over
from harness.checks.latency.statistics import estimate_of, round_logs, spread_of_mean
from harness.core.measurement import CONTROL, OLD, CommonSlowdown, LatencyMeasurement, RatioEstimate, Shape

LEVEL = 0.05
# The variance of new against the mean of two old processes over that of one old process against the other.
CONTRAST = 1.5 / 2
# A line needs points beside the two that it is drawn through.
LEAST_FOR_LINE = 5
STEPS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class _Model:
    name: str
    log: float
    variance: float
    degrees: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fit:
    """``spread`` is the variance of the own parts, ``variance`` that of ``common`` as far as the models tell."""

    common: float
    variance: float
    spread: float


def common_slowdown(
    measurements: Mapping[str, LatencyMeasurement], operators: Mapping[str, int] | None = None
) -> CommonSlowdown | None:
    """Return what the release costs all models, None of fewer than three or without two rounds shared by all."""
    logs, rounds, controls = _contrasts(measurements)
    if len(logs) < LEAST_MODELS or len(rounds) < 2:
        return None
    prior = _prior(logs)
    models = [_model(name, list(own.values()), prior) for name, own in logs.items()]
    kept, apart = _without_outliers(models)
    fit = _fitted(kept)
    names = [model.name for model in kept]
    of_rounds = _variance_of_rounds([logs[name] for name in names], rounds, controls)
    ratio = _estimate(fit, len(kept), of_rounds, len(rounds))
    control = _control(controls, of_rounds, len(rounds))
    calls = [item.call_s[0] for name in logs if (item := measurements[name]).call_s is not None]
    shape, per_operator_s = Shape.UNKNOWN, None
    if ratio.low > 1 or ratio.high < 1:
        tried = (_shape(group, measurements, operators or {}) for group in (kept, models))
        shape, per_operator_s = next((line for line in tried if line[0] is not Shape.UNKNOWN), (shape, None))
    return CommonSlowdown(
        ratio=ratio,
        models=tuple(names),
        apart=tuple(model.name for model in apart),
        control=control,
        spread=math.sqrt(fit.spread),
        call_s=(ratio.ratio - 1) * max(calls, default=0.0),
        shape=shape,
        per_operator_s=per_operator_s,
    )


def _contrasts(
    measurements: Mapping[str, LatencyMeasurement],
) -> tuple[dict[str, dict[int, float]], list[int], "_Controls | None"]:
    """Return the logarithms of models that were not lost, against both old processes; the rounds of all; controls."""
    logs = {name: round_logs(item.samples) for name, item in measurements.items() if not item.problem}
    logs = {name: rounds for name, rounds in logs.items() if len(rounds) > 1}
    rounds = sorted(set.intersection(*(set(own) for own in logs.values()))) if logs else []
    controls = _controls(logs, measurements, rounds) if len(rounds) > 1 else None
    if controls is not None:
        logs = {name: _against_both(own, measurements[name], controls.shared) for name, own in logs.items()}
    return logs, rounds, controls


def with_own_parts(
    measurements: Mapping[str, LatencyMeasurement], common: CommonSlowdown | None
) -> dict[str, LatencyMeasurement]:
    """Divide what fresh rounds (if any) say of each model into common and own part, shrunken as Morris (1983)."""
    if common is None:
        return dict(measurements)
    of_models, _, _ = _contrasts(measurements)
    prior = _prior({name: of_models[name] for name in common.models})
    return {
        name: replace(item, own=_own(item, list(of_models.get(name, {}).values()), common, prior))
        for name, item in measurements.items()
    }


def _own(
    item: LatencyMeasurement, logs: Sequence[float], common: CommonSlowdown, prior: Prior | None
) -> RatioEstimate | None:
    fresh = item.confirmation.pairs if item.confirmation is not None else 0
    logs = logs[-fresh:]
    if item.model not in (*common.models, *common.apart) or len(logs) < 2:
        return None
    model = _model(item.model, logs, prior)
    beyond, count = model.log - math.log(common.ratio.ratio), len(common.models)
    half = math.log(common.ratio.detectable)
    shrunken = 0.0
    if item.model in common.models and count > LEAST_MODELS:
        noise = model.variance / (model.variance + common.spread**2) if model.variance else 0.0
        shrunken = noise * (count - 3) / (count - 1)
    variance = model.variance * (1 - shrunken * (count - 1) / count)
    if shrunken:
        variance += 2 / (count - 3) * (shrunken * beyond) ** 2
    own_half = quantile(1 - LEVEL / 2, model.degrees) * math.sqrt(variance)
    return estimate_of((1 - shrunken) * beyond, math.hypot(own_half, (1 - shrunken) * half), len(logs))


def _prior(logs: Mapping[str, Mapping[int, float]]) -> Prior | None:
    return fit_prior([spread_over(list(own.values())) for own in logs.values() if len(own) > 1])


def _model(name: str, logs: Sequence[float], prior: Prior | None) -> _Model:
    mean = spread_of_mean(logs, prior)
    return _Model(name=name, log=statistics.fmean(logs), variance=mean.variance, degrees=mean.degrees)


def _without_outliers(models: Sequence[_Model]) -> tuple[list[_Model], list[_Model]]:
    """Return the models that the common part is estimated of, and those whose own part stands out from all others.

    One after the other, the furthest first: it is held against a fit of the rest (Viechtbauer and Cheung, 2010), at
    Bonferroni's level for as many models. At least half of them stay.
    """
    kept, apart = list(models), list[_Model]()
    while len(kept) > max(LEAST_MODELS, (len(models) + 1) // 2):
        fit = _fitted(kept)
        furthest = max(kept, key=lambda model: abs(model.log - fit.common) / _root(model.variance + fit.spread))
        rest = [model for model in kept if model is not furthest]
        without = _fitted(rest)
        off = abs(furthest.log - without.common) / _root(furthest.variance + without.spread + without.variance)
        if off <= quantile(1 - LEVEL / (2 * len(kept)), len(rest) - 1):
            break
        kept, apart = rest, [*apart, furthest]
    return kept, apart


def _fitted(models: Sequence[_Model]) -> _Fit:
    """Return the fit at the spread with which the weighted squares come to what is expected of so many models."""

    def excess(spread: float) -> float:
        common, weights = _mean(models, spread)
        squares = math.fsum(weight * (model.log - common) ** 2 for model, weight in zip(models, weights, strict=True))
        return squares - (len(models) - 1)

    spread = 0.0
    if excess(0.0) > 0:
        low, high = 0.0, max(statistics.variance([model.log for model in models]), 1e-12)
        while excess(high) > 0:
            high *= 2
        for _ in range(STEPS):
            spread = (low + high) / 2
            low, high = (spread, high) if excess(spread) > 0 else (low, spread)
    common, weights = _mean(models, spread)
    return _Fit(common=common, variance=1 / math.fsum(weights), spread=spread)


def _mean(models: Sequence[_Model], spread: float) -> tuple[float, list[float]]:
    weights = [1 / max(model.variance + spread, 1e-16) for model in models]
    total = math.fsum(weights)
    return math.fsum(weight * model.log for model, weight in zip(models, weights, strict=True)) / total, weights


@dataclass(frozen=True, kw_only=True, slots=True)
class _Controls:
    """Two processes of the old release against each other, whose logarithms are 0 but for chance.

    ``models``: those models, each with the mean of its rounds; all with the variance that they have in common;
    ``chance``: the variance of these means that models make by themselves, on average over the rounds.
    """

    shared: Mapping[int, float]
    models: Sequence[_Model]
    chance: float


def _controls(
    names: Collection[str], measurements: Mapping[str, LatencyMeasurement], rounds: Sequence[int]
) -> _Controls | None:
    """Return what the controls say; None where some round has fewer than two of them."""
    logs = {name: round_logs(measurements[name].samples, CONTROL, (OLD,)) for name in names}
    table = [[own[number] for own in logs.values() if number in own] for number in rounds]
    if any(len(column) < 2 for column in table):
        return None
    shared = [statistics.fmean(column) for column in table]
    degrees = sum(len(column) - 1 for column in table)
    squares = math.fsum((log - common) ** 2 for column, common in zip(table, shared, strict=True) for log in column)
    variance = squares / degrees
    models = [
        _Model(name=name, log=statistics.fmean(known), variance=variance / len(known), degrees=degrees)
        for name, own in logs.items()
        if (known := [own[number] for number in rounds if number in own])
    ]
    return _Controls(
        shared=dict(zip(rounds, shared, strict=True)),
        models=models,
        chance=statistics.fmean(variance / len(column) for column in table),
    )


def _against_both(
    logs: Mapping[int, float], measured: LatencyMeasurement, shared: Mapping[int, float]
) -> dict[int, float]:
    """Return the logarithms of a model against both old processes, also in the rounds in which one alone timed it.

    The half of what they differ by in common stands for the half of what they would differ by here. So every model of
    a round has the same contrast, which is independent of that difference.
    """
    known = round_logs(measured.samples, CONTROL, (OLD,))
    return {number: log if number in known else log - shared.get(number, 0.0) / 2 for number, log in logs.items()}


def _variance_of_rounds(
    logs: Sequence[Mapping[int, float]], rounds: Sequence[int], controls: _Controls | None
) -> tuple[float, int]:
    """Return the variance of what all models of a round share, and the degrees of freedom that it was learnt with.

    Simulated for three rounds of 12 to 40 models and a shared deviation of 0, 0.3 and 0.8 %, the intervals of 95 % that
    follow hold in 90 to 98 %.
    """
    centred = []
    for own in logs:
        mean = statistics.fmean(own[number] for number in rounds)
        centred.append([own[number] - mean for number in rounds])
    shared = [statistics.fmean(column) for column in zip(*centred, strict=True)]
    degrees = len(rounds) - 1
    noise = math.fsum((value - common) ** 2 for row in centred for value, common in zip(row, shared, strict=True))
    squares = math.fsum(value**2 for value in shared)
    by_chance = noise / (len(logs) - 1) / len(logs)
    if controls is not None:  # whose mean is known to be 0; a degree less is counted than it has
        squares += CONTRAST * math.fsum(value**2 for value in controls.shared.values())
        by_chance += CONTRAST * len(rounds) * controls.chance
        degrees += len(rounds) - 1
    return max(0.0, squares - by_chance) / degrees, degrees


def _estimate(fit: _Fit, models: int, of_rounds: tuple[float, int], rounds: int) -> RatioEstimate:
    """Return the common part: both variances added, with the degrees of freedom of Satterthwaite (1946)."""
    shared = of_rounds[0] / rounds
    total = fit.variance + shared
    degrees = total**2 / (fit.variance**2 / (models - 1) + shared**2 / of_rounds[1]) if total else models - 1.0
    half = quantile(1 - LEVEL / 2, math.floor(10 * degrees) / 10) * math.sqrt(total)
    return estimate_of(fit.common, half, rounds)


def _control(controls: _Controls | None, of_rounds: tuple[float, int], rounds: int) -> RatioEstimate | None:
    """Return what two processes of the old release differ by in common; None where there was only one."""
    if controls is None or len(controls.models) < LEAST_MODELS:
        return None
    of_two = (of_rounds[0] / CONTRAST, of_rounds[1])
    return _estimate(_fitted(controls.models), len(controls.models), of_two, rounds)


def _shape(
    models: Sequence[_Model],
    measurements: Mapping[str, LatencyMeasurement],
    operators: Mapping[str, int],
) -> tuple[Shape, float | None]:
    """Return what the common part looks like: the models' logarithms as a + b x (operator calls per second).

    Only one of a and b surely differs from 0 where the data tell them apart; otherwise nothing is said. Models that
    stand out take part where the others alone do not tell: short calls of many operators stand out by rights.
    """
    points = [
        (operators[model.name] / calls[0], model.log, 1 / max(model.variance, 1e-16))
        for model in models
        if operators.get(model.name) and (calls := measurements[model.name].call_s) is not None and calls[0] > 0
    ]
    if len(points) < LEAST_FOR_LINE:
        return Shape.UNKNOWN, None
    total = math.fsum(weight for _, _, weight in points)
    rate, log = (math.fsum(point[at] * point[2] for point in points) / total for at in (0, 1))
    squares = math.fsum(weight * (x - rate) ** 2 for x, _, weight in points)
    if squares <= 0:
        return Shape.UNKNOWN, None
    slope = math.fsum(weight * (x - rate) * (y - log) for x, y, weight in points) / squares
    constant = log - slope * rate
    left = math.fsum(weight * (y - constant - slope * x) ** 2 for x, y, weight in points) / (len(points) - 2)
    t = quantile(1 - LEVEL / 2, len(points) - 2)
    scale = math.sqrt(max(1.0, left))
    has_slope = abs(slope) > t * scale / math.sqrt(squares)
    has_constant = abs(constant) > t * scale * math.sqrt(1 / total + rate**2 / squares)
    if has_slope and not has_constant:
        through_zero = math.fsum(weight * x * y for x, y, weight in points)
        return Shape.PER_OPERATOR, through_zero / math.fsum(weight * x * x for x, _, weight in points)
    return (Shape.SHARE if has_constant and not has_slope else Shape.UNKNOWN), None


def _root(value: float) -> float:
    return math.sqrt(max(value, 1e-16))
