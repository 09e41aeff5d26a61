"""A run of its own about one model: begun or resumed, provisioned, and kept where it is interrupted."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from harness.apps.rerun.selected import (
    SelectedCell,
    read_selected_cell,
    refuse_beside_resume,
    refuse_changed,
    save_selected_cell,
)
from harness.config.load import with_budget
from harness.config.selection import find_model, listed
from harness.core.errors import ConfigError, GateError, SelectionError
from harness.core.models import ArtifactKind, ModelDeclaration
from harness.core.plan import Deadlines, LatencyBudget, Plan, Settings
from harness.machine import clock
from harness.probing.requests import impatient
from harness.project import Project, in_command
from harness.store.run_folder import RunDir

FLOOR = "deadlines.floor_s"
TIMED = "quick"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Searched(Generic[T]):
    found: T
    folder: Path


@contextlib.contextmanager
def own_run(
    verb: str,
    project: Project,
    *,
    model: str | None,
    selected: SelectedCell | None,
    planned: Callable[[], tuple[Plan, str]],
    more: Sequence[str] = (),
) -> Iterator[tuple[RunDir, Plan, SelectedCell | None]]:
    """Yield the folder of a run, its plan and the cell that it is about: a new run, or the one ``--resume`` names.

    An interrupted one is kept, an empty one is not. ``planned``: returns the plan of a new one, and the name of its
    model; ``more``: further options of the command, as they were typed; refused beside ``--resume``.
    """
    if project.resume is not None:
        refuse_beside_resume(project, verb, more, model=model, selected=selected)
        with RunDir.open(project.reports, project.resume, search=verb, trusted=project.trusted) as run_dir:
            plan = run_dir.load_plan()
            if not run_dir.is_of(verb):
                raise ConfigError(f"{run_dir.name} is no run of {verb}", "resume it with the command that began it")
            refuse_changed(plan.models, verb)
            yield run_dir, plan, read_selected_cell(run_dir, trusted=project.trusted)
            return
    plan, name = planned()
    refuse_without_graph(find_model(plan.models, name), verb)
    with RunDir.create(project.reports, f"{name}-{verb}", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        save_selected_cell(run_dir, selected)
        try:
            yield run_dir, plan, selected
        except KeyboardInterrupt:
            again = project.command(verb, "--resume", in_command(run_dir.path))
            project.progress.note(f"finished probes are kept, go on with: {again}")
            raise
        except GateError:
            run_dir.discard_if_empty()
            raise


def refuse_without_graph(model: ModelDeclaration, verb: str) -> None:
    """Refuse an artifact that is no TorchScript: what a search changes is not there."""
    if model.kind is not ArtifactKind.TORCHSCRIPT:
        raise ConfigError(f"{model.name} is {model.kind.words}: {verb} is about TorchScript", "compat judges it")


def refuse_golden(project: Project, verb: str) -> None:
    """Refuse golden records: they answer nothing that is asked anew."""
    if project.golden is not None:
        raise ConfigError(f"{verb} asks the old release itself", "leave --golden out")


def refuse_golden_run(selected: SelectedCell, verb: str) -> None:
    if selected.plan.old is None:
        raise ConfigError(
            f"{selected.folder.name} was judged by golden records", f"name the old release: {verb} --model --old --new"
        )


def one_model(plan: Plan, name: str | None, *, what: str) -> ModelDeclaration:
    """Return the model of that name, or the only one; ``what`` is done with one model at a time, in words."""
    if name is not None:
        return find_model(plan.models, name)
    if len(plan.models) > 1:
        hint = f"name it with --model; there are: {listed(plan.models)}"
        raise SelectionError(f"{what} one model at a time", hint)
    return plan.models[0]


def searching(settings: Settings, *, waits: bool) -> Settings:
    """Return the settings with a search's deadlines; ``waits``: one was asked for and is kept whatever it is."""
    deadlines = settings.deadlines
    if waits or deadlines.floor_s != Deadlines().floor_s:
        return settings
    return replace(settings, deadlines=impatient(deadlines))


def timed(latency: LatencyBudget) -> LatencyBudget:
    """Return a budget that measures, also where the run was told to measure nothing."""
    return with_budget(latency, TIMED) if latency.budget == "off" else latency
