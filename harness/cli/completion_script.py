"""A script that teaches a shell to complete the command line: verbs, options, choices, files and runs."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

import shtab

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
