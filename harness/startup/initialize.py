"""Initializes each server group the way production does, once per scenario.

The old release is asked only where the new one fails or answers otherwise than alone, and for its times.

The C++ worker does it where it can be built: its loads are truly concurrent. The Python worker's loads queue for the
GIL, which ``torch.jit.load`` holds throughout; the report says which of the two it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.correctness.outputs import same_answers
from harness.domain.outcome import Outcome
from harness.probing.facts import (
    Compared,
    Effects,
    Exported,
    GroupRun,
    Initialized,
    Probed,
    ScenarioResult,
    Started,
    StartupTimed,
    WithWorker,
    new_profile,
)
from harness.probing.verification import legible_outputs
from harness.scenarios import INITIALIZATIONS, Scenario
from harness.startup.launch import Launcher
from harness.startup.results import paired, scenario_result
from harness.system import pool


def initialize_groups(facts: WithWorker, effects: Effects) -> Started:
    """Return the facts with what became of every model that works alone, beside the others of its group."""
    plan = facts.plan
    work = [
        (scenario, group, members)
        for scenario in scenarios_of(facts)
        for group in sorted(plan.groups)
        if (members := _members(scenario, plan.groups[group], facts))
    ]
    if not work:
        return Started(**WithWorker.known(facts), group_runs=(), initialized={})
    effects.progress.stage(f"initialization, {plan.settings.init_threads} threads, {facts.worker} worker", len(work))

    def initialize(item: tuple[Scenario, str, Sequence[str]]) -> tuple[GroupRun, ...]:
        scenario, group, members = item
        new = bring_up(_launcher(scenario, "new", facts, effects), group, members)
        found = {name: scenario_result(new, name) for name in members}
        effects.progress.red(name for name, result in found.items() if result.result.failed)
        runs = [new]
        alone = {name: facts.alone[name].directory for name in members}
        asks = any(probe.memory for probe in new.probes)  # whether it grows is held against the old release
        asks = asks or any(_otherwise_than_alone(name, found[name], alone[name]) for name in members)
        if asks and "old" in effects.environments:
            runs.append(bring_up(_launcher(scenario, "old", facts, effects), group, members))
        effects.progress.step(f"{scenario.words}: {group}")
        return tuple(runs)

    runs = [run for pair in pool.each(initialize, work, jobs=plan.settings.jobs) for run in pair]
    return Started(**WithWorker.known(facts), group_runs=tuple(runs), initialized=paired(runs))


def time_initialization(facts: Compared, effects: Effects) -> StartupTimed:
    """Return the facts with how the old release brings up the groups that it was not asked about: for its times.

    That nothing failed in the new one is known by then, so this answers nothing but "how long did it take before".
    """
    plan = facts.plan
    known = {(run.scenario, run.group) for run in facts.group_runs if run.side == "old"}
    wanted = plan.is_timed and "old" in effects.environments
    work = [run for run in facts.group_runs if wanted and (run.scenario, run.group) not in known]
    if not work:
        return StartupTimed(**Compared.known(facts))
    effects.progress.stage(f"times of initialization in {effects.environments['old'].name}", len(work))

    def initialize(run: GroupRun) -> GroupRun:
        old = bring_up(_launcher(INITIALIZATIONS[run.scenario], "old", facts, effects), run.group, run.members)
        effects.progress.step(f"{INITIALIZATIONS[run.scenario].words}: {run.group}")
        return old

    olds = pool.each(initialize, work, jobs=plan.settings.jobs)
    runs = (*facts.group_runs, *olds)
    came = paired(runs)
    initialized = {key: replace(item, old=came[key].old) for key, item in facts.initialized.items()}
    return StartupTimed(**{**Compared.known(facts), "group_runs": runs, "initialized": initialized})


def _launcher(scenario: Scenario, side: str, facts: WithWorker, effects: Effects) -> Launcher:
    profile = new_profile(facts.plan) if side == "new" else facts.plan.settings.profile
    return Launcher(scenario=scenario, side=side, profile=profile, facts=facts, effects=effects)


def _otherwise_than_alone(name: str, found: ScenarioResult, directory: str) -> bool:
    """Whether a model failed beside others, or answered other bits: then the old release is asked whether it does."""
    if found.failures or found.served_otherwise is not None or found.graph is not None:
        return True
    alone = legible_outputs(directory, name)
    return any(not same_answers(alone, legible_outputs(beside, copy)) for copy, beside in found.answers)


def scenarios_of(facts: WithWorker) -> tuple[Scenario, ...]:
    """Return the planned initializations that this run's worker can do."""
    planned = (INITIALIZATIONS[name] for name in facts.plan.scenarios if name in INITIALIZATIONS)
    return tuple(scenario for scenario in planned if facts.can_do(native_only=scenario.native_only))


def works_alone(name: str, facts: Probed) -> bool:
    """Whether the model loads and answers alone in the new release; else it could only hide its neighbours."""
    completed = name in facts.alone and facts.alone[name].models[0].outcome is Outcome.COMPLETED
    return completed and bool(facts.artifact(name).input_sets)


def _members(scenario: Scenario, group: Sequence[str], facts: Probed) -> tuple[str, ...]:
    return tuple(name for name in group if works_alone(name, facts) and takes_part(scenario, name, facts))


def takes_part(scenario: Scenario, name: str, facts: Exported) -> bool:
    """Whether the scenario can say anything about the model."""
    artifact = facts.exports[name].artifact
    return artifact is not None and not (scenario.stateless and artifact.reset)


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


def initialize_together(
    launcher: Launcher, names: Sequence[str], facts: Started, *, repeat: int = 0
) -> Mapping[str, Initialized]:
    """Return what becomes of ``names`` in one server group; ``repeat`` makes it a fresh attempt.

    What the old release made of them is taken from the run so far.
    """
    run = bring_up(launcher, "", names, first_round=repeat * launcher.facts.plan.settings.init_rounds)
    found = {}
    for name in names:
        known = facts.initialized.get((name, launcher.scenario.name))
        found[name] = Initialized(new=scenario_result(run, name), old=known.old if known is not None else None)
    return found
