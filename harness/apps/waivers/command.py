"""``waivers``: findings that are known, in ``golden/waivers.toml``."""

import argparse
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_out
from harness.cli.terminal import say, width
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.apps.waivers.waivers import WaiverReport
    from harness.project import Project

HELP = CommandHelp(
    "waivers",
    "waive red cells for a while, with owner and bound; list and prune",
    "Waive a known finding: a waiver has an owner, a reason and an expiry, and a bound, so that "
    "nothing worse hides behind it. They live in golden/waivers.toml.",
    (
        ('add last CELL_ID --owner ads --reason "agreed"', "from a red cell of the last run"),
        (
            'add last --models enlarge --owner ads --reason "ok"',
            "all that fails of some models; --cause ID: of one cause",
        ),
        ("list", "what each waives, until when, and whether it is too broad"),
        ("prune last", "which expired or were not needed in the last run; --yes removes them"),
    ),
    "0 done",
    "guide/waivers.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="waive red cells of a run: their findings, sizes and releases, no more")
    add.add_argument("run", metavar="RUN", help="a finished run or 'last'")
    which = add.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="CELL_ID", help="a red cell, or a model: all that fails of it")
    which.add_argument("--cause", metavar="ID", help="all that fails by one cause, a waiver per model")
    which.add_argument("--models", metavar="EXPR", help="all that fails of some models, as of -k")
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


def call(parsed: argparse.Namespace, project: "Project") -> object:
    say(ACTIONS[parsed.action](project, parsed))
    return None


def _add(project: "Project", parsed: argparse.Namespace) -> str:
    from harness.apps.waivers.waivers import ToWaive, add
    from harness.project import in_command

    report = add(
        project,
        parsed.run,
        ToWaive(name=parsed.name, cause=parsed.cause, models=parsed.models),
        owner=parsed.owner,
        reason=parsed.reason,
        issue=parsed.issue,
        expires=_date(parsed.expires),
        bound=_number(parsed.bound),
    )
    policy = ("--policy", report.policy) if report.policy else ()
    again = report.project.command("gate", in_command(Path(report.run)), *policy)
    return f"{_listed(report, 'wrote {} to', judged_by=report.run)}\njudge the run again: {again}\n"


def _list(project: "Project", parsed: argparse.Namespace) -> str:
    from harness.apps.waivers.waivers import known

    report = known(project, parsed.run)
    return _listed(report, "{} in", judged_by=report.run) if report.uses else f"no waivers in {report.file}\n"


def _prune(project: "Project", parsed: argparse.Namespace) -> str:
    from harness.apps.waivers.waivers import prune

    report = prune(project, parsed.run, write=parsed.yes)
    if not report.uses:
        judged = f"; {report.run} was read" if report.run else ""
        return f"nothing to take out of {report.file}{judged}\n"
    if parsed.yes:
        return _listed(report, "took {} out of", judged_by=report.run)
    return f"{_listed(report, 'to go: {} of', judged_by=report.run)}\nwrite with --yes\n"


def _listed(report: "WaiverReport", what: str, *, judged_by: str = "") -> str:
    """Return the waivers below what was done with them; ``what`` has a place for how many they are."""
    from harness.core.text import counted
    from harness.report.documents.waivers import waivers_document
    from harness.report.formats import on_terminal

    title = f"{what.format(counted(len(report.uses), 'waiver'))} {report.file}"
    title += f"; what they did in {judged_by}" if judged_by else ""
    document = waivers_document(report.uses, title, in_a_run=bool(report.run))
    return on_terminal(document, width=width(), most_lines=0)


ACTIONS: dict[str, Callable[["Project", argparse.Namespace], str]] = {"add": _add, "list": _list, "prune": _prune}


def _date(text: str | None) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text) if text is not None else None
    except ValueError as error:
        raise ConfigError(f"--expires {text}: {error}", "write a date like 2027-03-31") from error


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError as error:
        raise ConfigError(f"--bound {text} is no number", "write one like 0.001, or 1.2 for a ratio") from error
