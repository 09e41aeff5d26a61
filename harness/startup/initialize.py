"""Initializes each server group the way production does, once per scenario, in both releases.

The C++ worker does it where it can be built: its loads are truly concurrent. The Python worker's loads queue for the
GIL, which ``torch.jit.load`` holds throughout; the report says which of the two it was.
"""

from collections.abc import Mapping, Sequence

from harness.domain.outcome import Outcome
from harness.probing.facts import Effects, Exported, GroupRun, Initialized, Probed, Started, WithWorker, new_profile
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
        effects.progress.red(name for name in members if any(_failed_new(run, name) for run in runs))
        effects.progress.step(f"{scenario.words}: {group}")
        return runs

    runs = [run for pair in pool.each(initialize, work, jobs=plan.settings.jobs) for run in pair]
    return Started(**WithWorker.known(facts), group_runs=tuple(runs), initialized=paired(runs))


def scenarios_of(facts: WithWorker) -> tuple[Scenario, ...]:
    """Return the planned initializations that this run's worker can do."""
    planned = (INITIALIZATIONS[name] for name in facts.plan.scenarios if name in INITIALIZATIONS)
    return tuple(scenario for scenario in planned if facts.can_do(native_only=scenario.native_only))


def _failed_new(run: GroupRun, name: str) -> bool:
    return run.side == "new" and scenario_result(run, name).result.failed


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
