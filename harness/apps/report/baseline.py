"""Compares a run with earlier ones: where their reports come from and are kept, and what has changed since."""

from dataclasses import replace
from pathlib import Path

from harness.checks.startup.rates import more_often
from harness.core.errors import ConfigError, RunDirError, SelectionError
from harness.core.report import RunOutline, RunReport
from harness.project import Project
from harness.report.json.report import dump_report, load_report, read_outline
from harness.store.run_folder import REPORT, RunDir, find_run
from harness.verdict.since import since

KEPT = "baseline-report.json"
READ = 12
"""Folders of earlier runs that a trend looks into, the newest: reports may be large."""


def read_baseline(project: Project, name: str) -> RunReport:
    path = _report_file(project, name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--baseline {name}: {path}: {error.strerror}", f"name a run, or its {REPORT}") from error
    return load_report(data, file=str(path))


def keep_baseline(run_dir: RunDir, before: RunReport) -> None:
    """Store the other run's report in the folder of this one: ``--resume`` needs it, and the other may be deleted."""
    run_dir.write(KEPT, dump_report(replace(before, baseline=None, timelines=())))


def beside_kept(report: RunReport, folder: Path) -> RunReport:
    """Return the report with what has changed since the run whose report is kept in ``folder``; as it is without."""
    path = folder / KEPT
    if not path.is_file():
        return report
    return beside(report, load_report(path.read_bytes(), file=str(path)))


def beside(report: RunReport, before: RunReport) -> RunReport:
    """Return the report with what has changed since ``before``; its decision and exit code stay what they are."""
    return replace(report, baseline=since(before, report, more_often))


def _report_file(project: Project, name: str) -> Path:
    given = Path(name)
    for path in (given, given / REPORT):
        if path.is_file():
            return path
    try:
        folder = find_run(project.reports, name, with_report=True)
    except SelectionError as error:
        raise SelectionError(f"--baseline: {error.message}", error.hint) from None
    if not (folder / REPORT).is_file():
        raise RunDirError(f"--baseline: {folder} has no {REPORT}: the run was interrupted", "name a finished run")
    return folder / REPORT


def earlier_runs(report: RunReport, folder: Path) -> tuple[RunOutline, ...]:
    """Return the earlier runs of the same pair beside ``folder``, the oldest first; what cannot be read is no run."""
    try:
        names = sorted((path for path in folder.resolve().parent.iterdir() if path.name < folder.name), reverse=True)
    except OSError:
        return ()
    outlines = []
    for path in [path / REPORT for path in names if (path / REPORT).is_file()][:READ]:
        try:
            known = read_outline(path.read_bytes())
        except OSError:
            continue
        if known is not None and (known.old, known.new) == (report.old.name, report.new.name):
            outlines.append(known)
    return tuple(sorted(outlines, key=lambda run: run.started_at))
