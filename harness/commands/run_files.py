"""What a finished run leaves in its folder for people, for CI and for the other commands."""

from pathlib import Path

from harness.commands.options import shown_path
from harness.commands.places import declared_at
from harness.domain.report import RunReport
from harness.render.badge import render_badge
from harness.render.ctrf import render_ctrf
from harness.render.jsonreport import dump_report
from harness.render.junit import render_junit
from harness.render.markdown import render_markdown
from harness.render.openmetrics import render_openmetrics
from harness.render.page.html import render_html
from harness.render.trace import render_trace
from harness.runtime.run_dir import REPORT, RunDir
from harness.runtime.run_trace import read_trace


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
