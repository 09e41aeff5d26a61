"""Rounds of a benchmark whose truth is known, drawn as the recorded ones were (docs/calibration/latency.json).

The rounds of a model vary by 1.0 % and the models differ in that: their variances are those of a prior with four degrees
of freedom (medians of fifteen recorded runs). What all models of a round share varied by 0.3 % from round to round.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.measurement import ArmSample, Block, LatencyMeasurement, PairSample
from harness.domain.outcome import Status
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.latency.judging import Next, judge_latency, next_step
from harness.latency.looks import look_from
from harness.latency.moderation import fit_prior
from harness.latency.statistics import measure, spread_of

SPREAD, DEGREES, SHARED = 0.010, 4.0, 0.003
CALL_S = 0.01


@dataclass
class Machine:
    """Draws rounds; ``shared`` is what all models of a round have in common, ``degrees`` how alike the models are."""

    chance: random.Random
    spread: float = SPREAD
    degrees: float = DEGREES
    shared: float = SHARED
    _deviations: dict[str, float] = field(default_factory=dict, init=False)

    def round(self, number: int, truths: Mapping[str, float]) -> dict[str, PairSample]:
        """Return a sample of each model, whose new release takes ``truths`` times as long; both processes err."""
        # The variance of new against the mean of two is 1.5 times that of one process.
        process = {arm: self.chance.gauss(0.0, self.shared / math.sqrt(1.5)) for arm in ("old", "control", "new")}
        return {name: self._sample(name, number, truth, process) for name, truth in truths.items()}

    def _sample(self, name: str, number: int, truth: float, process: Mapping[str, float]) -> PairSample:
        if name not in self._deviations:
            chi2 = self.chance.gammavariate(self.degrees / 2, 2)
            self._deviations[name] = self.spread * math.sqrt(self.degrees / chi2)
        own = self._deviations[name] / math.sqrt(1.5)
        logs = {arm: shared + self.chance.gauss(0.0, own) for arm, shared in process.items()}
        logs["new"] += math.log(truth)
        return PairSample(
            model=name,
            round=number,
            blocks=tuple(Block(arm=arm, turn=0, p50_s=CALL_S * math.exp(log), calls=10) for arm, log in logs.items()),
            arms={arm: ArmSample(load_s=1.0, calls_s=()) for arm in logs},
        )


def simulated(
    machine: Machine, truths: Mapping[str, float], budget: LatencyBudget, *, borrow: bool = True, more: int = 0
) -> dict[str, LatencyMeasurement]:
    """Return the measurements of one run by the rules of the gate: looks, moderated variances, confirmation.

    Args:
        more: it goes on with what it left undecided until it has had so many rounds; each counts as of its last look.
    """
    search: dict[str, list[PairSample]] = {name: [] for name in truths}
    fresh: dict[str, list[PairSample]] = {name: [] for name in truths}
    steps = dict.fromkeys(truths, Next.SEARCH)
    found: dict[str, LatencyMeasurement] = {}
    number = 0
    while open_ := [name for name in truths if steps[name] is not Next.DONE and not 0 < more <= number]:
        for name, sample in machine.round(number, {name: truths[name] for name in open_}).items():
            (fresh if steps[name] is Next.CONFIRM else search)[name].append(sample)
        prior = fit_prior([spread_of(search[name], fresh[name]) for name in truths]) if borrow else None
        for name in open_:
            measured = measure(name, search[name], fresh[name], looks=budget.looks, prior=prior)
            rounds = len((fresh if steps[name] is Next.CONFIRM else search)[name])
            if rounds == look_from(rounds, budget.looks):
                found[name] = measured
            steps[name] = next_step(
                measured, budget, rounds=len(search[name]), fresh=len(fresh[name]), further=more > 0
            )
        number += 1
    return found


def status_of(measurement: LatencyMeasurement, budget: LatencyBudget, policy: PolicySettings | None = None) -> Status:
    """Return what the gate says of one of them."""
    cell = f"{measurement.model}/backward/latency/cpu/default/all"
    return judge_latency(cell, measurement, budget, policy or PolicySettings()).status
