"""One cell of a finished run, as a command that searches takes it: RUN and CELL_ID, or ``--cell KEY``."""

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.apps.report.files import read_report
from harness.artifacts import file_copies, fixture_folders
from harness.artifacts.given import source_digest
from harness.config import command_words
from harness.config.load import SHORT_OPTIONS
from harness.config.selection import find_model, listed, parse_cell_id
from harness.core.diagnosis import Bisection, Rewritten
from harness.core.errors import ConfigError, GateError, RunDirError, SelectionError
from harness.core.models import ModelDeclaration
from harness.core.outcome import Status
from harness.core.plan import Cell, Plan
from harness.core.report import Explained
from harness.core.text import first_few
from harness.machine.progress import Progress
from harness.project import Project
from harness.search.explained_cells import rewrites_that_fix
from harness.serving.scenarios import CELL_SCENARIOS, TIMING
from harness.store import codec, explanations
from harness.store.run_folder import LAST, RunDir, find_run, require_own

SELECTED = "asked.json"
BISECTION = "bisect.json"
MOST_NAMED = 4
OWN = "a cell has the releases, the models and the profile of its run"


@dataclass(frozen=True, kw_only=True)
class SelectedCell:
    """A cell, the folder of its run, and what that run was to do."""

    folder: Path
    cell: Cell
    plan: Plan

    @property
    def model(self) -> ModelDeclaration:
        return as_kept(find_model(self.plan.models, self.cell.model), self.folder)


def as_kept(model: ModelDeclaration, folder: Path) -> ModelDeclaration:
    """Return a given model as the run in ``folder`` has kept its file, else as that is now."""
    path = file_copies.kept_before(model, folder / "given") if model.given is not None else None
    if path is None or model.given is None:
        return file_copies.planned(model)
    model = replace(model, given=replace(model.given, path=str(path), within=""))
    return replace(model, source_digest=source_digest(model))


def selected_cell(
    project: Project, verb: str, *, run: str | None, cell: str | None, key: str | None, model: str | None
) -> SelectedCell | None:
    """Return the cell that a command line names; None where it names none.

    ``run`` and ``cell``: RUN and CELL_ID; ``key``: of ``--cell``, of RUN if that is there, else of the last run with a
    report; ``model``: of ``--model``.
    """
    if run is None and key is None:
        return None
    if run is not None and cell is None and key is None:
        raise _no_cell(project, verb, run)
    if cell is not None and key is not None and cell != key:
        raise ConfigError(f"two cells: {cell} and {key}", f"name one: {verb} RUN CELL_ID, or {verb} --cell CELL_ID")
    wanted = parse_cell_id(key or cell or "")
    if typed := _typed(project, model):
        raise ConfigError(
            f"{', '.join(typed)} beside a cell: {OWN}", f"leave it out, or {verb} --model, --old and --new"
        )
    folder = find_run(project.reports, run or LAST, with_report=True)
    if not project.trusted:
        require_own(folder)
    plan = RunDir(folder).load_plan()
    if wanted.model not in (model.name for model in plan.models):
        raise SelectionError(f"{folder.name} has no model {wanted.model}", f"it has: {listed(plan.models)}")
    if wanted.scenario == TIMING and not find_model(plan.models, wanted.model).timed:
        raise SelectionError(f"{folder.name} has no cell {wanted.id}", f"{wanted.model} says timed=False")
    return SelectedCell(folder=folder, cell=wanted, plan=plan)


def refuse_changed(models: Sequence[ModelDeclaration], verb: str) -> None:
    changed = fixture_folders.changed_sources(models)
    if changed:
        raise ConfigError(
            f"{', '.join(changed)} changed since the run", f"{verb} it anew with --model, --old and --new"
        )


def refuse_beside_resume(
    project: Project, verb: str, more: Sequence[str] = (), *, model: str | None, selected: SelectedCell | None
) -> None:
    """Refuse what would be ignored beside ``--resume``; ``more`` are further options, as they were typed."""
    named = [*(["a cell"] if selected is not None else []), *_typed(project, model), *more]
    if named:
        raise ConfigError(
            f"{', '.join(named)} beside --resume: that run goes on as it was begun",
            f"{verb} --resume {project.resume} alone, or without --resume",
        )


def as_the_run(selected: SelectedCell, project: Project) -> Project:
    """Return the options with the interpreters, libraries and assignments of the run's own command line."""
    words = command_words.kept(selected.plan.arguments, ("--env", "--library", "--set"))
    given = {name: [value for option, value in words if option == name] for name in ("--env", "--library", "--set")}
    return replace(
        project,
        environments=given["--env"],
        libraries=given["--library"],
        assignments=given["--set"],
        arguments=selected.plan.arguments,
    )


def keep_explanation(
    selected: SelectedCell, explained: Explained, progress: Progress, files: Mapping[str, bytes] | None = None
) -> None:
    """Keep in the run what was found about its cell, with ``files`` by name; where that cannot be written, say so."""
    try:
        folder = explanations.keep(selected.folder, explained).parent
        for name, data in (files or {}).items():
            codec.write_atomically(folder / name, data)
    except RunDirError as error:
        progress.note(f"the report of {selected.folder.name} will not tell of it: {error.message}")


def verified_rewrites(selected: SelectedCell) -> tuple[Rewritten, ...]:
    """Return the rewrites that ``bisect`` or ``--explain`` has seen to fix the cell, and whose archives are there."""
    explained = [
        explanation
        for explanation in explanations.kept(selected.folder)
        if (explanation.cell, explanation.by) == (selected.cell.id, "bisect")
    ]
    rewrites: list[Rewritten] = []
    for path in (path for explanation in explained for path in explanation.paths if Path(path).name == BISECTION):
        folder = (selected.folder / path).parent.absolute()
        with contextlib.suppress(RunDirError):
            verified = rewrites_that_fix(codec.read_json(folder / BISECTION, Bisection).rewrites)
            rewrites += [replace(item, artifact=str(folder / item.artifact)) for item in verified]
    return tuple(item for item in rewrites if Path(item.artifact).is_file())


def save_selected_cell(run_dir: RunDir, selected: SelectedCell | None) -> None:
    """Write into a run of its own which cell of which run it is about, for a resumed one."""
    if selected is not None:
        run_dir.write(SELECTED, codec.canonical({"run": str(selected.folder), "cell": selected.cell.id}))


def read_selected_cell(run_dir: RunDir, *, trusted: bool) -> SelectedCell | None:
    try:
        saved = codec.read_json(run_dir.path / SELECTED, dict[str, str])
        folder = Path(saved["run"])
        selected = SelectedCell(folder=folder, cell=parse_cell_id(saved["cell"]), plan=RunDir(folder).load_plan())
    except (RunDirError, KeyError):
        return None
    if not trusted:  # what is found goes into its folder
        require_own(folder)
    return selected


def _no_cell(project: Project, verb: str, run: str) -> GateError:
    if "/" in run and run.rpartition("/")[2] in CELL_SCENARIOS and not Path(run).exists():
        return ConfigError(
            f"{run} is a cell, and {verb} takes RUN and CELL_ID", f"of the last run: {verb} --cell {run}"
        )
    try:
        finished = read_report(project, run)
    except RunDirError as error:
        return ConfigError(f"{verb} takes RUN and CELL_ID; {error.message}", error.hint)
    red = [cell.cell for cell in finished.report.judgement.cells if cell.status is Status.FAIL]
    if not red:
        return ConfigError(f"{verb} takes RUN and CELL_ID, and {finished.folder.name} has no red cell", "nothing to do")
    return ConfigError(
        f"{verb} takes RUN and CELL_ID; its red cells: {first_few(red, MOST_NAMED)}",
        f"such as {verb} {shlex.quote(run)} {red[0]}",
    )


def _typed(project: Project, model: str | None) -> list[str]:
    return [
        *(["--model"] if model is not None else []),
        *(f"--{SHORT_OPTIONS.get(name, name).replace('_', '-')}" for name in project.overrides if name != "artifacts"),
        *(["--artifact"] if project.artifacts else []),
        *(["--env"] if project.environments else []),
        *(["--library"] if project.libraries else []),
        *(["-k"] if project.expression is not None else []),
        *(["--set"] if project.assignments else []),
    ]
