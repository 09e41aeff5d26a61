"""Searches for what a server must set so that one red cell is well again in the new release, with prices."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.apps.rerun.own_run import (
    FLOOR,
    TIMED,
    Searched,
    one_model,
    own_run,
    refuse_golden,
    refuse_golden_run,
    searching,
    timed,
)
from harness.apps.rerun.selected import SelectedCell, keep_explanation, refuse_changed, verified_rewrites
from harness.apps.upgrade import pipeline
from harness.apps.upgrade.plan import make_plan
from harness.checks.latency.benchmark import benchmark
from harness.config.load import with_budget
from harness.core.diagnosis import MitigationResult, Rewritten, Symptom
from harness.core.errors import ConfigError
from harness.core.models import ModelDeclaration
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.probing.facts import Attributed, Compared, Effects, Provisioned, Timed
from harness.probing.provision import sides
from harness.project import Project, in_command, shown_path
from harness.search.bisect.cell import bisect
from harness.search.explained_cells import by_mitigations
from harness.search.mitigation.search import MitigationSearch, search
from harness.search.reproduce.program import reproduce_whole
from harness.serving.scenarios import INITIALIZATIONS, TIMING
from harness.store import codec
from harness.verdict.mitigation import answer_of

RESULT = "mitigate.json"
SUBJECT = "subject.json"
# What a reproducer looks for; None: what the model did alone.
REPRODUCED: Mapping[str, Symptom | None] = {"alone": None, "latency": Symptom.LATENCY}
# For settings and rewrites of a slow cell, once its benchmark is over; what has begun by then comes to its end.
SLOW_S = 300.0
NOT_REDUCED = "This is the whole model: bisect looks for the few nodes that show it."


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is searched for; ``pairs``: also of settings where one alone mitigates; ``anyway``: as of ``search``."""

    model: str
    scenario: str
    pairs: bool = False
    anyway: bool = False


def mitigate(
    project: Project,
    *,
    model: str | None = None,
    selected: SelectedCell | None = None,
    scenario: str = "alone",
    pairs: bool = False,
    anyway: bool = False,
) -> Searched[MitigationResult]:
    """Find the settings that mitigate one cell of a model, and write ``mitigate.json`` into a run of its own.

    ``model`` may be left out where there is only one; ``selected``: a cell of a finished run, in place of ``model`` and
    releases, whose report tells of it from now on; ``scenario``: of the cell of ``model``; ``pairs``: whether pairs of
    settings are tried also where one mitigates; ``anyway``: whether the cell may be one in which both releases fail.
    """
    subject: Subject | None = None

    def planned() -> tuple[Plan, str]:
        nonlocal subject
        if selected is not None:
            refuse_golden_run(selected, "mitigate")
            plan, declared, where = selected.plan, selected.model, selected.cell.scenario
        else:
            plan, where = _of_model(project, scenario), scenario
            declared = one_model(plan, model, what="mitigate takes")
        subject = Subject(model=declared.name, scenario=where, pairs=pairs, anyway=anyway)
        return _about(plan, subject, declared, waits=project.sets(FLOOR)), declared.name

    more = [
        *(["--pairs"] if pairs else []),
        *(["--anyway"] if anyway else []),
        *(["--scenario"] if scenario != "alone" else []),
    ]
    ready = own_run("mitigate", without_latency(project), model=model, selected=selected, planned=planned, more=more)
    with ready as (run_dir, begun, cell):
        if subject is None:
            subject = codec.read_json(run_dir.path / SUBJECT, Subject)
        else:
            run_dir.write(SUBJECT, codec.canonical(subject))
        plan = _priced(begun, subject, project)
        with pipeline.provisioned(plan, sides(plan), run_dir, project) as (effects, first):
            known = verified_rewrites(cell) if cell is not None else ()
            result = _answer(subject, _judged(subject, first, effects), effects, known)
            if result.price_note and plan.settings.latency.budget == "off" and not subject.anyway:
                again = project.command("mitigate", "--resume", in_command(run_dir.path), "--latency", TIMED)
                inherited = (
                    ", as the run of the cell" if cell is not None and "latency" not in project.overrides else ""
                )
                result = replace(result, price_note=f"{result.price_note}{inherited}", measure=again)
            project.progress.finish()
        run_dir.write(RESULT, codec.pretty(result))
        if cell is not None:
            path = os.path.relpath(run_dir.path / RESULT, cell.folder)
            keep_explanation(cell, by_mitigations(cell.cell.id, result, path=path), project.progress)
        return Searched(found=result, folder=run_dir.path)


def without_latency(project: Project) -> Project:
    """Return the options without the one that a cell or a resumed search does not have of its run."""
    overrides = {name: value for name, value in project.overrides.items() if name != "latency"}
    return replace(project, overrides=overrides)


def _priced(plan: Plan, subject: Subject, project: Project) -> Plan:
    """Return the plan with the ``--latency`` that was typed, beside a cell or ``--resume`` as well."""
    budget = project.overrides.get("latency")
    if subject.scenario == TIMING and budget == "off":
        raise ConfigError("a slow cell and --latency off: nobody would measure it", "leave --latency out")
    return replace(plan, settings=replace(plan.settings, latency=with_budget(plan.settings.latency, budget)))


def _judged(subject: Subject, first: Provisioned, effects: Effects) -> Attributed:
    """Return the verdicts before the search; of the server group only the model is timed, where it is to be faster."""

    def benchmark_of_model(facts: Compared, effects: Effects) -> Timed:
        asked = {subject.model} if subject.scenario == TIMING else set[str]()
        alone = {name: probe for name, probe in facts.alone.items() if name in asked}
        return replace(benchmark(replace(facts, alone=alone), effects), alone=facts.alone)

    return pipeline.judge(first, effects, time=benchmark_of_model)


def _answer(subject: Subject, facts: Attributed, effects: Effects, known: tuple[Rewritten, ...]) -> MitigationResult:
    if subject.scenario == TIMING:
        effects = replace(effects, end_ns=effects.end_within(SLOW_S))
    cells = {cell.scenario: cell for cell in facts.verdicts[subject.model]}
    cell = cells.get(subject.scenario)
    searched = search(
        subject.model, facts, effects, scenario=subject.scenario, pairs=subject.pairs, anyway=subject.anyway
    )
    rewrites = known or _rewritten(subject, searched, facts, effects)
    answer, why = answer_of(cell, searched.mitigations, searched=searched.cell is not None, rewrites=rewrites)
    elsewhere = [
        f"it fails in the scenario {other.scenario} as well: mitigate --scenario {other.scenario}"
        for other in cells.values()
        if other.status == "FAIL" and other is not cell
    ]
    scenario = INITIALIZATIONS.get(subject.scenario)
    by_whom = facts.worker_notes if scenario is not None else ()
    return MitigationResult(
        model=subject.model,
        old=effects.environments["old"].name,
        new=effects.environments["new"].name,
        scenario=subject.scenario,
        words=scenario.words if scenario is not None else subject.scenario,
        answer=answer,
        symptom=tuple(finding.message for finding in cell.findings) if searched.cell is not None and cell else (),
        mitigations=searched.mitigations,
        rewrites=rewrites,
        price_note=searched.price_note,
        ended=searched.ended,
        notes=(
            *((why,) if why else ()),
            *searched.notes,
            *by_whom,
            *elsewhere,
            *_reproduced(subject, searched, facts, effects),
        ),
    )


def _rewritten(
    subject: Subject, searched: MitigationSearch, facts: Attributed, effects: Effects
) -> tuple[Rewritten, ...]:
    """Return the rewrites of the guilty operators that were tried; none where a setting helps, or nothing is red."""
    if (
        searched.cell is None
        or searched.cell.status is Status.SAME_FAIL
        or subject.scenario not in REPRODUCED
        or any(tried.mitigates for tried in searched.mitigations)
    ):
        return ()
    bisected = bisect(subject.model, facts, effects, reproduce=False, mitigations=False, scenario=subject.scenario)
    return bisected.rewrites


def _reproduced(subject: Subject, searched: MitigationSearch, facts: Attributed, effects: Effects) -> Sequence[str]:
    """Make a reproducer where one process and one model show it; return its place, and how it shows the mitigations."""
    if searched.cell is None:
        return ()
    if subject.scenario not in REPRODUCED:
        return ("no reproducer: one is made of what a model shows by itself",)
    effects.progress.stage("reproducers", 1)
    made = reproduce_whole(
        subject.model,
        facts,
        effects,
        symptom=REPRODUCED[subject.scenario],
        mitigations=searched.mitigations,
        why=NOT_REDUCED,
    )
    if not made.folder:
        return (f"no reproducer: {made.note}",)
    mitigated = (
        "; its issue.md names the options that show the mitigations"
        if any(tried.mitigates for tried in searched.mitigations)
        else ""
    )
    where = shown_path(effects.run_dir.path / made.folder)
    return (f"reproducer {where}/reproduce.py, in {effects.environments['new'].name}: {made.new}{mitigated}",)


def _of_model(project: Project, scenario: str) -> Plan:
    refuse_golden(project, "mitigate")
    if scenario == TIMING and project.overrides.get("latency") == "off":
        raise ConfigError("--scenario latency and --latency off: nobody would measure it", "leave --latency out")
    return make_plan(replace(project, scenarios=("alone", scenario)))


def _about(plan: Plan, subject: Subject, model: ModelDeclaration, *, waits: bool = False) -> Plan:
    """Return the plan for one model and its server group, which nothing may break; ``waits``: as of ``searching``."""
    group, members = next((group, names) for group, names in plan.groups.items() if subject.model in names)
    models = tuple(model if item.name == model.name else item for item in plan.models if item.name in members)
    refuse_changed(models, "mitigate")
    settings = searching(plan.settings, waits=waits)
    latency = timed(settings.latency) if subject.scenario == TIMING else settings.latency
    return replace(
        plan,
        models=models,
        planted_defects=(),
        groups={group: members},
        scenarios=("alone", *([subject.scenario] if subject.scenario in INITIALIZATIONS else [])),
        settings=replace(settings, latency=latency, rollback="off"),
    )
