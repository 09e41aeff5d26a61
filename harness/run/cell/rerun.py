"""One cell of a finished run, repeated."""

from dataclasses import replace

from harness.config.load import with_budget
from harness.config.selection import find_model, parse_cell_id
from harness.domain.plan import Cell, Plan
from harness.errors import SelectionError
from harness.models import fixture_folders
from harness.run.cell.selected import as_kept, planned_like
from harness.run.execute import execute
from harness.run.files import Finished
from harness.run.options import Options, read_policy
from harness.scenarios import INITIALIZATIONS, TIMING
from harness.store.run_folder import RunDir, find_run
from harness.system import clock
from harness.system.progress import Progress


def rerun(options: Options, run_name: str, cell_id: str, progress: Progress) -> Finished:
    """Repeat one cell of a finished run, with fresh probes, in a folder below that run.

    Raises:
        SelectionError: there is no such run, model or scenario.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    cell = parse_cell_id(cell_id)
    plan = RunDir(folder).load_plan()
    model = find_model(plan.models, cell.model)
    _refuse_another_cell(cell, plan)
    plan = replace(plan, models=tuple(as_kept(item, folder) for item in plan.models))
    model = find_model(plan.models, cell.model)
    changed = fixture_folders.changed_sources([model])
    notes = (
        "one cell was repeated, without planted defects: this says nothing about the whole upgrade",
        *(f"{source} changed since the run: this is another artifact" for source in changed),
    )
    groups = {name: members for name, members in plan.groups.items() if cell.model in members}
    scenario = cell.scenario
    budget = options.overrides.get("latency") if scenario == "latency" else "off"
    together = scenario in INITIALIZATIONS
    names = {name for members in groups.values() for name in members} if together else {model.name}
    policy = read_policy(options)
    settings = plan.settings
    if policy is not None:
        settings = replace(settings, policy=policy, policy_file=options.policy or "")
    plan = replace(
        plan,
        models=tuple(item for item in plan.models if item.name in names),
        planted_defects=(),
        notes=notes,
        groups=groups if together else {"rerun": (model.name,)},
        scenarios=tuple(dict.fromkeys(("alone", *([scenario] if together else [])))),
        settings=replace(settings, latency=with_budget(settings.latency, budget), rollback="off", explain=0.0),
    )
    with RunDir.create(folder / "reruns", cell.model, clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, options, progress)


def _refuse_another_cell(cell: Cell, plan: Plan) -> None:
    planned = planned_like(cell, plan)
    has = (*plan.scenarios, *([TIMING] if plan.is_timed else []))
    if cell != planned or cell.scenario not in has:
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {planned.id} for {', '.join(has)}")
