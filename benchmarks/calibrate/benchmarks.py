"""Benchmarks whose truth is known: one release on both sides, the slower artifact against its twin."""

import contextlib
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.calibrate.batches import Batch, Entry
from benchmarks.calibrate.corpus import CORPUS, NEW
from benchmarks.calibrate.rivals import blocks_say
from harness.artifacts.fixture_folders import read_fixtures
from harness.checks.latency.benchmark import contest
from harness.checks.latency.common_slowdown import common_slowdown
from harness.config.schema import BUDGET_DEFAULTS
from harness.core.machine import MachineState
from harness.core.measurement import CommonSlowdown, LatencyMeasurement, RatioEstimate
from harness.core.models import Artifact
from harness.core.plan import Cell, LatencyBudget
from harness.probing.export import export_models
from harness.probing.facts import Answered, Effects, Exported, new_profile
from harness.verdict.latency import judge_latency
from tests.integration.servers import planned, provisioned

COLUMNS = (
    *("batch", "budget", "what", "size", "base", "status", "findings", "suspected"),
    *("ratio", "low", "high", "fresh_ratio", "same_ratio", "rounds", "fresh_rounds", "spent_s", "waited"),
    *("pair_ratio", "pair_p", "all_ratio", "all_p"),  # what other rules make of the blocks: rivals.BLOCK_RULES
)

LIMIT = 0.03
COMMON_COLUMNS = ("batch", "models", "ratio", "low", "high", "control", "size")
STATE_COLUMNS = ("batch", "rounds", "others_median", "others_most", "stolen_median", "stolen_most")


def budget_named(name: str) -> LatencyBudget:
    """Return the default budget of that name, whatever this project is configured to, with the limit of calibration.

    Tighter than the default, so that a slowdown by 5 % has to be found; and without a floor, for planted calls of any
    length.
    """
    return LatencyBudget(budget=name, limit=LIMIT, floor_s=0.0, **BUDGET_DEFAULTS.get(name, {}))  # type: ignore[arg-type]


@contextlib.contextmanager
def exported(folder: Path, wanted: Collection[str] = ()) -> Iterator[tuple[Answered, Effects, dict[str, Artifact]]]:
    """Two sides of one release, with the artifacts of the seeded models and of the zoo, or of the wanted, by name."""
    overrides = {"old": NEW, "new": NEW, "allow_same_torch": True}
    plan = planned(folder, "fixtures/zoo", scenarios=("latency",), overrides=overrides)
    seeded = tuple(item for item in read_fixtures(CORPUS) if Path(item.source).stem == "latency")
    models = tuple(item for item in (*seeded, *plan.models) if not wanted or item.name in wanted)
    plan = replace(plan, models=models, groups={})
    with provisioned(folder, plan) as (ready, effects):
        facts = Answered(**Exported.known(export_models(ready, effects)), baselines={})
        artifacts = {name: export.artifact for name, export in facts.exports.items() if export.artifact is not None}
        missing = [item.name for item in models if item.name.startswith("seeded") and item.name not in artifacts]
        if missing:
            raise RuntimeError(f"not exported: {', '.join(missing)}")
        yield facts, effects, artifacts


def run_batch(
    batch: Batch,
    artifacts: Mapping[str, Artifact],
    facts: Answered,
    effects: Effects,
    machine_states: list[MachineState] | None = None,
    commons: list[list[Any]] | None = None,
    *,
    extras: bool = True,
) -> list[list[Any]]:
    """Return a row, in the order of ``COLUMNS``, for every benchmark of a batch.

    Args:
        machine_states: what the machine was like in each round is appended.
        commons: what the benchmarks of one size of slowdown, 0 among them, were said to share is appended.
        extras: whether more than the steady call is measured.
    """
    budget = budget_named(batch.budget)
    contestants = {entry.name: (artifacts[entry.old], artifacts[entry.new]) for entry in batch.entries}
    profile = new_profile(facts.plan)
    label = f"batch {batch.number}"
    found = contest(
        contestants,
        facts,
        effects,
        profile=profile,
        label=label,
        budget=budget,
        machine_states=machine_states,
        extras=extras,
    )
    if commons is not None:
        for size in sorted({entry.size for entry in batch.entries}):
            alike = {entry.name: found[entry.name] for entry in batch.entries if entry.size == size}
            commons += common_rows(batch.number, size, common_slowdown(alike))
    return [row(batch, entry, found[entry.name], budget, facts) for entry in batch.entries]


def common_rows(number: int, size: int, common: CommonSlowdown | None) -> list[list[Any]]:
    """Return a row, in the order of ``COMMON_COLUMNS``; none where nothing was estimated."""
    if common is None:
        return []
    ratios = (rounded(common.ratio, name) for name in ("ratio", "low", "high"))
    return [[number, len(common.models), *ratios, rounded(common.control, "ratio"), size]]


def row(
    batch: Batch, entry: Entry, measurement: LatencyMeasurement, budget: LatencyBudget, facts: Answered
) -> list[Any]:
    """Return what one benchmark came to; ratios to four digits, no block by itself."""
    verdict = judge_latency(entry.name, measurement, budget, facts.plan.settings.policy)
    steady, fresh, same = measurement.steady, measurement.confirmation, measurement.same_against_same
    searched = steady.pairs if steady is not None else 0
    return [
        batch.number,
        batch.budget,
        entry.what,
        entry.size,
        entry.base,
        str(verdict.status),
        "+".join(finding.kind for finding in verdict.findings),
        int(fresh is not None),
        *(rounded(steady, name) for name in ("ratio", "low", "high")),
        rounded(fresh, "ratio"),
        rounded(same, "ratio"),
        searched,
        fresh.pairs if fresh is not None else 0,
        round(measurement.spent_s, 2),
        round(measurement.waited, 3),
        *blocks_say(measurement.samples),
    ]


def rounded(estimate: RatioEstimate | None, name: str) -> float | None:
    """Return one number of an estimate with four decimals; None without an estimate or a finite number."""
    value = None if estimate is None else float(getattr(estimate, name))
    return None if value is None or value in (0.0, float("inf")) else round(value, 4)


def state_row(number: int, machine_states: Sequence[MachineState]) -> list[float]:
    """Return batch, rounds, median and largest share of the benchmark's cores that others used, and that was stolen."""
    others, stolen = (
        [machine_state.others for machine_state in machine_states],
        [machine_state.stolen for machine_state in machine_states],
    )
    shares = (
        (statistics.median(others), max(others), statistics.median(stolen), max(stolen))
        if machine_states
        else (0.0,) * 4
    )
    return [number, len(machine_states), *(round(share, 3) for share in shares)]
