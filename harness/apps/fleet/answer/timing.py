"""Timing over a fleet: of thousands of slowdowns that are found, few may be luck.

A run controls how often one model fails by chance. Of 5,000 models that are timed, some would still be red on unchanged
code. So all suspicions are judged together: the rule of Benjamini and Hochberg (1995) chooses those whose fresh rounds
show a slowdown, such that at most ``FALSE_SHARE`` of the chosen are expected to be luck. Suspicions alone are asked, as
fresh rounds know nothing of what raised these (independent filtering: Bourgon, Gentleman and Huber 2010). The others'
intervals are widened to the level of the choice (Benjamini and Yekutieli 2005), where they do not lie above 1: so they
are undecided, by the rules of every latency.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.latency.distributions import cumulative
from harness.checks.latency.moderation import Prior, fit_prior
from harness.checks.latency.statistics import interval, round_logs, spread_of, spread_of_mean
from harness.core.measurement import LatencyMeasurement, PairSample, RatioEstimate
from harness.core.report import RunReport
from harness.core.text import counted

FALSE_SHARE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetTiming:
    """What came of the suspicions of a fleet.

    ``programs``: how many were timed; ``suspected``: how many went to fresh rounds; ``chosen``: of how many these show
    a slowdown, among so many suspicions.
    """

    programs: int = 0
    suspected: int = 0
    chosen: int = 0

    @property
    def words(self) -> str:
        if not self.suspected:
            return ""
        luck = f"at most {FALSE_SHARE * self.chosen:.2g} expected to be luck" if self.chosen else "none is sure"
        return (
            f"timing: {counted(self.programs, 'program')} timed, {self.suspected} suspected, {self.chosen} slower in "
            f"fresh rounds among so many ({luck}), by however little: red is what is beyond its limit"
        )


def over_fleet(report: RunReport, families: Mapping[str, str]) -> tuple[RunReport, FleetTiming]:
    """Return the report with the intervals of fresh rounds as sure as a fleet of its size needs them.

    ``report``: with all models of the fleet; ``families``: model -> what it shares with those that were not timed
    themselves and have its measurement.
    """
    widened, timing = controlled(
        {
            families[item.model]: item.latency
            for item in report.models
            if item.latency is not None and item.latency.steady is not None
        }
    )
    models = tuple(
        replace(item, latency=replace(item.latency, confirmation=widened[families[item.model]]))
        if item.latency is not None and families[item.model] in widened
        else item
        for item in report.models
    )
    return replace(report, models=models), timing


def controlled(
    timed: Mapping[str, LatencyMeasurement],
) -> tuple[dict[str, RatioEstimate], FleetTiming]:
    """Return wider intervals of suspicions that may be luck, and what came of all; one measurement per program."""
    phases = {key: _phases(measured) for key, measured in timed.items()}
    prior = fit_prior([spread_of(*both) for both in phases.values()])
    fresh = {key: list(round_logs(later).values()) for key, (_, later) in phases.items() if later}
    chance = {key: by_chance(logs, prior) for key, logs in fresh.items()}
    ranked = sorted(chance, key=lambda key: chance[key])
    step = FALSE_SHARE / max(len(ranked), 1)
    chosen = max((rank for rank, key in enumerate(ranked, 1) if chance[key] <= rank * step), default=0)
    widened = {}
    for key in ranked[chosen:]:
        wide = interval(fresh[key], level=2 * step * max(chosen, 1), prior=prior)
        if wide is not None and wide.low < (timed[key].confirmation or wide).low:
            widened[key] = wide
    return widened, FleetTiming(programs=len(timed), suspected=len(fresh), chosen=chosen)


def by_chance(logs: Sequence[float], prior: Prior | None) -> float:
    """Return how probable rounds that show as much of a slowdown are where there is none: Student's t, one-sided.

    ``logs``: logarithm of new/old, one of each round; ``prior``: what all programs of the fleet say of the variance.
    """
    if len(logs) < 2:
        return 1.0
    mean = spread_of_mean(logs, prior)
    if mean.variance <= 0:
        return 1.0
    t = statistics.fmean(logs) / math.sqrt(mean.variance)
    return 1.0 - cumulative(t, mean.degrees) if t >= 0 else cumulative(-t, mean.degrees)


def _phases(measured: LatencyMeasurement) -> tuple[tuple[PairSample, ...], tuple[PairSample, ...]]:
    fresh = measured.confirmation.pairs if measured.confirmation is not None else 0
    begin = len(measured.samples) - fresh
    return measured.samples[:begin], measured.samples[begin:]
