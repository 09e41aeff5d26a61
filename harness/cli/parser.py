"""The parser of the command line: its commands, options of those that are typed, and what a typo was meant to be."""

import argparse
import difflib
import importlib
import re
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from harness import __version__
from harness.cli import help as help_text

HARNESS = Path(__file__).resolve().parents[1]
COMMANDS = {
    "compat": "judge the upgrade from one release to another",
    "env": "build environments, one per torch release",
    "doctor": "say whether this machine can run the gate; installs nothing",
    "report": "render a finished run again",
    "gate": "judge a finished run again, by another policy; needs no torch",
    "waivers": "waive red cells for a while, with owner and bound; list and prune",
    "rerun": "repeat one cell of a run",
    "bisect": "find whose doing a red cell is, what cures it, and since which release it is",
    "mitigate": "find the settings that cure a red cell, and their price",
    "inspect": "say what files are and which release will load them; runs nothing",
    "pack": "write a golden bundle per model, for another team to judge by",
    "matrix": "load what every release exports in every other one",
    "migrate": "say which artifacts can leave TorchScript, and what stands in the way",
    "fleet": "plan, run and merge a whole store of artifacts, on one machine or many",
    "golden": "propose, accept and list golden records",
    "completion": "write what a shell needs to complete torchscript-gate",
}
"""What each command is for, in the order of ``--help``; its module has its name."""


def command_module(name: str) -> ModuleType:
    """Return the module of a command: ``HELP``, ``add_options`` and ``call``."""
    return importlib.import_module(f"harness.cli.commands.{name.replace('-', '_')}")


def parser(program: str = "python -m harness", typed: Container[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        program: how it is called by who types it.
        typed: the words that are to be parsed: other commands than these are named only, without their options.
    """
    docs = _pages()
    top = Parser(
        prog=program,
        description="Will my TorchScript models survive the next torch upgrade?",
        epilog=help_text.top(docs),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"torchscript-upgrade-gate {__version__}")
    top.add_argument("--project", type=Path, default=Path.cwd(), help="folder with pyproject.toml (default: here)")
    commands = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for name, words in COMMANDS.items():
        command = commands.add_parser(name, help=words, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in typed:
            module = command_module(name)
            module.add_options(command)
            command.description = help_text.description(module.HELP)
            command.epilog = help_text.epilog(module.HELP, docs)
    return top


def _pages() -> str:
    """Return where the pages lie that help names: in a wheel inside of the package, else beside it."""
    shipped = HARNESS / "shipped" / "docs"
    if shipped.is_dir():
        return str(shipped)
    return "docs" if Path.cwd() == HARNESS.parent else str(HARNESS.parent / "docs")


class Parser(argparse.ArgumentParser):
    """``argparse``'s parser; an option that a verb does not have is that verb's error, with its usage."""

    def parse_known_args(  # type: ignore[override]  # of its overloads one is in use
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Return what was parsed; a word that is left over is an error."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            option = rest[0].partition("=")[0]
            self.error(f"unrecognized arguments: {' '.join(rest)}{_meant(option, self._option_string_actions)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """End with the usage and one line."""
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        more = _meant(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""
        super().error(message + more)


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
