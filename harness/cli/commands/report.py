"""``report``: a finished run, shown again."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_baseline, add_out, add_verbose, options_of
from harness.cli.terminal import say, shown
from harness.core.errors import ConfigError
from harness.report.formats import RUN

if TYPE_CHECKING:
    from harness.run.files import Finished

HELP = CommandHelp(
    "Show a finished run again, or in another format. Nothing is judged anew: the exit code is that of the run.",
    (
        ("last", "the newest run that has a report"),
        ("last --verbose", "with every model, every red cell and its story"),
        ("last --format markdown", "for a pull request"),
        ("last --format html", "the page, to standard output"),
    ),
    "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
    "guide/reading-the-report.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which run, and as what."""
    command.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    command.add_argument(
        "--format",
        choices=RUN.names,
        default="console",
        metavar="FORMAT",
        help=f"{', '.join(RUN.names)} (default: console); html: the page; trace: for ui.perfetto.dev; "
        "github: annotations of a workflow",
    )
    command.add_argument("--matrix", metavar="FILE", help="a matrix.json to show on the HTML page")
    add_baseline(command)
    add_verbose(command)
    add_out(command)


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Show a finished run again; that a later one has no report is said on standard error."""
    from harness.machine.progress import Progress
    from harness.run.files import read_report
    from harness.store.run_folder import LAST, begun_since

    if parsed.matrix is not None and parsed.format != "html":
        raise ConfigError("--matrix is shown by --format html only", "leave one of them out")
    options = options_of(parsed, arguments)
    finished = read_report(options, parsed.run, parsed.matrix, parsed.baseline)
    later = begun_since(options.reports, finished.folder) if parsed.run == LAST else None
    if later is not None:
        how = "is still running" if later.is_running else "ended before it had a report"
        Progress().note(f"the last run, {later.name}, {how}; this is {finished.folder.name}")
    return show_run(finished, parsed.format, verbose=parsed.verbose)


def show_run(finished: "Finished", form: str = "console", *, verbose: bool) -> int:
    """Say what a run has come to, on a console in full where ``verbose``, and return its exit code."""
    from harness.run.files import shown_run
    from harness.run.options import shown_path

    say(RUN.render(form, shown_run(finished), shown(shown_path(finished.folder), every_row=verbose)))
    return finished.report.judgement.exit_code
