"""Hunts a difference down to the operator that makes it: one model, on its artifact alone."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import pipeline
from harness.commands.asked_cell import (
    AskedCell,
    keep_told,
    read_asked,
    refuse_beside_resume,
    refuse_changed,
    save_asked,
)
from harness.commands.bisect_beside import STAGES as SERVER_STAGES
from harness.commands.bisect_beside import said_by_the_run, scenario_of, with_server_group
from harness.commands.compat import make_plan
from harness.commands.options import Options, builder_for, golden_store, read_waivers
from harness.domain.bisection import Bisection
from harness.domain.fixture import ModelDeclaration
from harness.domain.plan import Deadlines, Plan
from harness.errors import ConfigError, GateError, SelectionError
from harness.planning.config import with_budget
from harness.planning.groups import assign_groups
from harness.planning.scenarios import INITIALIZATIONS
from harness.planning.selection import find_model, listed
from harness.policy.explaining import by_bisection
from harness.runtime import clock, codec
from harness.runtime.progress import Progress
from harness.runtime.run_dir import RunDir
from harness.stages.alone import probe_alone
from harness.stages.baseline import probe_baseline
from harness.stages.bisect import bisect as hunt
from harness.stages.compare import compare
from harness.stages.duel import duel
from harness.stages.export import export_models
from harness.stages.facts import Stage
from harness.stages.judge import judge_cells
from harness.stages.provision import sides
from harness.stages.requests import impatient
from harness.stages.seen_again import alone_again, well_rounds

RESULT = "bisect.json"
FLOOR = "deadlines.floor_s"
STAGES: Sequence[Stage] = (export_models, probe_baseline, probe_alone, compare, duel, judge_cells)
TIMED = "quick"


@dataclass(frozen=True, kw_only=True)
class Hunted:
    """What was found, and the folder of the run."""

    found: Bisection
    folder: Path


def bisect(options: Options, progress: Progress, *, model: str | None = None, asked: AskedCell | None = None) -> Hunted:
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
        with RunDir.open(options.reports, options.resume) as run_dir:
            plan = run_dir.load_plan()
            if not run_dir.is_of("bisect"):
                raise ConfigError(f"{run_dir.name} is no run of bisect", "resume it with the command that began it")
            refuse_changed(plan.models, "bisect")
            asked = read_asked(run_dir)
            return _told(_hunt(plan, run_dir, options, progress, failed_before=asked is not None), asked, progress)
    plan = _of_cell(asked) if asked is not None else _of_model(options, model)
    said = said_by_the_run(options, asked) if asked is not None else None
    with RunDir.create(options.reports, f"{plan.models[0].name}-bisect", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        if said is not None:
            return _written(said, run_dir)
        save_asked(run_dir, asked)
        try:
            return _told(_hunt(plan, run_dir, options, progress, failed_before=asked is not None), asked, progress)
        except KeyboardInterrupt:
            where = "" if options.out is None else f" --out {shlex.quote(options.out)}"
            progress.note(f"interrupted; finished probes are kept, go on with: bisect --resume {run_dir.name}{where}")
            raise
        except GateError:
            run_dir.discard_if_empty()
            raise


def _hunt(plan: Plan, run_dir: RunDir, options: Options, progress: Progress, *, failed_before: bool) -> Hunted:
    ready = pipeline.provisioned(
        plan,
        sides(plan),
        run_dir,
        builder=builder_for(options, progress),
        progress=progress,
        golden=golden_store(options, plan.golden),
        waivers=read_waivers(options.project),
        today=clock.today(),
    )
    with ready as (effects, first):
        model, scenario = plan.models[0].name, scenario_of(plan)
        facts = pipeline.through(SERVER_STAGES if scenario else STAGES, first, effects)
        passed = well_rounds(model, scenario, facts)
        if failed_before and "latency" not in plan.scenarios and not scenario:
            facts, passed = alone_again(model, facts, effects)
        if failed_before and "latency" in plan.scenarios:
            scenario = "latency"  # of that cell, whatever the model's answers are: they may be waived
        found = hunt(model, facts, effects, scenario=scenario, passed=passed)
        progress.finish()
    return _written(found, run_dir)


def _written(found: Bisection, run_dir: RunDir) -> Hunted:
    run_dir.write(RESULT, codec.pretty(found))
    return Hunted(found=found, folder=run_dir.path)


def _of_model(options: Options, name: str | None) -> Plan:
    if options.golden is not None:
        raise ConfigError("bisect asks the old release itself", "leave --golden out")
    budget = options.overrides.get("latency", "off")
    timed = budget != "off"
    scenarios = ("alone", "latency") if timed else ("alone",)
    plan = make_plan(replace(options, scenarios=scenarios, overrides={**options.overrides, "latency": budget}))
    if name is None and len(plan.models) > 1:
        hint = f"name it with --model; there are: {listed(plan.models)}"
        raise SelectionError("bisect hunts in one model at a time", hint)
    model = plan.models[0] if name is None else find_model(plan.models, name)
    return _alone(plan, model, timed=timed, waits=options.sets(FLOOR))


def _told(hunted: Hunted, asked: AskedCell | None, progress: Progress) -> Hunted:
    """Keep in the run that was asked about what was found, and return it."""
    if asked is not None:
        folder = os.path.relpath(hunted.folder, asked.folder)
        keep_told(asked, by_bisection(asked.cell.id, hunted.found, folder=folder), progress)
    return hunted


def _of_cell(asked: AskedCell) -> Plan:
    if asked.plan.old is None:
        raise ConfigError(
            f"{asked.folder.name} was judged by golden records", "name the old release: bisect --model --old --new"
        )
    model = asked.model
    refuse_changed((model,), "bisect")
    plan = _alone(asked.plan, model, timed=asked.cell.scenario == "latency")
    return with_server_group(plan, asked) if asked.cell.scenario in INITIALIZATIONS else plan


def _alone(plan: Plan, model: ModelDeclaration, *, timed: bool, waits: bool = False) -> Plan:
    """Return the plan for one model.

    Args:
        timed: whether its time is compared too, in a duel.
        waits: whether the deadline was asked for, and is kept whatever it is.
    """
    settings = plan.settings
    latency = settings.latency
    if not timed:
        latency = replace(latency, budget="off")
    elif latency.budget == "off":  # its run was told to measure nothing
        latency = with_budget(latency, TIMED)
    deadlines = settings.deadlines
    if not waits and deadlines.floor_s == Deadlines().floor_s:  # nobody has asked for it
        deadlines = impatient(deadlines)
    return replace(
        plan,
        models=(model,),
        canaries=(),
        groups=assign_groups((model,), settings.groups),
        scenarios=("alone", "latency") if timed else ("alone",),
        settings=replace(settings, latency=latency, deadlines=deadlines),
    )
