"""How often the rules of the benchmark err, on rounds that are drawn and not measured: the numbers of ADR 0021.

The rules are the gate's own. A round's logarithm of new/old is normal; in some simulations one process in ten is off
by 3.4 % for its whole life, which is more than was measured (docs/evidence.md#processes).
"""

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate

from benchmarks.calibrate.benchmarks import budget_named
from harness.checks.latency.looks import level_per_look
from harness.checks.latency.statistics import interval
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.verdict.latency import Next, affordable, judge_latency, next_step

TRUTHS = (1.0, 1.03, 1.05, 1.10)
DEVIATIONS = (0.005, 0.01, 0.02, 0.03)
ROUND_S = (0.6, 3.0)  # a model of a millisecond per call, and one of a hundred
ODD_SHARE, ODD_LOG = 0.1, 0.034
BELOW = {"new": 1.0, "old": -0.5, "control": -0.5}


@dataclass(frozen=True)
class World:
    """What is true of a simulated benchmark; ``round_s`` is what a round of the model costs."""

    truth: float
    deviation: float
    odd: bool
    round_s: float


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table, and return 0."""
    parser = argparse.ArgumentParser(prog="nox -s calibrate -- simulated")
    parser.add_argument("--benchmarks", type=int, default=1500, help="per row (default: %(default)s)")
    given = parser.parse_args(list(arguments))
    chance = random.Random(21)
    rows = []
    for name in ("quick", "thorough"):
        for round_s in ROUND_S:
            for odd in (False, True):
                for deviation in DEVIATIONS:
                    worlds = [World(truth, deviation, odd, round_s) for truth in TRUTHS]
                    shares = [failed(world, budget_named(name), given.benchmarks, chance) for world in worlds]
                    rows.append([name, round_s, f"{deviation:.1%}", "yes" if odd else "no", *shares])
    heads = [
        "budget",
        "round, s",
        "sd of a round",
        "odd processes",
        *(f"fails at +{truth - 1:.0%}" for truth in TRUTHS),
    ]
    print(tabulate(rows, headers=heads, floatfmt=".3f"))
    return 0


def failed(world: World, budget: LatencyBudget, benchmarks: int, chance: random.Random) -> float:
    """Return the share of benchmarks that end with FAIL."""
    verdicts = [simulated_status(world, budget, chance) for _ in range(benchmarks)]
    return sum(status is Status.FAIL for status in verdicts) / benchmarks


def simulated_status(world: World, budget: LatencyBudget, chance: random.Random) -> Status:
    """Return the verdict on one benchmark."""
    budget = affordable(budget, world.round_s)
    logs: list[float] = []
    fresh: list[float] = []
    step = Next.SEARCH
    while True:
        (fresh if step is Next.CONFIRM else logs).append(drawn(world, chance))
        level = level_per_look(len(budget.looks))
        measurement = LatencyMeasurement(
            model="m", samples=(), steady=interval(logs, level=level), confirmation=interval(fresh, level=level)
        )
        step = next_step(measurement, budget, rounds=len(logs), fresh=len(fresh))
        if step is Next.DONE:
            return judge_latency("m", measurement, budget, PolicySettings()).status


def drawn(world: World, chance: random.Random) -> float:
    """Return the logarithm that one round would give."""
    odd = sum(weight * chance.choice((-ODD_LOG, ODD_LOG)) for weight in BELOW.values() if chance.random() < ODD_SHARE)
    return math.log(world.truth) + chance.gauss(0.0, world.deviation) + (odd if world.odd else 0.0)
