"""``compile-check``: sources of a server against the headers of another LibTorch."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "compile-check",
    "say whether C++ sources compile against another LibTorch, and what to write",
    "Have the build's compiler read each source against the headers of another LibTorch, with the build's own flags."
    " Nothing is compiled, linked or run. What the build's own headers refuse as well is told apart.",
    (
        ("build/compile_commands.json --new 2.6.0", "a build of CMake, Bazel or meson"),
        ("src/server.cpp --new 2.6.0 --flags=-Iinclude", "sources with flags of your own"),
        ("build/ --new /opt/libtorch-2.6", "the headers of a LibTorch of your own"),
    ),
    "0 all compile, 1 one does not any more, 4 one could not be checked, or does not compile as it is",
    "guide/compile-check.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import COMPILE_CHECK

    command.add_argument(
        "sources", nargs="+", type=Path, metavar="SOURCE", help="sources, compile_commands.json, or a folder with one"
    )
    command.add_argument(
        "--new",
        required=True,
        metavar="RELEASE",
        help="a release, whose environment is built if necessary, or a folder",
    )
    command.add_argument("--flags", default="", metavar="FLAGS", help="of sources that stand in no database")
    command.add_argument("--jobs", type=_count, metavar="N", help="sources at a time; default: one per core")
    add_format(command, COMPILE_CHECK.names, "sarif: for code scanning")


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text}")
    return int(text)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.compile_check.compile_check import compile_check
    from harness.report.formats import COMPILE_CHECK

    checked = compile_check(project, parsed.sources, new=parsed.new, flags=parsed.flags, jobs=parsed.jobs)
    say(COMPILE_CHECK.render(parsed.format, checked, shown()))
    return checked
