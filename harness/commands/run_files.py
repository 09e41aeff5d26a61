"""What a finished run leaves in its folder for people, for CI and for the other commands."""

from dataclasses import dataclass, replace
from pathlib import Path

from harness.commands.options import shown_path
from harness.commands.places import declared_at
from harness.diagnosis.explanation import with_later
from harness.domain.matrix import Matrix
from harness.domain.report import RunReport
from harness.errors import RunDirError
from harness.report.formats import RUN, Shown, ShownRun
from harness.report.json.report import load_report
from harness.run.trace import read_trace
from harness.store.explanations import kept
from harness.store.run_folder import REPORT, RunDir


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A finished run: its report and its folder, and a version matrix that somebody wants to see beside it.

    ``project`` is the folder of the project whose models it judged.
    """

    report: RunReport
    folder: Path
    matrix: Matrix | None = None
    project: Path = Path()


def stored_report(folder: Path) -> RunReport:
    """Return the report of a finished run, with what searches have found about its cells since.

    Raises:
        RunDirError: it was interrupted before a report was written, or the report is damaged.
    """
    path = folder / REPORT
    if not path.is_file():
        search = RunDir(folder).search
        if search:
            raise RunDirError(f"{folder} is a run of {search}, which judges nothing", "name a run of compat")
        raise RunDirError(f"{folder} has no {REPORT}: the run was interrupted", f"finish it: --resume {folder.name}")
    report = load_report(path.read_bytes(), file=str(path))
    return replace(report, explained=with_later(report.explained, kept(folder)))


def shown_run(finished: Finished) -> ShownRun:
    """Return a finished run as the formats show it; what only some need is read when they ask for it."""
    return ShownRun(
        report=finished.report,
        places=lambda: declared_at(finished.report, finished.folder, finished.project),
        trace=lambda: read_trace(finished.folder),
        matrix=finished.matrix,
    )


def write_reports(finished: Finished, run_dir: RunDir) -> None:
    """Write the report of a run in every form that a run leaves.

    Raises:
        RunDirError: the folder cannot be written, or the disk is full.
    """
    for name, data in RUN.rendered_files(shown_run(finished), Shown(directory=shown_path(run_dir.path))):
        run_dir.write(name, data)
