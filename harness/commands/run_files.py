"""What a finished run leaves in its folder for people, for CI and for the other commands."""

from dataclasses import replace
from pathlib import Path

from harness.commands.options import shown_path
from harness.commands.places import declared_at
from harness.diagnosis.explanation import with_later
from harness.domain.report import RunReport
from harness.errors import RunDirError
from harness.report.ci.badge import render_badge
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.json.report import dump_report, load_report
from harness.report.markdown.report import render_markdown
from harness.report.page.html import render_html
from harness.report.trace import render_trace
from harness.run.trace import read_trace
from harness.store.explanations import kept
from harness.store.run_folder import REPORT, RunDir


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


def write_reports(report: RunReport, run_dir: RunDir, project: Path) -> None:
    """Write the report of a run in every form; ``report.json`` first, for all others can be made of it again.

    Raises:
        RunDirError: the folder cannot be written, or the disk is full.
    """
    directory, places = shown_path(run_dir.path), declared_at(report, run_dir.path, project)
    run_dir.write(REPORT, dump_report(report))
    run_dir.write("report.md", render_markdown(report, directory=directory).encode())
    run_dir.write("report.html", render_html(report, directory=directory).encode())
    run_dir.write("junit.xml", render_junit(report, directory=directory).encode())
    run_dir.write("ctrf.json", render_ctrf(report, directory=directory, places=places).encode())
    run_dir.write("metrics.prom", render_openmetrics(report).encode())
    run_dir.write("badge.json", render_badge(report).encode())
    run_dir.write("trace.json", render_trace(read_trace(run_dir.path)).encode())
