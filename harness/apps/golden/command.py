"""``golden``: what people decide about a run, kept in git."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_out
from harness.cli.terminal import say, width

if TYPE_CHECKING:
    from harness.project import Project

NAMES = "names, or 'all'; MODEL@RECORD: only if that is the record that golden diff shows"

HELP = CommandHelp(
    "golden",
    "propose, accept and list golden records",
    "Keep the old release's answers in git, so that later runs need no old environment. Proposed from a run, then"
    " accepted with a reason; no run changes them.",
    (
        ("status", "accepted records and waiting proposals"),
        ('propose last -k "dlrm or bert"', "the answers of the last run"),
        ("diff", "how much the proposals would change"),
        ('accept dlrm --reason "answers of torch 2.1.2"', "later runs are judged by this"),
    ),
    "0 done, 2 a record differs from what was accepted, or configuration",
    "guide/golden-records.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import GOLDEN_STATUS, REVIEW

    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="verify every record; list records and proposals")
    add_format(status, GOLDEN_STATUS.names)
    propose = actions.add_parser("propose", help="propose the golden outputs of a run as records")
    propose.add_argument("run", metavar="RUN", help="a finished run or 'last'")
    propose.add_argument("-k", dest="expression", metavar="EXPR", help="models, by parts of names or tags")
    add_out(propose)
    diff = actions.add_parser("diff", help="show in numbers what the proposals would change")
    diff.add_argument("models", nargs="*", metavar="MODEL", help="default: all that differ")
    diff.add_argument(
        "--since", metavar="DIR", help="show what is accepted now against a golden folder of an earlier commit"
    )
    add_format(diff, REVIEW.names, "markdown: for a pull request")
    diff.add_argument("--all", dest="every_row", action="store_true", help="every output that differs, on the console")
    accept = actions.add_parser("accept", help="accept proposals")
    accept.add_argument("models", nargs="+", metavar="MODEL", help=NAMES)
    accept.add_argument(
        "--reason", required=True, metavar="TEXT", help="why these outputs are right; kept in golden/index.json"
    )
    gc = actions.add_parser("gc", help="say what nobody needs in the golden folder")
    gc.add_argument("--yes", action="store_true", help="remove it")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    return ACTIONS[parsed.action](parsed, project)


def _status(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.golden.records import status
    from harness.report.formats import GOLDEN_STATUS

    records = status(project)
    say(GOLDEN_STATUS.render(parsed.format, records))
    return records


def _propose(parsed: argparse.Namespace, project: "Project") -> None:
    from harness.apps.golden.records import propose
    from harness.report.documents.golden import proposed_document
    from harness.report.formats import on_terminal

    proposing = propose(project, parsed.run)
    document = proposed_document(proposing.same, proposing.left_out, proposing.diffs)
    say(on_terminal(document, width=width(), most_lines=0))


def _diff(parsed: argparse.Namespace, project: "Project") -> None:
    from harness.apps.golden.records import diff
    from harness.report.formats import REVIEW, Shown

    review = diff(project, parsed.models, parsed.since)
    say(REVIEW.render(parsed.format, review, Shown(every_row=parsed.every_row)))


def _accept(parsed: argparse.Namespace, project: "Project") -> None:
    from harness.apps.golden.records import accept
    from harness.core.text import visible

    for model, change in accept(project, parsed.models, parsed.reason):
        say(f"accepted {visible(model)} ({visible(change)})\n")


def _gc(parsed: argparse.Namespace, project: "Project") -> None:
    from harness.apps.golden.records import collect, left_over
    from harness.report.documents.golden import left_over_document
    from harness.report.formats import on_terminal

    removable = left_over(project)
    if parsed.yes:
        collect(project, removable)
    say(on_terminal(left_over_document(removable, removed=parsed.yes), width=width(), most_lines=0))


ACTIONS: dict[str, Callable[[argparse.Namespace, "Project"], object]] = {
    "accept": _accept,
    "diff": _diff,
    "gc": _gc,
    "propose": _propose,
    "status": _status,
}
