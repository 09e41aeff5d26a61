"""``inspect``: files that are read without running them."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_library
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "inspect",
    "say what files are and which release will load them; runs nothing",
    "Say what kind of file each is and which release will load it, from its bytes alone: nothing is loaded or run.",
    (
        ("models", "what the files of a folder contain"),
        ("models --old 2.1.2 --new 2.6.0", "and which of the two releases will load them"),
        ('"models/**/*.pt" --new 2.6.0 --format sarif', "for code scanning on GitHub or GitLab"),
    ),
    "0 all will load, 1 one will not, 4 one could not be read or judged",
    "guide/inspect.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import INSPECTION

    command.add_argument("files", nargs="+", metavar="FILES", help="artifacts, patterns, or folders of them")
    command.add_argument("--old", metavar="RELEASE", help="predict loading in this release, or the NAME of an --env")
    command.add_argument("--new", metavar="RELEASE", help="and in this one; without both only the facts are listed")
    command.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    add_library(command)
    add_format(command, INSPECTION.names, "sarif: for code scanning", default="text")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.inspect.inspect import inspect
    from harness.report.formats import INSPECTION

    inspection = inspect(project, parsed.files)
    say(INSPECTION.render(parsed.format, inspection, shown()))
    return inspection
