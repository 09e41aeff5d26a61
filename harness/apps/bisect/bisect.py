"""Searches a difference down to the operator that makes it: one model, on its artifact alone or as in a server."""

import os
from dataclasses import replace

from harness.apps.report.files import read_report
from harness.apps.rerun.own_run import (
    FLOOR,
    Searched,
    one_model,
    own_run,
    refuse_golden,
    refuse_golden_run,
    searching,
    timed,
)
from harness.apps.rerun.selected import BISECTION, SelectedCell, keep_explanation, refuse_changed
from harness.apps.upgrade import pipeline
from harness.apps.upgrade.plan import make_plan
from harness.checks.startup.groups import assign_groups
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.core.errors import SelectionError
from harness.core.models import ModelDeclaration
from harness.core.plan import Plan
from harness.probing.provision import sides
from harness.project import Project
from harness.search.bisect.cell import RED, SHOWN_AS, WELL
from harness.search.bisect.cell import bisect as search
from harness.search.bisect.recheck import alone_again, initialize_until_seen, well_rounds
from harness.search.explained_cells import by_bisection
from harness.serving.scenarios import INITIALIZATIONS
from harness.store import codec
from harness.store.run_folder import RunDir

RESULT = BISECTION
IN_VAIN = "none of the switches that the run tried mitigates it"


def bisect(
    project: Project, *, model: str | None = None, selected: SelectedCell | None = None, price: bool = True
) -> Searched[Bisection]:
    """Find whose doing it is that a model does not pass, and write ``bisect.json`` into a run of its own.

    ``model``: its name; may be left out where there is only one; ``selected``: a cell of a finished run, in place of
    ``model`` and releases; that run's report tells of it from now on; ``price``: whether to time what fixes it.
    """
    in_report: Bisection | None = None

    def planned() -> tuple[Plan, str]:
        nonlocal in_report
        plan = _of_cell(selected) if selected is not None else _of_model(project, model)
        in_report = kept_bisection(project, selected) if selected is not None else None
        return plan, plan.models[0].name

    with own_run("bisect", project, model=model, selected=selected, planned=planned) as (run_dir, plan, cell):
        bisection = in_report or _search(plan, run_dir, project, failed_before=cell is not None, price=price)
        run_dir.write(RESULT, codec.pretty(bisection))
        if cell is not None and in_report is None:
            folder = os.path.relpath(run_dir.path, cell.folder)
            keep_explanation(cell, by_bisection(cell.cell.id, bisection, folder=folder), project.progress)
        return Searched(found=bisection, folder=run_dir.path)


def _search(plan: Plan, run_dir: RunDir, project: Project, *, failed_before: bool, price: bool) -> Bisection:
    with pipeline.provisioned(plan, sides(plan), run_dir, project) as (unpriced, first):
        effects = replace(unpriced, prices_fixes=price)
        model, scenario = plan.models[0].name, scenario_of(plan)
        facts = pipeline.judge(first, effects, initialize=initialize_until_seen)
        passed = well_rounds(model, scenario, facts)
        if failed_before and not plan.is_timed and not scenario:
            facts, passed = alone_again(model, facts, effects)
        if failed_before and plan.is_timed:
            scenario = "latency"  # of that cell, whatever the model's answers are: they may be waived
        bisection = search(model, facts, effects, scenario=scenario, passed=passed)
        project.progress.finish()
    return bisection


def _of_model(project: Project, name: str | None) -> Plan:
    refuse_golden(project, "bisect")
    budget = project.overrides.get("latency", "off")
    plan = make_plan(replace(project, scenarios=("alone",), overrides={**project.overrides, "latency": budget}))
    model = one_model(plan, name, what="bisect searches in")
    return _alone(plan, model, is_timed=budget != "off", waits=project.sets(FLOOR))


def _of_cell(selected: SelectedCell) -> Plan:
    refuse_golden_run(selected, "bisect")
    model = selected.model
    refuse_changed((model,), "bisect")
    plan = _alone(selected.plan, model, is_timed=selected.cell.scenario == "latency")
    return with_server_group(plan, selected) if selected.cell.scenario in INITIALIZATIONS else plan


def _alone(plan: Plan, model: ModelDeclaration, *, is_timed: bool, waits: bool = False) -> Plan:
    """Return the plan for one model; ``waits``: the deadline was asked for and is kept whatever it is."""
    settings = searching(plan.settings, waits=waits)
    latency = timed(settings.latency) if is_timed else replace(settings.latency, budget="off")
    return replace(
        plan,
        models=(model,),
        planted_defects=(),
        groups=assign_groups((model,), settings.groups),
        scenarios=("alone",),
        settings=replace(settings, latency=latency),
    )


def with_server_group(alone: Plan, selected: SelectedCell) -> Plan:
    (model,) = alone.models
    group, members = next((group, names) for group, names in selected.plan.groups.items() if model.name in names)
    others = tuple(item for item in selected.plan.models if item.name in members and item.name != model.name)
    refuse_changed(others, "bisect")
    settings = replace(alone.settings, rollback="off")
    return replace(
        alone,
        models=(model, *others),
        groups={group: members},
        scenarios=("alone", selected.cell.scenario),
        settings=settings,
    )


def scenario_of(plan: Plan) -> str:
    """Return the initialization that a plan of ``bisect`` is about; empty where it is about the model alone."""
    return next((name for name in plan.scenarios if name in INITIALIZATIONS), "")


def kept_bisection(project: Project, selected: SelectedCell) -> Bisection | None:
    """Return what the run itself says of a cell of an initialization; None where nodes can be looked for."""
    cell = selected.cell
    if cell.scenario not in INITIALIZATIONS:
        return None
    report = read_report(project, str(selected.folder)).report
    row = next((row for row in report.judgement.rows if row.model == cell.model), None)
    in_row = next((item for item in row.cells if item.cell == cell.id), None) if row is not None else None
    if row is None or in_row is None:
        has = ", ".join(row_cell.cell for row_cell in row.cells) if row is not None else "none of that model"
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {has}")
    if in_row.status in RED and any(kind in SHOWN_AS for kind in in_row.kinds):
        return None
    story = tuple(f"{label}: {text}" for finding in in_row.findings for label, text in finding.story[:3])
    mitigated = tuple(f"{tried.name} mitigates it" for tried in row.mitigations if tried.mitigates) or (IN_VAIN,)
    what = INITIALIZATIONS[cell.scenario].words
    shown = ", ".join(kind.replace("_", " ") for kind in in_row.kinds)
    why = f"{what}: {shown}: nodes are looked for where it hangs, crashes or raises"
    if in_row.status in WELL:
        why, mitigated = f"{what}: the run says {in_row.status}", ()
    return Bisection(
        model=cell.model,
        old=report.old.name,
        new=report.new.name,
        answer=BisectAnswer.NOTHING if in_row.status in WELL else BisectAnswer.UNDECIDED,
        symptom=tuple(finding.message for finding in in_row.findings),
        notes=(why, *story, *mitigated),
    )
