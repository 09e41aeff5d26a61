"""Cells of a finished run, repeated: one, those of a cause, all that are red, or all that are undecided."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.artifacts import fixture_folders
from harness.config.load import with_budget
from harness.config.selection import find_model, parse_cell_id
from harness.core.errors import SelectionError
from harness.core.outcome import Status
from harness.core.plan import Cell, Plan
from harness.core.text import counted
from harness.core.verdict import CellVerdict
from harness.machine import clock
from harness.machine.progress import Progress
from harness.run.cell.selected import as_kept, planned_like
from harness.run.execute import execute
from harness.run.files import Finished, read_report
from harness.run.gate import gate, with_cause
from harness.run.options import Options, read_policy, settings_of
from harness.serving.scenarios import INITIALIZATIONS, TIMING
from harness.store.run_folder import RunDir, find_run, require_own
from harness.verdict.commands import is_red

RED, UNDECIDED = "red", "undecided"


def rerun(options: Options, run_name: str, cell_id: str, progress: Progress) -> Finished:
    """Repeat one cell of a finished run, with fresh probes, in a folder below that run.

    Raises:
        SelectionError: there is no such run, model or scenario.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    cell = parse_cell_id(cell_id)
    plan = RunDir(folder).load_plan()
    find_model(plan.models, cell.model)
    _refuse_another_cell(cell, plan)
    return _repeat(options, folder, plan, [cell], title=cell.model, progress=progress)


def rerun_all(options: Options, run_name: str, which: str, progress: Progress, *, cause: bool = False) -> Finished:
    """Repeat several cells of a finished run in one new run below it, which has one report.

    What is red or undecided is what the policy and the waivers that are given make of the run; a cause may also be one
    that ``gate`` names, of today's.

    Args:
        which: ``RED`` or ``UNDECIDED``; or the id of a cause, where ``cause``.

    Raises:
        SelectionError: there is no such run or cause, or no such cell in it.
    """
    judged = bool(options.policy or options.assignments)
    finished = gate(options, run_name) if judged else read_report(options, run_name)
    of_all = False
    if cause:
        finished, found = with_cause(finished, options, which, run_name)
        timed = [
            cell.cell
            for cell in finished.report.judgement.cells
            if cell.model in found.models and cell.scenario == TIMING
        ]
        of_all = not found.cells  # what all models share is in no single cell
        ids: Sequence[str] = found.cells or timed
    else:
        ids = [cell.cell for cell in finished.report.judgement.cells if _is(cell, which)]
    report, folder = finished.report, finished.folder
    if not ids:
        raise SelectionError(f"{run_name} has no {which} cell", "nothing to repeat")
    open_ = {cell.cell for cell in report.judgement.cells if cell.status is Status.INCONCLUSIVE}
    if set(ids) <= open_:  # the same time again would leave them as undecided
        options = replace(options, overrides={"latency": "thorough", **options.overrides})
    plan = RunDir(folder).load_plan()
    cells = [parse_cell_id(id_) for id_ in ids]
    return _repeat(options, folder, plan, cells, title=which, of_all=of_all, progress=progress)


def _is(cell: CellVerdict, which: str) -> bool:
    """Whether a cell is one of those asked for; an undecided one need not decide the run."""
    if which == UNDECIDED:
        return cell.status is Status.INCONCLUSIVE
    return is_red(cell) and cell.status is not Status.INCONCLUSIVE


def _repeat(
    options: Options,
    folder: Path,
    plan: Plan,
    cells: Sequence[Cell],
    *,
    title: str,
    of_all: bool = False,
    progress: Progress,
) -> Finished:
    """Run a plan of the models and scenarios of these cells, in a folder below that of their run.

    Args:
        of_all: what is asked is what they share, and no cell by itself.
    """
    if not options.trusted:
        require_own(folder)
    plan = replace(plan, models=tuple(as_kept(item, folder) for item in plan.models))
    asked = list(dict.fromkeys(cell.model for cell in cells))
    changed = fixture_folders.changed_sources([find_model(plan.models, name) for name in asked])
    what = "one cell was" if len(cells) == 1 else f"{counted(len(cells), 'cell')} were"
    notes = (
        f"{what} repeated, without planted defects: this says nothing about the whole upgrade",
        *(f"{source} changed since the run: this is another artifact" for source in changed),
    )
    asked_of = {cell.scenario for cell in cells}
    scenarios = ("alone", *(name for name in INITIALIZATIONS if name in asked_of))
    brought_up = {cell.model for cell in cells if cell.scenario in INITIALIZATIONS}
    groups = {name: members for name, members in plan.groups.items() if brought_up & set(members)}
    names = {*asked, *(name for members in groups.values() for name in members)}
    budget = options.overrides.get("latency") if TIMING in asked_of else "off"
    policy = settings_of(options)[1].policy if options.assignments else read_policy(options)
    settings = plan.settings
    if policy is not None:
        settings = replace(settings, policy=policy, policy_file=options.policy or "")
    plan = replace(
        plan,
        models=tuple(item for item in plan.models if item.name in names),
        planted_defects=(),
        notes=notes,
        groups=groups or {"rerun": tuple(asked)},
        scenarios=scenarios,
        repeats_common=of_all,
        settings=replace(
            settings, latency=with_budget(settings.latency, budget), rollback="off", explain=0.0, migrate=False
        ),
    )
    with RunDir.create(folder / "reruns", title.replace(":", "-"), clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, options, progress)


def _refuse_another_cell(cell: Cell, plan: Plan) -> None:
    planned = planned_like(cell, plan)
    is_timed = plan.is_timed and find_model(plan.models, cell.model).timed
    has = (*plan.scenarios, *([TIMING] if is_timed else []))
    if cell != planned or cell.scenario not in has:
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {planned.id} for {', '.join(has)}")
