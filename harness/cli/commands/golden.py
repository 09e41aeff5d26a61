"""``golden``: what people decide about a run, kept in git."""

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_out, options_of
from harness.cli.terminal import say, width
from harness.core.errors import ExitCode
from harness.core.text import visible
from harness.report.formats import GOLDEN_STATUS, REVIEW, Shown

if TYPE_CHECKING:
    from harness.run.options import Options

NAMES = "names, or 'all'; MODEL@RECORD: only if that is the record that golden diff shows"

HELP = CommandHelp(
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
    """Add the actions on golden records."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="verify every record; list records and proposals")
    status.add_argument(
        "--format", choices=GOLDEN_STATUS.names, default="console", help="text, or all of it for a program"
    )
    propose = actions.add_parser("propose", help="propose the golden outputs of a run as records")
    propose.add_argument("run", metavar="RUN", help="a finished run or 'last'")
    propose.add_argument("-k", dest="expression", metavar="EXPR", help="models, by parts of names or tags")
    add_out(propose)
    diff = actions.add_parser("diff", help="show in numbers what the proposals would change")
    diff.add_argument("models", nargs="*", metavar="MODEL", help="default: all that differ")
    diff.add_argument(
        "--since", metavar="DIR", help="show what is accepted now against a golden folder of an earlier commit"
    )
    diff.add_argument("--format", choices=REVIEW.names, default="console", help="markdown: for a pull request")
    diff.add_argument("--all", dest="every_row", action="store_true", help="every output that differs, on the console")
    accept = actions.add_parser("accept", help="accept proposals")
    accept.add_argument("models", nargs="+", metavar="MODEL", help=NAMES)
    accept.add_argument(
        "--reason", required=True, metavar="TEXT", help="why these outputs are right; kept in golden/index.json"
    )
    gc = actions.add_parser("gc", help="say what nobody needs in the golden folder")
    gc.add_argument("--yes", action="store_true", help="remove it")


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Keep, show, compare or remove golden records."""
    return ACTIONS[parsed.action](parsed, options_of(parsed, arguments))


def _status(parsed: argparse.Namespace, options: "Options") -> int:
    from harness.run.golden.commands import status

    found = status(options)
    say(GOLDEN_STATUS.render(parsed.format, found))
    return ExitCode.CONFIGURATION if found.problems else ExitCode.COMPATIBLE


def _propose(parsed: argparse.Namespace, options: "Options") -> int:
    from harness.report.documents.golden import proposed_document
    from harness.report.formats import on_terminal
    from harness.run.golden.commands import propose

    proposed = propose(options, parsed.run)
    document = proposed_document(proposed.same, proposed.left_out, proposed.diffs)
    say(on_terminal(document, width=width(), most_lines=0))
    return ExitCode.COMPATIBLE


def _diff(parsed: argparse.Namespace, options: "Options") -> int:
    from harness.run.golden.commands import diff

    review = diff(options, parsed.models, parsed.since)
    say(REVIEW.render(parsed.format, review, Shown(every_row=parsed.every_row)))
    return ExitCode.COMPATIBLE


def _accept(parsed: argparse.Namespace, options: "Options") -> int:
    from harness.run.golden.commands import accept

    for model, change in accept(options, parsed.models, parsed.reason):
        say(f"accepted {visible(model)} ({visible(change)})\n")
    return ExitCode.COMPATIBLE


def _gc(parsed: argparse.Namespace, options: "Options") -> int:
    from harness.report.documents.golden import left_over_document
    from harness.report.formats import on_terminal
    from harness.run.golden.commands import collect, left_over

    found = left_over(options)
    if parsed.yes:
        collect(options, found)
    say(on_terminal(left_over_document(found, removed=parsed.yes), width=width(), most_lines=0))
    return ExitCode.COMPATIBLE


ACTIONS: dict[str, Callable[[argparse.Namespace, "Options"], int]] = {
    "accept": _accept,
    "diff": _diff,
    "gc": _gc,
    "propose": _propose,
    "status": _status,
}
