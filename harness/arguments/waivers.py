"""``waivers``: findings that are known, in ``golden/waivers.toml``."""

import argparse

from harness.arguments.shared import add_out


def add_waivers(verb: argparse.ArgumentParser) -> None:
    """Add the actions on waivers."""
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="waive a red cell of a run: its findings, sizes and releases, no more")
    add.add_argument("run", metavar="RUN", help="a finished run or 'last'")
    add.add_argument("cell_id", metavar="CELL_ID", help="one of its red cells, as its report prints it")
    add.add_argument("--owner", required=True, metavar="WHO", help="who answers for it")
    add.add_argument("--reason", required=True, metavar="TEXT", help="why it is known, and fine for now")
    add.add_argument("--issue", default="", metavar="URL", help="where it is followed up")
    add.add_argument("--expires", metavar="DATE", help="its last day, such as 2027-03-31 (default: in 90 days)")
    add.add_argument(
        "--bound", metavar="X", help="the largest size that it covers (default: a little above what was seen)"
    )
    shown = actions.add_parser("list", help="list waivers: until when, how broad, and what each did in a run")
    pruned = actions.add_parser("prune", help="take out waivers that are over, and those that a run did not need")
    pruned.add_argument("--yes", action="store_true", help="write; without it, only say what would go")
    for action in (shown, pruned):
        action.add_argument("run", nargs="?", metavar="RUN", help="a finished run or 'last'")
    for action in (add, shown, pruned):
        add_out(action)
