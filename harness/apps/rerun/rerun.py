"""Cells of a finished run, repeated: one, those of a cause, all that are red, or all that are undecided."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.apps.gate.gate import gate, with_cause
from harness.apps.report.files import Finished, read_report
from harness.apps.rerun.selected import as_kept
from harness.apps.upgrade.execute import execute
from harness.artifacts import fixture_folders
from harness.config.load import with_budget
from harness.config.selection import find_model, parse_cell_id
from harness.core.errors import SelectionError
from harness.core.outcome import Status
from harness.core.plan import Cell, Plan
from harness.core.text import counted
from harness.core.verdict import CellVerdict
from harness.machine import clock
from harness.project import Project
from harness.serving.scenarios import INITIALIZATIONS, TIMING
from harness.store.run_folder import RunDir, find_run, require_own
from harness.verdict.commands import is_red

RED, UNDECIDED = "red", "undecided"


def rerun(project: Project, run_name: str, cell_id: str) -> Finished:
    folder = find_run(project.reports, run_name, with_report=True)
    cell = parse_cell_id(cell_id)
    plan = RunDir(folder).load_plan()
    find_model(plan.models, cell.model)
    _refuse_another_cell(cell, plan)
    return _repeat(project, folder, plan, [cell], title=cell.model)


def rerun_all(project: Project, run_name: str, which: str, *, cause: bool = False) -> Finished:
    """Repeat several cells of a finished run in one new run below it, which has one report.

    ``which`` is ``RED`` or ``UNDECIDED`` by the policy and the waivers that are given, or, with ``cause``, the id of
    one, which may be today's as ``gate`` names it.
    """
    judged = bool(project.policy_file or project.assignments)
    finished = gate(project, run_name) if judged else read_report(project, run_name)
    of_all = False
    if cause:
        finished, cause_named = with_cause(finished, project, which, run_name)
        timed = [
            cell.cell
            for cell in finished.report.judgement.cells
            if cell.model in cause_named.models and cell.scenario == TIMING
        ]
        of_all = not cause_named.cells  # what all models share is in no single cell
        ids: Sequence[str] = cause_named.cells or timed
    else:
        ids = [cell.cell for cell in finished.report.judgement.cells if _is(cell, which)]
    report, folder = finished.report, finished.folder
    if not ids:
        raise SelectionError(f"{run_name} has no {which} cell", "nothing to repeat")
    open_ = {cell.cell for cell in report.judgement.cells if cell.status is Status.INCONCLUSIVE}
    if set(ids) <= open_:  # the same time again would leave them as undecided
        project = replace(project, overrides={"latency": "thorough", **project.overrides})
    plan = RunDir(folder).load_plan()
    cells = [parse_cell_id(id_) for id_ in ids]
    return _repeat(project, folder, plan, cells, title=which, of_all=of_all)


def _is(cell: CellVerdict, which: str) -> bool:
    """Whether a cell is one of those asked for; an undecided one need not decide the run."""
    if which == UNDECIDED:
        return cell.status is Status.INCONCLUSIVE
    return is_red(cell) and cell.status is not Status.INCONCLUSIVE


def _repeat(
    project: Project,
    folder: Path,
    plan: Plan,
    cells: Sequence[Cell],
    *,
    title: str,
    of_all: bool = False,
) -> Finished:
    """Run a plan of these cells in a folder below their run; ``of_all``: they are asked for what they share."""
    if not project.trusted:
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
    budget = project.overrides.get("latency") if TIMING in asked_of else "off"
    policy = project.settings.policy if project.assignments else project.given_policy
    settings = plan.settings
    if policy is not None:
        settings = replace(settings, policy=policy, policy_file=project.policy_file or "")
    plan = replace(
        plan,
        models=tuple(item for item in plan.models if item.name in names),
        planted_defects=(),
        notes=notes,
        groups=groups or {"rerun": tuple(asked)},
        scenarios=scenarios,
        repeats_common=of_all,
        settings=replace(
            settings,
            latency=with_budget(settings.latency, budget),
            rollback="off",
            explain=0.0,
            migrate=False,
            fresh=True,
        ),
    )
    with RunDir.create(folder / "reruns", title.replace(":", "-"), clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, project)


def _refuse_another_cell(cell: Cell, plan: Plan) -> None:
    is_timed = plan.is_timed and find_model(plan.models, cell.model).timed
    has = (*plan.scenarios, *([TIMING] if is_timed else []))
    if cell.scenario not in has:
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {', '.join(has)} of {cell.model}")
