"""Results as the command line shows them: each in a format, as text."""

from harness.core.fleet import FleetReport
from harness.core.golden import Review
from harness.core.migration import Migration
from harness.core.report import RunReport
from harness.core.timeline import RunTrace
from harness.report.formats import FLEET, MIGRATION, REVIEW, RUN, Shown, ShownRun


def _run(report: RunReport) -> ShownRun:
    return ShownRun(
        report=report,
        places=dict,
        trace=lambda: RunTrace(run=report.run, processes=()),
    )


def render_console(
    report: RunReport, *, width: int = 100, colour: bool = False, directory: str = "", verbose: bool = False
) -> str:
    """Return a run as a terminal shows it."""
    return RUN.render("console", _run(report), Shown(directory, width, colour, verbose))


def render_markdown(report: RunReport, *, directory: str = "") -> str:
    """Return a run as ``report.md``."""
    return RUN.render("markdown", _run(report), Shown(directory))


def render_html(report: RunReport, *, directory: str = "") -> str:
    """Return a run as ``report.html``."""
    return RUN.render("html", _run(report), Shown(directory))


def render_fleet_html(report: FleetReport) -> str:
    """Return a fleet's answer as a page."""
    return FLEET.render("html", report)


def render_fleet_markdown(report: FleetReport) -> str:
    """Return a fleet's answer as markdown."""
    return FLEET.render("markdown", report)


def render_answer(report: FleetReport, *, more: str = "", width: int = 100) -> str:
    """Return a fleet's answer as a terminal shows it."""
    return FLEET.render("text", report, Shown(more, width))


def render_migration_html(migration: Migration) -> str:
    """Return a migration as a page."""
    return MIGRATION.render("html", migration)


def render_review_html(review: Review) -> str:
    """Return a diff of golden records as a page."""
    return REVIEW.render("html", review)
