"""Hunts a difference down to the operator that makes it: one model, on its artifact alone."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import pipeline
from harness.commands.compat import make_plan, read_report
from harness.commands.options import Options, builder_for, golden_store, read_waivers
from harness.domain.bisection import Answer, Bisection
from harness.domain.fixture import ModelDeclaration
from harness.domain.plan import Deadlines, Plan
from harness.domain.report import RunReport
from harness.errors import ConfigError, GateError, SelectionError
from harness.planning.groups import assign_groups
from harness.planning.selection import find_model, parse_cell_id
from harness.runtime import clock, codec, fixture_files
from harness.runtime.progress import Progress
from harness.runtime.run_dir import RunDir, find_run
from harness.stages.alone import probe_alone
from harness.stages.baseline import probe_baseline
from harness.stages.bisect import bisect as hunt
from harness.stages.compare import compare
from harness.stages.export import export_models
from harness.stages.facts import Stage
from harness.stages.judge import judge_cells
from harness.stages.provision import sides

RESULT = "bisect.json"
# One model alone, of which it is known that something is wrong: a hang is met several times, and need not be waited out
# as long as in a run that looks for one.
FLOOR_S = 10.0
STAGES: Sequence[Stage] = (export_models, probe_baseline, probe_alone, compare, judge_cells)


@dataclass(frozen=True, kw_only=True)
class Hunted:
    """What was found, and the folder of the run."""

    found: Bisection
    folder: Path


def bisect(
    options: Options, progress: Progress, *, model: str | None = None, run_name: str | None = None, cell: str = ""
) -> Hunted:
    """Find whose doing it is that a model does not pass, and write ``bisect.json`` into a run of its own.

    Args:
        model: its name; may be left out where there is only one.
        run_name, cell: a finished run and one of its cells, in place of ``model`` and releases.

    Raises:
        ConfigError: the configuration, a name or a file is wrong, or ``--golden`` leaves no old release to ask.
        SelectionError: no such model, run or cell.
        EnvironmentUnavailable: a release could not be provisioned.
    """
    if options.resume is not None:
        with RunDir.open(options.reports, options.resume) as run_dir:
            plan = run_dir.load_plan()
            if not run_dir.name.endswith("-bisect") or len(plan.models) != 1:
                raise ConfigError(f"{run_dir.name} is no run of bisect", "resume it with compat --resume")
            _refuse_changed(plan)
            return _hunt(plan, run_dir, options, progress)
    plan = _of_cell(options, run_name, cell) if run_name is not None else _of_model(options, model)
    beside = _seen_beside_others(options, run_name, cell) if run_name is not None else None
    (hunted,) = plan.models
    with RunDir.create(options.reports, f"{hunted.name}-bisect", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        if beside is not None:
            return _written(beside, run_dir)
        try:
            return _hunt(plan, run_dir, options, progress)
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
    plan = make_plan(replace(options, scenarios=("alone",), overrides={**options.overrides, "latency": "off"}))
    if name is None and len(plan.models) > 1:
        names = ", ".join(model.name for model in plan.models[:6])
        raise SelectionError("bisect hunts in one model at a time", f"name it with --model; there are: {names}")
    return _alone(plan, plan.models[0] if name is None else find_model(plan.models, name))


def _of_cell(options: Options, run_name: str, cell_id: str) -> Plan:
    plan = RunDir(find_run(options.reports, run_name, with_report=True)).load_plan()
    cell = parse_cell_id(cell_id)
    if plan.old is None:
        raise ConfigError(
            f"{run_name} was judged by golden records", "name the old release: bisect --model --old --new"
        )
    plan = _alone(plan, find_model(plan.models, cell.model))
    _refuse_changed(plan)
    return plan


def _alone(plan: Plan, model: ModelDeclaration) -> Plan:
    settings = plan.settings
    deadlines = settings.deadlines
    if deadlines.floor_s == Deadlines().floor_s:  # nobody has asked for another
        deadlines = replace(deadlines, floor_s=FLOOR_S)
    return replace(
        plan,
        models=(model,),
        canaries=(),
        groups=assign_groups((model,), settings.groups),
        scenarios=("alone",),
        settings=replace(settings, latency=replace(settings.latency, budget="off"), deadlines=deadlines),
    )


def _refuse_changed(plan: Plan) -> None:
    changed = fixture_files.changed_sources(plan.models)
    if changed:
        raise ConfigError(f"{', '.join(changed)} changed since the run", "bisect it anew with --model")


def _seen_beside_others(options: Options, run_name: str, cell_id: str) -> Bisection | None:
    """Return what the run itself says where it fails only beside others, or only in time; None where it fails alone."""
    cell = parse_cell_id(cell_id)
    report = read_report(options, run_name).report
    row = next((row for row in report.judgement.rows if row.model == cell.model), None)
    if row is None or cell.scenario == "alone":
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
