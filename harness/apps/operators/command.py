"""``operators``: which operators answer otherwise in another release, as it was measured."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "operators",
    "say which operators answer otherwise in another release; runs nothing",
    "List the operators of PyTorch that answer one call otherwise in two releases, as the gate's atlas has measured it,"
    " each with the smallest call that shows it. Nothing is installed or run.",
    (
        ("--old 2.1.2 --new 2.6.0", "what would hurt most first"),
        ("--old 2.1.2 --new 2.6.0 --operator softshrink", "one operator, with calls to paste into Python"),
        ("--new 2.15.0 --format json", "everything that was measured up to a release, for programs"),
    ),
    "0 what was measured is listed",
    "operators.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import OPERATORS

    command.add_argument("--old", metavar="RELEASE", help="from this release; default: the oldest measured")
    command.add_argument("--new", metavar="RELEASE", help="to this one; default: the newest measured")
    command.add_argument("--operator", metavar="NAME", help="only this one, e.g. softshrink or aten::add.Tensor")
    add_format(command, OPERATORS.names)


def call(parsed: argparse.Namespace, _project: "Project") -> None:
    from harness.apps.operators.operators import operators
    from harness.report.formats import OPERATORS

    changes = operators(parsed.old, parsed.new, parsed.operator)
    say(OPERATORS.render(parsed.format, changes, shown()))
