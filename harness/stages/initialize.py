"""Brings each server group up the way production does, once per scenario, in both releases.

The C++ worker does it where it can be built: its loads are truly concurrent. The Python worker's loads queue for the
GIL, which ``torch.jit.load`` holds throughout; the report says which of the two it was.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.domain.artifact import Artifact
from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeResult, ServingProfile
from harness.domain.script import model_of
from harness.planning.scenarios import INITIALIZATIONS, Scenario, copies, in_capture_mode
from harness.runtime import pool
from harness.stages.facts import Effects, Facts, GroupRun, Initialized, Standing, new_profile
from harness.stages.requests import deadline_after

# Each attempt ends with at least one model named; what is left after so many is told as not reached.
MAX_ATTEMPTS = 20


def initialize_groups(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with what became of every model that works alone, beside the others of its group."""
    plan = facts.plan
    work = [
        (scenario, group, members)
        for scenario in scenarios_of(facts)
        for group in sorted(plan.groups)
        if (members := _members(scenario, plan.groups[group], facts))
    ]
    if not work:
        return facts
    profiles = {"new": new_profile(plan), "old": plan.settings.profile}
    effects.progress.stage(f"initialization, {plan.settings.init_threads} threads, {facts.worker} worker", len(work))

    def initialize(item: tuple[Scenario, str, Sequence[str]]) -> tuple[GroupRun, ...]:
        scenario, group, members = item
        runs = tuple(
            bring_up(
                Launcher(scenario=scenario, side=side, profile=profiles[side], facts=facts, effects=effects),
                group,
                members,
            )
            for side in profiles
            if side in effects.environments
        )
        effects.progress.step(f"{scenario.words}: {group}")
        return runs

    runs = [run for pair in pool.each(initialize, work, jobs=plan.settings.jobs) for run in pair]
    return replace(facts, group_runs=tuple(runs), initialized=_paired(runs))


def scenarios_of(facts: Facts) -> tuple[Scenario, ...]:
    """Return the planned initializations that this run's worker can do."""
    planned = (INITIALIZATIONS[name] for name in facts.plan.scenarios if name in INITIALIZATIONS)
    return tuple(scenario for scenario in planned if not scenario.native_only or facts.worker == "libtorch")


def works_alone(name: str, facts: Facts) -> bool:
    """Whether the model loads and answers alone in the new release; else it could only hide its neighbours."""
    return name in facts.alone and facts.alone[name].models[0].outcome is Outcome.COMPLETED


def _members(scenario: Scenario, group: Sequence[str], facts: Facts) -> tuple[str, ...]:
    return tuple(name for name in group if works_alone(name, facts) and takes_part(scenario, name, facts))


def takes_part(scenario: Scenario, name: str, facts: Facts) -> bool:
    """Whether the scenario can say anything about the model."""
    artifact = facts.exports[name].artifact
    return artifact is not None and not (scenario.stateless and artifact.reset)


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """One side, ready to bring up models in one scenario."""

    scenario: Scenario
    side: str
    profile: ServingProfile
    facts: Facts
    effects: Effects

    def round(self, members: Sequence[str], number: int) -> tuple[ProbeResult, ...]:
        """Return the probes of one round: all members, then again without those who hung or crashed."""
        if self.scenario.processes:
            count = threads_of(self.facts)
            repeats = range(number * count, (number + 1) * count)
            return tuple(pool.each(lambda repeat: self.probe(members, repeat), list(repeats), jobs=count))
        remaining = list(members)
        probes: list[ProbeResult] = []
        for attempt in range(MAX_ATTEMPTS):
            probe = self.probe(remaining, number * MAX_ATTEMPTS + attempt)
            probes.append(probe)
            unreached = {model_of(item.model) for item in probe.models if item.outcome is Outcome.NOT_RUN}
            sick = {model_of(item.model) for item in probe.models if _failed(item)}
            if number_of_hung(probe) > 1:
                held_up = self._held_up(probe, number * MAX_ATTEMPTS + attempt)
                probes[-1] = without(probe, held_up)
                unreached, sick = unreached | held_up, sick - held_up
            settled = any(item.outcome is not Outcome.NOT_RUN for item in probe.models)
            remaining = [name for name in remaining if name in unreached and name not in sick]
            if not remaining or not settled:
                break
        return tuple(probes)

    def _held_up(self, probe: ProbeResult, repeat: int) -> frozenset[str]:
        """Return who of several hung models does not hang without the others: it waited for one that does.

        Where none of them hangs by itself, nobody is told apart here: it takes several of them.
        """
        hung = dict.fromkeys(model_of(item.model) for item in probe.models if item.outcome is Outcome.HANG)
        by_itself = {name: _hangs(self.probe([name], repeat)) for name in hung}
        return (
            frozenset(name for name, hangs in by_itself.items() if not hangs)
            if any(by_itself.values())
            else frozenset()
        )

    def probe(
        self,
        members: Sequence[str],
        repeat: int,
        *,
        threads: int | None = None,
        alone: bool = False,
        floor_s: float | None = None,
    ) -> ProbeResult:
        """Return what one process makes of ``members``.

        Args:
            threads: in place of the configured number; ``alone``: one after another, in one thread.
            floor_s: in place of the configured floor of the deadlines.
        """
        scenario = INITIALIZATIONS["sequential"] if alone else self.scenario
        script = in_capture_mode(
            scenario.write(members, threads or threads_of(self.facts)), self.facts.plan.settings.capture_mode
        )
        if alone:  # one after another, but called the way that the scenario calls
            script = replace(script, calls_through=self.scenario.write(members, 1).calls_through)
        names = copies(script)
        profile = self.profile
        if self.scenario.pools is not None:
            intra_op, inter_op = self.scenario.pools
            profile = replace(profile, intra_op_threads=intra_op, inter_op_threads=inter_op)
        baselines = [result for name in members for result in self.facts.baselines[name].results]
        deadlines = self.facts.plan.settings.deadlines
        if floor_s is not None:
            deadlines = replace(deadlines, floor_s=floor_s)
        deadline = deadline_after(deadlines, baselines, contention=len(names))
        artifacts = [replace(_artifact(model_of(name), self.facts), model=name) for name in names]
        return self.effects.runner(
            self.facts.requests.run(
                self.side,
                artifacts,
                deadline,
                profile=profile,
                script=script,
                runtime=self.facts.worker,
                repeat=repeat,
                beside=threads_of(self.facts) - 1 if self.scenario.processes and not alone else 0,
            )
        )


def number_of_hung(probe: ProbeResult) -> int:
    """Return how many models hung in a process, copies counted once."""
    return len({model_of(item.model) for item in probe.models if item.outcome is Outcome.HANG})


def without(probe: ProbeResult, names: Collection[str]) -> ProbeResult:
    """Return the result of a process with ``names``, which were held up by others, as not reached."""
    models = tuple(
        replace(item, outcome=Outcome.NOT_RUN) if model_of(item.model) in names and _failed(item) else item
        for item in probe.models
    )
    return replace(probe, models=models)


def _hangs(probe: ProbeResult) -> bool:
    return any(item.outcome is Outcome.HANG for item in probe.models)


def bring_up(launcher: Launcher, group: str, members: Sequence[str], *, first_round: int = 0) -> GroupRun:
    """Bring ``members`` up in every round."""
    rounds = range(first_round, first_round + launcher.facts.plan.settings.init_rounds)
    return GroupRun(
        scenario=launcher.scenario.name,
        group=group,
        side=launcher.side,
        members=tuple(members),
        rounds=tuple(launcher.round(members, number) for number in rounds),
    )


def initialize_together(launcher: Launcher, names: Sequence[str], *, repeat: int = 0) -> Mapping[str, Initialized]:
    """Return what becomes of ``names`` in one server group; ``repeat`` makes it a fresh attempt.

    What the old release made of them is taken from the run so far.
    """
    run = bring_up(launcher, "", names, first_round=repeat * launcher.facts.plan.settings.init_rounds)
    found = {}
    for name in names:
        known = launcher.facts.initialized.get((name, launcher.scenario.name))
        found[name] = Initialized(new=standing(run, name), old=known.old if known is not None else None)
    return found


def threads_of(facts: Facts) -> int:
    """Return how many threads initialize: as configured, and never one alone."""
    return max(2, facts.plan.settings.init_threads)


def _artifact(name: str, facts: Facts) -> Artifact:
    artifact = facts.exports[name].artifact
    assert artifact is not None
    return artifact


def _failed(result: ModelResult) -> bool:
    return result.outcome not in (Outcome.COMPLETED, Outcome.NOT_RUN)


def _paired(runs: Iterable[GroupRun]) -> dict[tuple[str, str], Initialized]:
    """Return (model, scenario) -> how it came through in the new release, beside the old one."""
    runs = tuple(runs)
    old = {(name, run.scenario): standing(run, name) for run in runs if run.side == "old" for name in run.members}
    return {
        (name, run.scenario): Initialized(new=standing(run, name), old=old.get((name, run.scenario)))
        for run in runs
        if run.side == "new"
        for name in run.members
    }


def standing(run: GroupRun, model: str) -> Standing:
    """Return how ``model`` came through all rounds.

    Its result is its first failure; a model that some round never reached is not called completed.
    """
    failed_rounds = 0
    worst: tuple[ModelResult, ProbeResult] | None = None
    best: tuple[ModelResult, ProbeResult] | None = None
    missed: tuple[ModelResult, ProbeResult] | None = None
    answers: list[tuple[str, str]] = []
    for probes in run.rounds:
        found = [(item, probe) for probe in probes for item in probe.models if model_of(item.model) == model]
        failures = [pair for pair in found if _failed(pair[0])]
        completed = [pair for pair in found if pair[0].outcome is Outcome.COMPLETED]
        failed_rounds += bool(failures)
        worst = worst or next(iter(failures), None)
        best = best or next(iter(completed), None)
        if not failures and not completed:
            missed = missed or next(iter(found), None)
        answers.extend((item.model, probe.directory) for item, probe in completed)
    shown = worst or missed or best
    assert shown is not None, f"{model} is a member of {run.group} and no probe names it"
    result, probe = shown
    return Standing(
        result=replace(result, model=model),
        directory=probe.directory,
        exit_detail=probe.exit_detail,
        evidence=probe.evidence,
        rounds=len(run.rounds),
        failed_rounds=failed_rounds,
        answers=tuple(answers),
        graph=worst_graph(run, model),
    )


def worst_graph(run: GroupRun, model: str) -> Mapping[str, Any] | None:
    """Return what was measured of the model's CUDA graph in the round whose replay was furthest off."""
    graphs = [probe.data[key] for probes in run.rounds for probe in probes if (key := f"graph:{model}") in probe.data]
    return max(graphs, key=_share_off, default=None)


def _share_off(graph: Mapping[str, Any]) -> float:
    difference, scale = float(graph["max_abs_difference"]), float(graph["scale"])
    if math.isnan(difference):
        return math.inf
    return difference / scale if scale > 0 else difference
