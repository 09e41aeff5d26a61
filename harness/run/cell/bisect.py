"""Searches a difference down to the operator that makes it: one model, on its artifact alone."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from harness.diagnosis.bisect.cell import bisect as search
from harness.diagnosis.bisect.seen_again import alone_again, initialize_until_seen, well_rounds
from harness.diagnosis.explanation import by_bisection
from harness.domain.diagnosis import Bisection
from harness.domain.models import ModelDeclaration
from harness.domain.plan import Plan
from harness.run import pipeline
from harness.run.cell.asked import (
    SelectedCell,
    keep_explanation,
    read_selected_cell,
    refuse_beside_resume,
    refuse_changed,
    save_selected_cell,
)
from harness.run.cell.beside import said_by_the_run, scenario_of, with_server_group
from harness.run.cell.own_run import (
    FLOOR,
    begun,
    gone_on_with,
    one_model,
    provisioned,
    refuse_golden,
    refuse_golden_run,
    searching,
    timed,
)
from harness.run.options import Options
from harness.run.plan import make_plan
from harness.scenarios import INITIALIZATIONS
from harness.startup.groups import assign_groups
from harness.store import codec
from harness.store.run_folder import RunDir
from harness.system.progress import Progress

RESULT = "bisect.json"


@dataclass(frozen=True, kw_only=True)
class BisectedCell:
    """What was found, and the folder of the run."""

    found: Bisection
    folder: Path


def bisect(
    options: Options, progress: Progress, *, model: str | None = None, asked: SelectedCell | None = None
) -> BisectedCell:
    """Find whose doing it is that a model does not pass, and write ``bisect.json`` into a run of its own.

    Args:
        model: its name; may be left out where there is only one.
        asked: a cell of a finished run, in place of ``model`` and releases; that run's report tells of it from now on.

    Raises:
        ConfigError: the configuration, a name or a file is wrong, or ``--golden`` leaves no old release to ask.
        SelectionError: no such model, or the run has no such cell.
        EnvironmentUnavailable: a release could not be provisioned.
    """
    if options.resume is not None:
        refuse_beside_resume(options, "bisect", model=model, asked=asked)
        with gone_on_with("bisect", options) as (run_dir, plan):
            asked = read_selected_cell(run_dir)
            return _told(_search(plan, run_dir, options, progress, failed_before=asked is not None), asked, progress)
    plan = _of_cell(asked) if asked is not None else _of_model(options, model)
    said = said_by_the_run(options, asked) if asked is not None else None
    with begun(plan, "bisect", options, progress, model=plan.models[0].name) as run_dir:
        if said is not None:
            return _written(said, run_dir)
        save_selected_cell(run_dir, asked)
        return _told(_search(plan, run_dir, options, progress, failed_before=asked is not None), asked, progress)


def _search(plan: Plan, run_dir: RunDir, options: Options, progress: Progress, *, failed_before: bool) -> BisectedCell:
    with provisioned(plan, run_dir, options, progress) as (effects, first):
        model, scenario = plan.models[0].name, scenario_of(plan)
        facts = pipeline.judge(first, effects, initialize=initialize_until_seen)
        passed = well_rounds(model, scenario, facts)
        if failed_before and not plan.is_timed and not scenario:
            facts, passed = alone_again(model, facts, effects)
        if failed_before and plan.is_timed:
            scenario = "latency"  # of that cell, whatever the model's answers are: they may be waived
        found = search(model, facts, effects, scenario=scenario, passed=passed)
        progress.finish()
    return _written(found, run_dir)


def _written(found: Bisection, run_dir: RunDir) -> BisectedCell:
    run_dir.write(RESULT, codec.pretty(found))
    return BisectedCell(found=found, folder=run_dir.path)


def _of_model(options: Options, name: str | None) -> Plan:
    refuse_golden(options, "bisect")
    budget = options.overrides.get("latency", "off")
    plan = make_plan(replace(options, scenarios=("alone",), overrides={**options.overrides, "latency": budget}))
    model = one_model(plan, name, what="bisect searches in")
    return _alone(plan, model, is_timed=budget != "off", waits=options.sets(FLOOR))


def _told(searched: BisectedCell, asked: SelectedCell | None, progress: Progress) -> BisectedCell:
    """Keep in the run that was asked about what was found, and return it."""
    if asked is not None:
        folder = os.path.relpath(searched.folder, asked.folder)
        keep_explanation(asked, by_bisection(asked.cell.id, searched.found, folder=folder), progress)
    return searched


def _of_cell(asked: SelectedCell) -> Plan:
    refuse_golden_run(asked, "bisect")
    model = asked.model
    refuse_changed((model,), "bisect")
    plan = _alone(asked.plan, model, is_timed=asked.cell.scenario == "latency")
    return with_server_group(plan, asked) if asked.cell.scenario in INITIALIZATIONS else plan


def _alone(plan: Plan, model: ModelDeclaration, *, is_timed: bool, waits: bool = False) -> Plan:
    """Return the plan for one model.

    Args:
        is_timed: whether its time is compared too, in a benchmark.
        waits: whether the deadline was asked for, and is kept whatever it is.
    """
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
