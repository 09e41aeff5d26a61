"""Reduces every initialization that hangs, crashes or raises: which models, how many threads, the old release too?"""

from dataclasses import replace

from harness.domain.attribution import Attribution, Trial
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import ProbeResult
from harness.domain.script import model_of
from harness.domain.search import Answer, Said
from harness.domain.verdict import CellVerdict
from harness.planning.scenarios import INITIALIZATIONS
from harness.policy.attribution import attribution_words
from harness.search.attribution import attribute
from harness.stages.facts import Effects, Facts, GroupRun, new_profile
from harness.stages.launch import REPEATS_OF_A_ROUND, Launcher, threads_of

# Processes per failing server group: enough for 16 models with a failure that shows every time (tests/unit/search).
BUDGET = 80
# That it hangs has been proven already; a repeat only has to be told from a healthy one, which takes milliseconds.
SEARCH_FLOOR_S = 6.0
# Kinds of findings that one run shows by its outcome alone; a wrong answer has its own chain of rules.
SHOWN_BY_OUTCOME = ("hang", "crash", "concurrent_error", "out_of_memory")
UNTESTABLE = frozenset({Outcome.PROTOCOL_ERROR, Outcome.STARVED})
# Where the rounds of the search begin: far from those of the scenario and of the mitigations.
FIRST_REPEAT = 1000 * REPEATS_OF_A_ROUND


def attribute_failures(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with what each failing initialization needs in order to fail, as a line of its red cells."""
    failing = [(run, sick) for run in facts.group_runs if run.side == "new" and (sick := _sick(run, facts))]
    if not failing:
        return facts
    effects.progress.stage("which models, how many threads?", BUDGET * len(failing))
    verdicts = dict(facts.verdicts)
    for run, sick in failing:
        found = _attribute(run, sick, facts, effects)
        for name in sick:
            verdicts[name] = tuple(
                _with_story(cell, found) if cell.scenario == run.scenario else cell for cell in verdicts[name]
            )
    return replace(facts, verdicts=verdicts)


def _sick(run: GroupRun, facts: Facts) -> tuple[str, ...]:
    """Return the members that fail in this scenario, and not in the old release too."""
    return tuple(
        name
        for name in run.members
        for cell in facts.verdicts.get(name, ())
        if cell.scenario == run.scenario
        and cell.status is Status.FAIL
        and any(finding.kind in SHOWN_BY_OUTCOME for finding in cell.findings)
    )


def _attribute(run: GroupRun, sick: tuple[str, ...], facts: Facts, effects: Effects) -> Attribution:
    scenario = INITIALIZATIONS[run.scenario]
    profiles = {"new": new_profile(facts.plan), "old": facts.plan.settings.profile}
    launchers = {
        side: Launcher(scenario=scenario, side=side, profile=profile, facts=facts, effects=effects)
        for side, profile in profiles.items()
        if side in effects.environments
    }
    # Those who hung are named one per attempt: the first probe of the round is the initialization to explain.
    members = tuple(dict.fromkeys(model_of(item.model) for item in run.rounds[0][0].models))

    def oracle(trial: Trial) -> Answer:
        launcher = launchers.get(trial.side)
        if launcher is None:
            return Answer(said=Said.UNTESTABLE)
        probe = launcher.probe(
            trial.models,
            FIRST_REPEAT + trial.repeat,
            threads=trial.threads,
            alone=not trial.concurrent,
            floor_s=min(SEARCH_FLOOR_S, facts.plan.settings.deadlines.floor_s),
        )
        return _answer(probe)

    def progress(trial: Trial, answer: Answer) -> None:
        where = "one after another" if not trial.concurrent else f"{trial.threads} threads"
        effects.progress.step(f"{trial.side}: {len(trial.models)} models, {where}: {answer.said.value}")

    return attribute(members, threads_of(facts), oracle, budget=BUDGET, suspects=sick, progress=progress)


def _answer(probe: ProbeResult) -> Answer:
    outcomes = [item.outcome for item in probe.models]
    unclear = next((outcome for outcome in (probe.outcome, *outcomes) if outcome in UNTESTABLE), None)
    if unclear is not None:
        return Answer(said=Said.UNTESTABLE, outcome=unclear.value)
    failed: list[Outcome] = [outcome for outcome in outcomes if outcome not in (Outcome.COMPLETED, Outcome.NOT_RUN)]
    if failed or probe.outcome is not Outcome.COMPLETED:
        return Answer(said=Said.FAILS, outcome=(failed or [probe.outcome])[0].value)
    return Answer(said=Said.PASSES)


def _with_story(cell: CellVerdict, found: Attribution) -> CellVerdict:
    line = ("needs", attribution_words(found))
    return replace(
        cell,
        findings=tuple(
            replace(finding, story=(line, *finding.story)) if finding.kind in SHOWN_BY_OUTCOME else finding
            for finding in cell.findings
        ),
    )
