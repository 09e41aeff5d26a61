"""``completion``: the command line, for a shell that completes it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from harness.cli.help import CommandHelp
from harness.cli.terminal import say

if TYPE_CHECKING:
    from harness.project import Project

SHELLS = ("bash", "fish", "zsh")
SCRIPT: Final = "torchscript-gate"
"""What is completed: the console script. Shells complete by a program's name, and ``python`` is everybody's."""

HELP = CommandHelp(
    "completion",
    "write what a shell needs to complete torchscript-gate",
    "Write the script that teaches a shell to complete torchscript-gate.",
    (("bash", "to standard output; the page says where each shell looks for it"),),
    "0 written",
    "guide/getting-started.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.cli.parser import parser

    del project
    say(render_completion(parser(SCRIPT), parsed.shell) + "\n")
    return None


def render_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completions of ``parser``, in which they are noted at its actions, as ``shell`` reads them."""
    import shtab

    runs = shtab.cmd("ls reports 2>/dev/null; echo last")
    # By what stands for a value in the help; other values are free, or choices.
    completed_by = {
        "DIR": shtab.DIRECTORY,
        "FILE": shtab.FILE,
        "FILES": shtab.FILE,
        "NAME=PYTHON": shtab.FILE,
        "RUN": runs,
        "[NAME=]LIB": shtab.FILE,
    }
    for action in _actions(parser):
        completed = completed_by.get(str(action.metavar))
        if completed is not None or action.dest == "project":
            action.complete = completed or shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001  argparse has no public way down, and shtab goes the same
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in dict.fromkeys(action.choices.values()):
                yield from _actions(below)
