"""``golden``: what people decide about a run, kept in git."""

import argparse

from harness.arguments.shared import add_out

DIFF_FORMATS = ("console", "html", "json", "markdown")
NAMES = "names, or 'all'; MODEL@RECORD: only if that is the record that golden diff shows"


def add_golden(verb: argparse.ArgumentParser) -> None:
    """Add the actions on golden records."""
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="verify every record and the journal; list records and proposals")
    status.add_argument("models", nargs="*", metavar="MODEL", help="show the history of these")
    _add_since(status, "a golden folder of an earlier commit, whose journal this one must go on from")
    status.add_argument(
        "--format", choices=("console", "json"), default="console", help="text, or all of it for a program"
    )
    propose = actions.add_parser("propose", help="propose the golden outputs of a run as records")
    propose.add_argument("run", metavar="RUN", help="a finished run or 'last'")
    propose.add_argument("-k", dest="expression", metavar="EXPR", help="models, by parts of names or tags")
    add_out(propose)
    diff = actions.add_parser("diff", help="show in numbers what the proposals would change")
    diff.add_argument("models", nargs="*", metavar="MODEL", help="default: all that differ")
    _add_since(diff, "show what is accepted now against a golden folder of an earlier commit")
    diff.add_argument("--format", choices=DIFF_FORMATS, default="console", help="markdown: for a pull request")
    diff.add_argument("--all", dest="every_row", action="store_true", help="every output that differs, on the console")
    accept = actions.add_parser("accept", help="accept proposals")
    accept.add_argument("models", nargs="+", metavar="MODEL", help=NAMES)
    accept.add_argument(
        "--reason", required=True, metavar="TEXT", help="why these outputs are right; kept in golden/journal.jsonl"
    )
    accept.add_argument(
        "--in-place", action="store_true", help="what lies in golden/records already, after a merge of two branches"
    )
    reject = actions.add_parser("reject", help="remove proposals, and keep why")
    reject.add_argument("models", nargs="+", metavar="MODEL", help=NAMES)
    reject.add_argument(
        "--reason",
        required=True,
        metavar="TEXT",
        help="what is wrong with these outputs; kept in golden/journal.jsonl",
    )
    gc = actions.add_parser("gc", help="say what nobody needs in the golden folder")
    gc.add_argument("--yes", action="store_true", help="remove it")


def _add_since(action: argparse.ArgumentParser, words: str) -> None:
    action.add_argument("--since", metavar="DIR", help=words)
