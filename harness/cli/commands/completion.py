"""``completion``: the command line, for a shell that completes it."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

import shtab

from harness.cli.help import CommandHelp
from harness.cli.terminal import say
from harness.core.errors import ExitCode

SHELLS = ("bash", "fish", "zsh")
SCRIPT: Final = "torchscript-gate"
"""What is completed: the console script. Shells complete by a program's name, and ``python`` is everybody's."""
RUNS: Final = shtab.cmd("ls reports 2>/dev/null; echo last")
COMPLETED: Final[dict[str, Any]] = {
    "DIR": shtab.DIRECTORY,
    "FILE": shtab.FILE,
    "FILES": shtab.FILE,
    "NAME=PYTHON": shtab.FILE,
    "RUN": RUNS,
    "[NAME=]LIB": shtab.FILE,
}
"""By what stands for a value in the help; other values are free, or choices."""

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
    from harness.cli.parser import parser

    say(render_completion(parser(SCRIPT), parsed.shell) + "\n")
    return ExitCode.COMPATIBLE


def render_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completions of ``parser`` for ``shell``, as that shell reads them.

    Args:
        parser: of ``torchscript-gate``; the completions are noted at its actions.
    """
    for action in _actions(parser):
        completed = COMPLETED.get(str(action.metavar))
        if completed is not None or action.dest == "project":
            action.complete = completed or shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of those below it."""
    for action in parser._actions:  # noqa: SLF001  argparse has no public way down, and shtab goes the same
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in dict.fromkeys(action.choices.values()):
                yield from _actions(below)
