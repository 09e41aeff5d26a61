"""What a finished run leaves in its folder for people, for CI and for the other commands."""

import contextlib
import os
import shlex
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.apps.report.baseline import beside, like_of, read_baseline
from harness.apps.report.trace import read_trace
from harness.core.errors import GateError, RunDirError
from harness.core.plan import Plan
from harness.core.report import RunReport
from harness.machine.files import keep_bug_report
from harness.project import Project, in_command, own_command, shown_path
from harness.report.formats import RUN, Shown, ShownRun
from harness.report.json.report import load_report
from harness.search.explained_cells import with_later
from harness.store import codec
from harness.store.explanations import kept
from harness.store.run_folder import PLAN, REPORT, RunDir, attempt_since, begun_since, find_run
from harness.verdict.causes import with_causes
from harness.verdict.commands import at_home


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A finished run: its report, its folder, and the folder of its project."""

    report: RunReport
    folder: Path
    project: Path = Path()


def stored_report(folder: Path, *, program: str = "") -> RunReport:
    """Return a finished run's report with explanations made since; ``program`` begins its commands, if given."""
    path = folder / REPORT
    if not path.is_file():
        search = RunDir(folder).search
        if search:
            raise RunDirError(f"{folder} is a run of {search}, which judges nothing", "name a run of compat")
        again = _resume(program or own_command(Path.cwd()), folder)
        raise RunDirError(f"{folder} has no {REPORT}: the run was interrupted", f"finish it: {again}")
    report = at_home(load_report(path.read_bytes(), file=str(path)), program=program, folder=in_command(folder))
    return with_explanations(report, folder)


def with_explanations(report: RunReport, folder: Path) -> RunReport:
    """Return the report with what searches have found about the run in ``folder`` since.

    A patched archive that is not there, as in a copy without it, is nothing to deploy.
    """
    found = with_later(report.explained, kept(folder))
    here = (item if (folder / item.patched).is_file() else replace(item, patched="") for item in found)
    return with_causes(replace(report, explained=tuple(here)))


def read_report(project: Project, run_name: str, baseline: str | None = None) -> Finished:
    """Return the stored report of a run, beside the run ``baseline``."""
    folder = find_run(project.reports, run_name, with_report=True)
    report = stored_report(folder, program=project.command())
    if baseline is not None:
        report = beside(report, read_baseline(project, baseline, like_of(report)))
    return Finished(report=report, folder=folder, project=project.folder)


def refuse_an_older_run(project: Project, folder: Path, command: str, *, while_running: bool = True) -> None:
    """Refuse to answer ``last`` by the run in ``folder`` where a later one has no report: a job would pass by it.

    ``while_running``: also where that one is still running; else a note says so. Raises ``RunDirError``: what to do.
    """
    instead = f"or name the run to show: {project.command(command, in_command(folder))}"
    newest = begun_since(project.reports, folder)
    if newest is not None and newest.is_running and not while_running:
        project.progress.note(f"the last run, {newest.name}, is still running; this is {folder.name}")
    elif newest is not None:
        why, do = "it ended before that", f"finish it: {_resume(project.command(), newest.path)}"
        if newest.is_running:
            why, do = "it is still running", "wait for it"
        raise RunDirError(f"the last run, {newest.path}, has no {REPORT}: {why}", f"{do}; {instead}")
    elif attempt := attempt_since(project.reports, folder):
        raise RunDirError(f"since the last run, {folder.name}, {attempt}", f"repeat that; {instead}")


def _resume(program: str, folder: Path) -> str:
    return f"{program} compat --resume {shlex.quote(in_command(folder))}"


def shown_run(finished: Finished) -> ShownRun:
    """Return a finished run for the formats; what only some of them need is read on demand."""
    return ShownRun(
        report=finished.report,
        places=lambda: declared_at(finished.report, finished.folder, finished.project),
        trace=lambda: read_trace(finished.folder),
    )


def write_reports(finished: Finished, run_dir: RunDir) -> tuple[str, ...]:
    """Write every form of a run's report, ``report.json`` first; return a note for each that could not be made."""
    run, how = shown_run(finished), Shown(directory=shown_path(run_dir.path))
    notes = []
    for form, name in RUN.files.items():
        try:
            run_dir.write(name, RUN.render(form, run, how).encode())
        except Exception as error:  # a finished run is not lost to one form of it
            if name == REPORT:
                raise
            with contextlib.suppress(OSError):
                (run_dir.path / name).unlink()  # of an earlier session of this run
            why = str(error) if isinstance(error, GateError) else _bug_words(traceback.format_exc())
            notes.append(f"{name} was not written: {why}; {REPORT} is whole: report {run_dir.name} --format {form}")
    return tuple(notes)


def _bug_words(story: str) -> str:
    return f"this is a bug of the harness; please report it with {keep_bug_report(story)}"


def declared_at(report: RunReport, folder: Path, project: Path) -> Mapping[str, str]:
    """Return model -> ``file:line`` relative to the root of the repository around ``project``.

    The plan of a run knows in which folder a declaration lies; without one, what the report says is looked for in the
    project. Models that no file of the repository declares are left out.
    """
    root = _repository(project.resolve())
    folders = _folders(folder)
    places = {}
    for model in report.models:
        path, _, line = model.where.rpartition(":")
        named = Path(folders.get(model.model) or project) / (path if line.isdecimal() else model.where)
        place = _file(named) if model.where else None
        if place is not None and place.is_relative_to(root):
            places[model.model] = str(place.relative_to(root)) + (f":{line}" if path and line.isdecimal() else "")
    return places


def _file(path: Path) -> Path | None:
    """Return the file at a path, or None; a looping link is none: ``resolve`` raises there before Python 3.13."""
    try:
        place = Path(os.path.realpath(path))
        return place if place.is_file() else None
    except (OSError, ValueError):
        return None


def _repository(project: Path) -> Path:
    """Return the nearest folder with ``.git``, else the project itself."""
    return next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)


def _folders(folder: Path) -> dict[str, str]:
    try:
        plan = codec.read_json(folder / PLAN, Plan)
    except RunDirError:
        return {}
    return {model.name: model.package_root for model in plan.models}
