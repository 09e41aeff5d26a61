"""Rounds of a benchmark: between stubs of torch, and drawn ones whose truth is known.

The drawn rounds are like the recorded ones (docs/calibration/latency.json): those of a model vary by 1.0 % and the
models differ in that, so that their variances are those of a prior with four degrees of freedom (medians of fifteen
recorded runs). What all models of a round share varied by 0.3 % from round to round.
"""

import json
import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.core.environment import Environment
from harness.core.measurement import ArmSample, Block, LatencyMeasurement, PairSample
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.probe import ProbeRequest, ServingProfile
from harness.verdict.latency import judge_latency
from harness.checks.latency.limits import Next, next_step
from harness.checks.latency.looks import look_from
from harness.checks.latency.moderation import fit_prior
from harness.checks.latency.rounds import Round, with_control
from harness.checks.latency.statistics import measure, spread_of
from harness.machine.cores import Placement
from tests.programs import stub

BUDGET = LatencyBudget(blocks=3, block_s=0.001, threads=2, together_s=0.01)
HERE = min(os.sched_getaffinity(0))
PINNED = Placement(cores=(HERE,), ranked=(HERE,))


class InOrder(random.Random):
    """Draws everything in the order in which it stands."""

    def sample(self, population: Sequence[Any], k: int, *, counts: object = None) -> list[Any]:
        return list(population[:k])


def make_round(
    tmp_path: Path,
    environment: Environment,
    programs: Mapping[str, Mapping[str, object]],
    deadline_s: float = 60.0,
    *,
    budget: LatencyBudget = BUDGET,
    placement: Placement = PINNED,
    lanes: int = 1,
    threads: int = 1,
) -> Round:
    """A round of a well behaved arm and one whose artifacts do what ``programs`` says, the models in their order; its pool has ``threads``."""
    well = [stub.write_artifact(tmp_path / "well", name) for name in programs]
    bad = [stub.write_artifact(tmp_path / "bad", name, **program) for name, program in programs.items()]
    requests = {
        "old": stub.run_request(well, stub.PATIENT, verb="benchmark"),
        "new": replace(
            stub.run_request(bad, stub.PATIENT, verb="benchmark"), profile=ServingProfile(intra_op_threads=threads)
        ),
    }
    environments = {"old": environment, "new": environment}
    round_ = Round(
        environments,
        requests,
        tmp_path / "benchmark",
        number=0,
        budget=budget,
        deadline_s=deadline_s,
        placement=placement,
        lanes=lanes,
    )
    round_._random = InOrder()
    return round_


def with_sets(request: ProbeRequest, *names: str, reset: str | None = None) -> ProbeRequest:
    """The request with more input sets for every model, all with the values of the example."""
    runs = []
    for run in request.runs:
        index = Path(run.artifact.inputs_dir, "tensors.jsonl")
        (entry,) = (json.loads(line) for line in index.read_text().splitlines())
        index.write_text("".join(json.dumps({**entry, "set": name}) + "\n" for name in ("example", *names)))
        schedule = (("example", 3), *((name, 2) for name in names))
        runs.append(replace(run, artifact=replace(run.artifact, reset=reset), schedule=schedule))
    return replace(request, runs=tuple(runs))


def measure_round(round_: Round, tmp_path: Path, *models: str, extras: bool = True) -> dict[str, PairSample]:
    found = {sample.model: sample for sample in round_.measure(models, lambda _: None, extras=extras)}
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)
    assert stub.zombies() == []
    return found


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
        controls, found = with_control([*truths], number), {}
        for name, truth in truths.items():
            timed = {arm: log for arm, log in process.items() if arm != "control" or name in controls}
            found[name] = self._sample(name, number, truth, timed)
        return found

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
    return judge_latency(measurement.model, measurement, budget, policy or PolicySettings()).status
