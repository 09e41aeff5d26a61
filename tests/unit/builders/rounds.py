"""Rounds of a benchmark between stubs of torch, and what is left when they are over."""

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.environment import Environment
from harness.domain.measurement import PairSample
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ProbeRequest, ServingProfile
from harness.latency.rounds import Round
from harness.system.cores import Placement
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
