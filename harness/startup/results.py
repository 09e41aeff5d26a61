"""Folds the rounds of an initialization into one result per model."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.domain.outcome import UNCLEAR, Outcome
from harness.domain.probe import ModelResult, ProbeResult, model_of
from harness.probing.facts import Failing, GroupRun, Initialized, ScenarioResult
from harness.scenarios import INITIALIZATIONS
from harness.startup.measures import busy_s, wall_s
from harness.worker import wire

BRINGING_UP = (wire.LOAD, wire.PREPARE, wire.CALL)

ModelInProbe = tuple[ModelResult, ProbeResult]


def paired(runs: Iterable[GroupRun]) -> dict[tuple[str, str], Initialized]:
    """Return (model, scenario) -> its result in the new release, and in the old one."""
    runs = tuple(runs)
    old = {
        (name, run.scenario): scenario_result(run, name) for run in runs if run.side == "old" for name in run.members
    }
    return {
        (name, run.scenario): Initialized(new=scenario_result(run, name), old=old.get((name, run.scenario)))
        for run in runs
        if run.side == "new"
        for name in run.members
    }


def scenario_result(run: GroupRun, model: str) -> ScenarioResult:
    """Return the result of ``model`` over all rounds.

    Its result is its first failure that says something about the release; a model that some round never reached is not
    called completed.
    """
    failures: dict[tuple[Outcome, str], Failing] = {}
    completed: ModelInProbe | None = None
    missed: ModelInProbe | None = None
    answers: list[tuple[str, str]] = []
    judged = failed_rounds = 0
    for probes in run.rounds:
        found = [(item, probe) for probe in probes for item in probe.models if model_of(item.model) == model]
        failed = _one_of_each(pair for pair in found if pair[0].failed)
        done = [pair for pair in found if pair[0].outcome is Outcome.COMPLETED]
        answers += [(result.model, probe.directory) for result, probe in done]
        says_failed = any(outcome not in UNCLEAR for outcome, _ in failed)
        failed_rounds += says_failed
        judged += says_failed if failed else bool(done)
        for way, (result, probe) in failed.items():
            known = failures.get(way) or _failing(result, probe, model)
            failures[way] = replace(known, rounds=known.rounds + 1)
        completed = completed or next(iter(done), None)
        if not failed and not done:
            missed = missed or next(iter(found), None)
    failed_ways = sorted(failures.values(), key=lambda failing: failing.result.outcome in UNCLEAR)
    fine = missed or completed
    assert failed_ways or fine is not None, f"{model} is a member of {run.group} and no probe names it"
    shown = failed_ways[0] if failed_ways else _failing(*fine, model) if fine is not None else None
    assert shown is not None
    return ScenarioResult(
        result=shown.result,
        directory=shown.directory,
        exit_detail=shown.exit_detail,
        evidence=shown.evidence,
        rounds=judged,
        failed_rounds=failed_rounds,
        failures=tuple(failed_ways),
        answers=tuple(answers),
        graph=max(_marks(run, "graph", model), key=_share_off, default=None),
        served_otherwise=next(iter(_marks(run, "served_otherwise", model)), None),
        threads=threads_seen(run),
    )


def undisturbed(run: GroupRun) -> list[ProbeResult]:
    """Return the processes that brought the whole group up; rounds within a process count where it came to its end."""
    within = INITIALIZATIONS[run.scenario].rounds
    whole = [probe for probes in run.rounds for probe in probes[: 1 if within == 1 else None]]
    return [probe for probe in whole if is_undisturbed(probe)]


def is_undisturbed(probe: ProbeResult) -> bool:
    """Whether a process, and every model in it, came to its end."""
    return probe.outcome is Outcome.COMPLETED and all(item.outcome is Outcome.COMPLETED for item in probe.models)


def init_s(run: GroupRun) -> float | None:
    """Return the seconds from the first load to the last warm-up call, median over rounds; None without a whole one."""
    return median([spent for probe in undisturbed(run) if (spent := wall_s(probe.spans, BRINGING_UP)) is not None])


def median(values: Sequence[float]) -> float | None:
    """Return the middle value, of two the larger; None without any."""
    return sorted(values)[len(values) // 2] if values else None


def own_s(run: GroupRun, model: str) -> float:
    """Return what one model took of getting ready, median over the rounds that nothing disturbed."""
    return median([busy_s(probe.spans, BRINGING_UP, model) for probe in undisturbed(run)]) or 0.0


def threads_seen(run: GroupRun) -> int:
    """Return how many threads the widest process of a run had."""
    return 1 + max((span.thread for probe in run.probes for span in probe.spans), default=0)


def _failing(result: ModelResult, probe: ProbeResult, model: str) -> Failing:
    return Failing(
        result=replace(result, model=model),
        directory=probe.directory,
        exit_detail=probe.exit_detail,
        evidence=probe.evidence,
    )


def _one_of_each(found: Iterable[ModelInProbe]) -> dict[tuple[Outcome, str], ModelInProbe]:
    ways: dict[tuple[Outcome, str], ModelInProbe] = {}
    for result, probe in found:
        ways.setdefault(result.way, (result, probe))
    return ways


def _marks(run: GroupRun, name: str, model: str) -> list[Mapping[str, Any]]:
    return [
        data
        for probe in run.probes
        for mark, data in probe.data.items()
        if mark.partition(":")[0] == name and model_of(mark.partition(":")[2]) == model
    ]


def _share_off(graph: Mapping[str, Any]) -> float:
    difference, scale = float(graph["max_abs_difference"]), float(graph["scale"])
    if math.isnan(difference):
        return math.inf
    return difference / scale if scale > 0 else difference
