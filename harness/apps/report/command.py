"""``report``: a finished run, shown again."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_baseline, add_format, add_out, add_verbose
from harness.cli.terminal import say, shown
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.apps.report.files import Finished
    from harness.core.verdict import Judgement
    from harness.project import Project

HELP = CommandHelp(
    "report",
    "render a finished run again",
    "Show a finished run again, or in another format. Nothing is judged anew: the exit code is that of the run.",
    (
        ("last", "the newest run"),
        ("last --verbose", "with every model, every red cell and its story"),
        ("last --format markdown", "for a pull request"),
        ("last --format html", "the page, to standard output"),
    ),
    "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
    "guide/reading-the-report.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import RUN

    command.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    add_format(command, RUN.names, "html: the page; trace: for ui.perfetto.dev; github: annotations of a workflow")
    command.add_argument(
        "--page-url", metavar="URL", default="", help="address of the run's report.html, to which a comment links"
    )
    add_baseline(command)
    add_verbose(command)
    add_out(command)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.report.files import read_report, refuse_an_older_run
    from harness.report.document import outside
    from harness.store.run_folder import LAST

    if parsed.page_url and parsed.format != "comment":
        raise ConfigError(
            f"--page-url: only a comment links to the page, and this is --format {parsed.format}",
            "add --format comment, or leave --page-url out",
        )
    if parsed.page_url and (not outside(parsed.page_url) or "#" in parsed.page_url):
        raise ConfigError(
            f"--page-url {parsed.page_url}: expected an http or https address without a #",
            "give the address of report.html, such as https://ci.example/jobs/7/report.html",
        )
    finished = read_report(project, parsed.run, parsed.baseline)
    if parsed.run == LAST:
        refuse_an_older_run(project, finished.folder, "report", while_running=False)
    return show_run(finished, parsed.format, verbose=parsed.verbose, page=parsed.page_url)


def show_run(finished: "Finished", form: str = "console", *, verbose: bool, page: str = "") -> "Judgement":
    """Say what a run has come to, on a console in full where ``verbose``, and return its judgement.

    ``page``: address of its page, where a comment leads.
    """
    from harness.apps.report.files import shown_run
    from harness.project import shown_path
    from harness.report.formats import RUN

    how = replace(shown(shown_path(finished.folder), every_row=verbose), page=page)
    say(RUN.render(form, shown_run(finished), how))
    return finished.report.judgement
