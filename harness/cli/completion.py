"""``completion``: the command line, for a shell that completes it."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.terminal import say
from harness.errors import ExitCode

SHELLS = ("bash", "fish", "zsh")

HELP = CommandHelp(
    "Write the script that teaches a shell to complete torchscript-gate.",
    (("bash", "to standard output; the page says where each shell looks for it"),),
    "0 written",
    "guide/getting-started.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which shell."""
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def call(parsed: argparse.Namespace, _arguments: Sequence[str]) -> int:
    """Write the script that teaches a shell."""
    from harness.cli.completion_script import SCRIPT, render_completion
    from harness.cli.parser import parser

    say(render_completion(parser(SCRIPT), parsed.shell) + "\n")
    return ExitCode.COMPATIBLE
