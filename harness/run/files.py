"""What a finished run leaves in its folder for people, for CI and for the other commands."""

from dataclasses import dataclass, replace
from pathlib import Path

from harness.decision.causes import with_causes
from harness.diagnosis.explanation import with_later
from harness.domain.matrix import Matrix
from harness.domain.report import RunReport
from harness.errors import ConfigError, RunDirError
from harness.models.places import declared_at
from harness.report.formats import RUN, Shown, ShownRun
from harness.report.json.matrix import load_matrix
from harness.report.json.report import load_report
from harness.run.baseline import beside, read_baseline
from harness.run.options import Options, shown_path
from harness.run.trace import read_trace
from harness.store.explanations import kept
from harness.store.run_folder import REPORT, RunDir, find_run


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
    return with_causes(replace(report, explained=with_later(report.explained, kept(folder))))


def read_report(
    options: Options, run_name: str, matrix_file: str | None = None, baseline: str | None = None
) -> Finished:
    """Return the stored report of a run, with the matrix in ``matrix_file``, and beside the run ``baseline``.

    Raises:
        ConfigError: there is no such file.
        SelectionError: there is no such run.
        RunDirError: it was interrupted before a report was written, or the report is damaged.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    report = stored_report(folder)
    matrix = None
    if matrix_file is not None:
        try:
            matrix = load_matrix(Path(matrix_file).read_bytes(), file=matrix_file)
        except OSError as error:
            raise ConfigError(f"--matrix {matrix_file}: {error.strerror}", "name a matrix.json") from error
    if baseline is not None:
        report = beside(report, read_baseline(options, baseline))
    return Finished(report=report, folder=folder, matrix=matrix, project=options.project)


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
