"""Hunts a difference down to the operator that makes it: one model, on its artifact alone."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import pipeline
from harness.commands.asked_cell import AskedCell, keep_told, read_asked, refuse_changed, save_asked
from harness.commands.compat import make_plan, read_report
from harness.commands.options import Options, builder_for, golden_store, read_waivers
from harness.domain.bisection import Answer, Bisection
from harness.domain.fixture import ModelDeclaration
from harness.domain.plan import Deadlines, Plan
from harness.domain.report import RunReport
from harness.errors import ConfigError, GateError, SelectionError
from harness.planning.config import with_budget
from harness.planning.groups import assign_groups
from harness.planning.selection import find_model
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

RESULT = "bisect.json"
# One model alone, of which it is known that something is wrong: a hang is met several times, and need not be waited out
# as long as in a run that looks for one.
FLOOR_S = 10.0
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
        with RunDir.open(options.reports, options.resume) as run_dir:
            plan = run_dir.load_plan()
            if not run_dir.name.endswith("-bisect") or len(plan.models) != 1:
                raise ConfigError(f"{run_dir.name} is no run of bisect", "resume it with compat --resume")
            refuse_changed(plan.models, "bisect")
            return _told(_hunt(plan, run_dir, options, progress), read_asked(run_dir), progress)
    plan = _of_cell(asked) if asked is not None else _of_model(options, model)
    beside = _seen_beside_others(options, asked) if asked is not None else None
    (hunted,) = plan.models
    with RunDir.create(options.reports, f"{hunted.name}-bisect", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        if beside is not None:
            return _written(beside, run_dir)
        save_asked(run_dir, asked)
        try:
            return _told(_hunt(plan, run_dir, options, progress), asked, progress)
        except KeyboardInterrupt:
            where = "" if options.out is None else f" --out {shlex.quote(options.out)}"
            progress.note(f"interrupted; finished probes are kept, go on with: bisect --resume {run_dir.name}{where}")
            raise
        except GateError:
            run_dir.discard_if_empty()
            raise


def _hunt(plan: Plan, run_dir: RunDir, options: Options, progress: Progress) -> Hunted:
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
        facts = pipeline.through(STAGES, first, effects)
        found = hunt(plan.models[0].name, facts, effects)
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
        names = ", ".join(model.name for model in plan.models[:6])
        raise SelectionError("bisect hunts in one model at a time", f"name it with --model; there are: {names}")
    return _alone(plan, plan.models[0] if name is None else find_model(plan.models, name), timed=timed)


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
    return _alone(asked.plan, model, timed=asked.cell.scenario == "latency")


def _alone(plan: Plan, model: ModelDeclaration, *, timed: bool) -> Plan:
    """Return the plan for one model; ``timed``: whether its time is compared too, in a duel."""
    settings = plan.settings
    latency = settings.latency
    if not timed:
        latency = replace(latency, budget="off")
    elif latency.budget == "off":  # its run was told to measure nothing
        latency = with_budget(latency, TIMED)
    deadlines = settings.deadlines
    if deadlines.floor_s == Deadlines().floor_s:  # nobody has asked for another
        deadlines = replace(deadlines, floor_s=FLOOR_S)
    return replace(
        plan,
        models=(model,),
        canaries=(),
        groups=assign_groups((model,), settings.groups),
        scenarios=("alone", "latency") if timed else ("alone",),
        settings=replace(settings, latency=latency, deadlines=deadlines),
    )


def _seen_beside_others(options: Options, asked: AskedCell) -> Bisection | None:
    """Return what the run itself says where it fails only beside others; None where it fails alone or is slow."""
    cell = asked.cell
    report = read_report(options, str(asked.folder)).report
    row = next((row for row in report.judgement.rows if row.model == cell.model), None)
    if row is None or cell.scenario in ("alone", "latency"):
        return None
    found = next((item for item in row.cells if item.cell == cell.id), None)
    if found is None:
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {', '.join(one.cell for one in row.cells)}")
    story = tuple(f"{label}: {text}" for finding in found.findings for label, text in finding.story[:3])
    cured = tuple(f"{tried.name} cures it" for tried in row.mitigations if tried.cures)
    return Bisection(
        model=cell.model,
        old=_name(report, "old"),
        new=_name(report, "new"),
        answer=Answer.UNDECIDED,
        symptom=tuple(finding.message for finding in found.findings),
        notes=(
            f"a cell of {cell.scenario}: nodes are looked for only where a call of the model alone shows the symptom",
            *story,
            *(cured or ("none of the switches that the run tried cures it",)),
        ),
    )


def _name(report: RunReport, side: str) -> str:
    found = report.old if side == "old" else report.new
    return found.name
