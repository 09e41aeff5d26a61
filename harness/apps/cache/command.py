"""``cache``: the environments and compiled workers that this user's runs share."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "cache",
    "show what environments and compiled workers take, and remove them",
    "Show what is kept between runs (environments, compiled workers, operators of releases): how much it takes, and "
    "when it was used last; or remove it. What a gate that runs now uses is left alone, and everything is made again "
    "when it is needed.",
    (
        ("status", "what there is, how much it takes, and when it was used last"),
        ("clean --older-than 30d --dry-run", "what was not used for 30 days; without --dry-run it is removed"),
        ("clean 2.1.2", "everything of a release; a name that status shows is one thing"),
    ),
    "0 done",
    "guide/environments.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import CACHE

    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="what there is, how much it takes, when it was used last")
    clean = actions.add_parser("clean", help="remove what is named, or was not used for some time")
    clean.add_argument("names", nargs="*", metavar="NAME", help="a release, or a name that status shows")
    clean.add_argument("--older-than", metavar="TIME", help="only what was not used for so long, such as 30d")
    clean.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")
    for action in (status, clean):
        add_format(action, CACHE.names, default="text")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.cache.cache import cleaned, status
    from harness.report.formats import CACHE, CACHE_CLEANING

    if parsed.action == "status":
        say(CACHE.render(parsed.format, status(project), shown()))
    else:
        cleaning = cleaned(project, parsed.names, parsed.older_than, dry_run=parsed.dry_run)
        say(CACHE_CLEANING.render(parsed.format, cleaning, shown()))
    return None
