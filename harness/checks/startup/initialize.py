"""Initializes each server group the way production does, once per scenario.

The old release is asked only where the new one fails or answers otherwise than alone, and for its times.

The C++ worker does it where it can be built: its loads are truly concurrent. The Python worker's loads queue for the
GIL, which ``torch.jit.load`` holds throughout; the report says which of the two it was. The rounds of an initialization
become one result per model.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.artifacts.tensors.outputs import Outputs, same_answers
from harness.checks.latency.machine import OTHERS_LIMIT
from harness.checks.startup.larger_inputs import larger_inputs
from harness.checks.startup.launch import Launcher, expected_s
from harness.checks.startup.readiness import init_s, slow_starts
from harness.config.policy import model_policy
from harness.core.findings import Severity
from harness.core.models import ArtifactKind
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.plan import INITIALIZATION_FLOOR_S
from harness.core.probe import ModelResult, ProbeResult, model_of
from harness.core.quantities import INITIALIZATION
from harness.machine import pool
from harness.machine.load import share_of_others
from harness.probing.facts import (
    Compared,
    Effects,
    Failing,
    GroupRun,
    Initialized,
    NotBegun,
    Probed,
    ScenarioResult,
    Started,
    StartupTimed,
    WithWorker,
)
from harness.probing.verification import legible_outputs
from harness.serving.scenarios import INITIALIZATIONS, Scenario
from harness.worker import wire

# With the round that seemed slow each side has three then at most, of which the median counts.
FURTHER_ROUNDS = 2
# Seconds for all further rounds together.
FURTHER_S = 30.0
# Far from the rounds of searches, which must not be given these as their own.
FIRST_FURTHER_ROUND = 1000
# It has given all of its answers before.
EXIT_CRASH = (Outcome.CRASH, wire.EXIT)


def initialize_groups(facts: WithWorker, effects: Effects) -> Started:
    plan = facts.plan
    work = groups_to_bring_up(facts)
    if not work:
        return Started(**WithWorker.known(facts), group_runs=(), initialized={})
    not_begun: list[NotBegun] = []
    effects.progress.stage(f"initialization, {plan.settings.init_threads} threads, {facts.worker} worker", len(work))

    def initialize(item: tuple[Scenario, str, Sequence[str]]) -> tuple[GroupRun, ...]:
        scenario, group, members = item
        needed_s = expected_s(scenario, members, facts)
        if effects.left_s < needed_s:
            not_begun.append(NotBegun(scenario=scenario.name, group=group, expected_s=needed_s))
            return ()
        new = bring_up(Launcher(scenario=scenario, side="new", facts=facts, effects=effects), group, members)
        results = {name: scenario_result(new, name) for name in members}
        effects.progress.red(name for name, result in results.items() if result.result.failed)
        runs = [new]
        alone = {name: facts.served_part(name, legible_outputs(facts.alone[name].directory, name)) for name in members}
        asks = any(probe.memory for probe in new.probes)  # whether it grows is held against the old release
        asks = asks or any(_otherwise_than_alone(results[name], alone[name]) for name in members)
        if asks and "old" in effects.environments:
            runs.append(bring_up(Launcher(scenario=scenario, side="old", facts=facts, effects=effects), group, members))
        effects.progress.step(f"{scenario.words}: {group}")
        return tuple(runs)

    runs = [run for pair in pool.each(initialize, work, jobs=plan.settings.jobs) for run in pair]
    return Started(
        **WithWorker.known(facts), group_runs=tuple(runs), initialized=paired(runs), not_begun=tuple(not_begun)
    )


def groups_to_bring_up(facts: WithWorker) -> list[tuple[Scenario, str, tuple[str, ...]]]:
    """Return (scenario, server group, its members that take part) of all that is planned and can be done here."""
    groups = facts.plan.groups
    return [
        (scenario, group, members)
        for scenario in scenarios_of(facts)
        for group in sorted(groups)
        if (members := _members(scenario, groups[group], facts))
    ]


def time_initialization(
    facts: Compared, effects: Effects, *, others: Callable[[], float] = share_of_others
) -> StartupTimed:
    """Return the facts with how the old release brings up the groups that it was not asked about: for its times.

    That nothing failed in the new one is known by then, so this answers nothing but "how long did it take before".
    Nobody asks that where all of it takes less than what a slower start must take longer. Where a group takes longer
    than it may, both releases bring it up again before anybody is warned. ``others``: the share of the machine that
    others use now.
    """
    timed = _measured_again(_with_old_times(facts, effects), effects, others)
    return StartupTimed(**Compared.known(timed))


def _with_old_times(facts: Compared, effects: Effects) -> Compared:
    plan = facts.plan
    known = {(run.scenario, run.group) for run in facts.group_runs if run.side == "old"}
    wanted = plan.is_timed and "old" in effects.environments
    work = [
        run
        for run in facts.group_runs
        if wanted
        and (run.scenario, run.group) not in known
        and not INITIALIZATIONS[run.scenario].variant_of
        and (init_s(run) or math.inf) >= INITIALIZATION_FLOOR_S
        and expected_s(INITIALIZATIONS[run.scenario], run.members, facts) <= effects.left_s
    ]
    if not work:
        return facts
    effects.progress.stage(f"times of initialization in {effects.environments['old'].name}", len(work))

    def initialize(run: GroupRun) -> GroupRun:
        old = bring_up(
            Launcher(scenario=INITIALIZATIONS[run.scenario], side="old", facts=facts, effects=effects),
            run.group,
            run.members,
        )
        effects.progress.step(f"{INITIALIZATIONS[run.scenario].words}: {run.group}")
        return old

    olds = pool.each(initialize, work, jobs=plan.settings.jobs)
    return _with_runs(facts, (*facts.group_runs, *olds))


def _measured_again(facts: Compared, effects: Effects, others: Callable[[], float]) -> Compared:
    """Return the facts with further rounds of the groups that seem slow: both releases in turn, nothing beside them.

    The rounds before ran beside other probes, one side after the other: where a machine is busy for a while, that alone
    made a ratio of 1.35 of one release against itself. Most are not slow any more after one further round. Where others
    use the machine now, or the time for it is used up, the times of a group are left out, unless a policy goes by them.
    """
    runs = {(run.side, run.scenario, run.group): run for run in facts.group_runs}
    left_s = FURTHER_S
    for number in range(FIRST_FURTHER_ROUND, FIRST_FURTHER_ROUND + FURTHER_ROUNDS):
        slow = sorted(slow_starts(facts).items(), key=lambda item: item[1].size or math.inf, reverse=True)
        if not slow:
            break
        effects.progress.stage("initialization that seems slower, again", len(slow))
        for (model, name), finding in slow:
            scenario, group = INITIALIZATIONS[name], finding.detail["group"]
            pair = [runs[side, name, group] for side in ("old", "new")]
            launchers = [Launcher(scenario=scenario, side=run.side, facts=facts, effects=effects) for run in pair]
            why = ""
            if not _decides(model, facts) and not launchers[0].was_begun(pair[0].members, number):
                needed_s, share = sum(init_s(run) or 0.0 for run in pair), others()
                if share > OTHERS_LIMIT:
                    why = f"other programs used {100 * share:.0f} % of the cores"
                elif needed_s > left_s:
                    why = f"all such groups have {FURTHER_S:g} s"
                else:
                    left_s -= needed_s
            for launcher, run in zip(launchers, pair, strict=True):
                if not why:
                    run = replace(run, rounds=(*run.rounds, launcher.round(run.members, number)))  # noqa: PLW2901
                elif number == FIRST_FURTHER_ROUND:  # else it is slower by now in rounds that nothing disturbed
                    run = replace(run, why_untimed=why)  # noqa: PLW2901
                runs[run.side, name, group] = run
            effects.progress.step(f"{scenario.words}: {group}")
        facts = _with_runs(facts, tuple(runs.values()))
    return facts


def _decides(model: str, facts: Compared) -> bool:
    """Whether a policy has more than a warning for a slower start of the group with this model."""
    settings = model_policy(facts.plan, model).settings
    severity = settings.severity.get("initialization_time", "")
    return INITIALIZATION in settings.limits or severity in (Severity.FAIL, Severity.INCONCLUSIVE, Severity.NAMED)


def _with_runs(facts: Compared, runs: tuple[GroupRun, ...]) -> Compared:
    results = paired(runs)
    initialized = {
        key: replace(item, new=results[key].new, old=results[key].old) for key, item in facts.initialized.items()
    }
    return replace(facts, group_runs=runs, initialized=initialized)


def _otherwise_than_alone(result: ScenarioResult, alone: Outputs) -> bool:
    """Whether a model failed beside others, or answered other bits: then the old release is asked whether it does."""
    if result.failures or result.served_otherwise is not None or result.graph is not None:
        return True
    return any(not same_answers(alone, legible_outputs(beside, copy)) for copy, beside in result.answers)


def scenarios_of(facts: WithWorker) -> tuple[Scenario, ...]:
    """Return the planned initializations that this run's worker can do, each once."""
    planned = (INITIALIZATIONS[name] for name in facts.plan.scenarios if name in INITIALIZATIONS)
    able = [scenario for scenario in planned if facts.can_do(native_only=scenario.native_only)]
    return tuple(scenario for scenario in able if not _is_repetition(scenario, facts))


def _is_repetition(scenario: Scenario, facts: WithWorker) -> bool:
    """Whether nothing but the runtime distinguishes it from the scenario it is a variant of, and Python does both."""
    if facts.worker != "python" or scenario.variant_of not in facts.plan.scenarios:
        return False
    return not scenario.write(("",), 2).keeps


def works_alone(name: str, facts: Probed) -> bool:
    """Whether the model answers alone in the new release, all that is asked or what the old release answers too."""
    completed = name in facts.alone and facts.alone[name].models[0].outcome is Outcome.COMPLETED
    return (completed and bool(facts.artifact(name).input_sets)) or facts.served(name) is not None


def _members(scenario: Scenario, group: Sequence[str], facts: WithWorker) -> tuple[str, ...]:
    return tuple(name for name in group if works_alone(name, facts) and takes_part(scenario, name, facts))


def takes_part(scenario: Scenario, name: str, facts: WithWorker) -> bool:
    artifact = facts.in_a_server(name) if facts.exports[name].artifact is not None else None
    if artifact is None or (scenario.python_only and name not in facts.for_python):
        return False
    if scenario.native_only and artifact.kind is ArtifactKind.PROGRAM:
        return False
    if scenario.larger_inputs and larger_inputs(artifact) is None:
        return False
    return not (scenario.stateless and artifact.reset)


def bring_up(launcher: Launcher, group: str, members: Sequence[str], *, first_round: int = 0) -> GroupRun:
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
    """Return what becomes of ``names`` in one server group, the old side from the run so far; ``repeat``: anew."""
    run = bring_up(launcher, "", names, first_round=repeat * launcher.facts.plan.settings.init_rounds)
    initialized = {}
    for name in names:
        known = facts.initialized.get((name, launcher.scenario.name))
        initialized[name] = Initialized(new=scenario_result(run, name), old=known.old if known is not None else None)
    return initialized


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
    """Return the first telling failure of ``model``, over all rounds; one that a round never reached is incomplete."""
    failures: dict[tuple[Outcome, str], Failing] = {}
    completed: ModelInProbe | None = None
    missed: ModelInProbe | None = None
    answers: list[tuple[str, str]] = []
    judged = failed_rounds = 0
    for probes in run.rounds:
        of_model = [(item, probe) for probe in probes for item in probe.models if model_of(item.model) == model]
        failed = _one_of_each(pair for pair in of_model if pair[0].failed)
        done = [pair for pair in of_model if pair[0].outcome is Outcome.COMPLETED]
        answered = [pair for pair in of_model if pair[0].outcome is Outcome.COMPLETED or pair[0].way == EXIT_CRASH]
        answers += [(result.model, probe.directory) for result, probe in answered]
        says_failed = any(outcome not in UNCLEAR for outcome, _ in failed)
        failed_rounds += says_failed
        judged += says_failed if failed else bool(done)
        for way, (result, probe) in failed.items():
            known = failures.get(way) or _failing(result, probe, model)
            failures[way] = replace(known, rounds=known.rounds + 1)
        completed = completed or next(iter(done), None)
        if not failed and not done:
            missed = missed or next(iter(of_model), None)
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


def threads_seen(run: GroupRun) -> int:
    if INITIALIZATIONS[run.scenario].forks:
        return 1
    return 1 + max((span.thread for probe in run.probes for span in probe.spans), default=0)


def _failing(result: ModelResult, probe: ProbeResult, model: str) -> Failing:
    return Failing(
        result=replace(result, model=model),
        directory=probe.directory,
        exit_detail=probe.exit_detail,
        evidence=probe.evidence,
    )


def _one_of_each(pairs: Iterable[ModelInProbe]) -> dict[tuple[Outcome, str], ModelInProbe]:
    ways: dict[tuple[Outcome, str], ModelInProbe] = {}
    for result, probe in pairs:
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
