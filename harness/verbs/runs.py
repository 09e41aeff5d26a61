"""``compat``, ``rerun``, ``report`` and ``env``: runs, and what is made of them."""

import argparse
from collections.abc import Callable, Sequence

from harness.commands import compat as runs
from harness.commands import rerun as repeated
from harness.commands.env import build
from harness.commands.options import known_models, settings_of, shown_path
from harness.commands.places import declared_at
from harness.config.selection import select
from harness.errors import ConfigError, ExitCode
from harness.report.ci.annotations import render_annotations
from harness.report.ci.badge import render_badge
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.json.report import dump_report
from harness.report.markdown.report import render_markdown
from harness.report.page.html import render_html
from harness.report.text.console import render_console
from harness.report.text.models import render_models
from harness.report.trace import render_trace
from harness.run.trace import read_trace
from harness.store.run_folder import LAST, begun_since
from harness.system.progress import Progress
from harness.verbs.shared import colour, options_of, say, terminal_width, width


def compat(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run the main job, or list its models."""
    options = options_of(parsed, arguments)
    if parsed.list:
        _, settings = settings_of(options)
        known = known_models(options, settings)
        say(render_models(select(known.models, options.expression), known.notes, width=terminal_width()))
        return ExitCode.COMPATIBLE
    return _show(runs.compat(options, Progress(), baseline=parsed.baseline))


def rerun(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Repeat one cell of a run."""
    return _show(repeated.rerun(options_of(parsed, arguments), parsed.run, parsed.cell, Progress()))


def report(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Show a finished run again; that a later one has no report is said on standard error."""
    if parsed.matrix is not None and parsed.format != "html":
        raise ConfigError("--matrix is shown by --format html only", "leave one of them out")
    options = options_of(parsed, arguments)
    finished = runs.read_report(options, parsed.run, parsed.matrix, parsed.baseline)
    later = begun_since(options.reports, finished.folder) if parsed.run == LAST else None
    if later is not None:
        how = "is still running" if later.is_running else "ended before it had a report"
        Progress().note(f"the last run, {later.name}, {how}; this is {finished.folder.name}")
    say(FORMATS[parsed.format](finished))
    return finished.report.judgement.exit_code


def env(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build environments."""
    for environment in build(options_of(parsed, arguments), parsed.releases, Progress()):
        print(f"{environment.name:16} {environment.interpreter}")
    return ExitCode.COMPATIBLE


def _console(finished: runs.Finished) -> str:
    return render_console(finished.report, width=width(), colour=colour(), directory=shown_path(finished.folder))


def _show(finished: runs.Finished) -> int:
    say(_console(finished))
    return finished.report.judgement.exit_code


def _placed(render: Callable[..., str]) -> Callable[[runs.Finished], str]:
    """Return a renderer that also tells in which file of the repository a model is declared."""

    def placed(finished: runs.Finished) -> str:
        places = declared_at(finished.report, finished.folder, finished.project)
        return render(finished.report, directory=shown_path(finished.folder), places=places)

    return placed


FORMATS: dict[str, Callable[[runs.Finished], str]] = {
    "badge": lambda finished: render_badge(finished.report),
    "console": _console,
    "ctrf": _placed(render_ctrf),
    "github": _placed(render_annotations),
    "html": lambda finished: render_html(
        finished.report, directory=shown_path(finished.folder), matrix=finished.matrix
    ),
    "json": lambda finished: dump_report(finished.report).decode(),
    "junit": lambda finished: render_junit(finished.report, directory=shown_path(finished.folder)),
    "markdown": lambda finished: render_markdown(finished.report, directory=shown_path(finished.folder)),
    "openmetrics": lambda finished: render_openmetrics(finished.report),
    "trace": lambda finished: render_trace(read_trace(finished.folder)),
}
