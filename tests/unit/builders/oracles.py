"""Simulated initializations whose guilt is known, and oracles that count what they are asked."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.core.diagnosis import Said, SearchAnswer, Trial

FAILS, PASSES, UNTESTABLE = (
    SearchAnswer(said=Said.FAILS, outcome="hang"),
    SearchAnswer(said=Said.PASSES),
    SearchAnswer(said=Said.UNTESTABLE),
)


@dataclass
class Simulated:
    """An oracle: ``guilty`` says whether the defect can show in a trial, ``rate`` how often it then does."""

    guilty: Callable[[Trial], bool]
    rate: float = 1.0
    seed: int = 0
    untestable: Callable[[Trial], bool] = lambda trial: False
    old_is_guilty: bool = False
    asked: list[Trial] = field(default_factory=list)

    def __call__(self, trial: Trial) -> SearchAnswer:
        assert trial not in self.asked, f"{trial} was asked twice"
        self.asked.append(trial)
        if self.untestable(trial):
            return UNTESTABLE
        if not self.guilty(trial) or (trial.side == "old" and not self.old_is_guilty):
            return PASSES
        return FAILS if random.Random(f"{self.seed} {trial}").random() < self.rate else PASSES


def needs(*models: str, threads: int = 2) -> Callable[[Trial], bool]:
    """The defect needs these models in one process and at least that many threads."""
    return lambda trial: set(models) <= set(trial.models) and trial.threads >= threads
