"""The parser of the command line: its commands, options of those that are typed, and what a typo was meant to be."""

import argparse
import difflib
import functools
import importlib
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from harness import DISTRIBUTION, PACKAGE, __version__, apps
from harness.cli import help as help_text
from harness.cli.help import CommandHelp

if TYPE_CHECKING:
    from harness.project import Project

HARNESS = Path(__file__).resolve().parents[1]


class Command(Protocol):
    """A command, which a module ``command`` of ``harness.apps`` is."""

    HELP: CommandHelp

    def add_options(self, command: argparse.ArgumentParser) -> None:
        """Add its options."""

    def call(self, parsed: argparse.Namespace, project: "Project") -> object:
        """Do it, print what came of it and return that, for ``harness.verdict.exit_codes``."""


@functools.cache
def commands() -> Mapping[str, Command]:
    """Return the commands by their names, in the order of ``--help``."""
    modules = [importlib.import_module(f"{apps.__name__}.{app.name}.command") for app in iter_modules(apps.__path__)]
    return {module.HELP.name: cast("Command", module) for module in sorted(modules, key=lambda one: one.HELP.name)}


def parser(program: str = f"python -m {PACKAGE}", typed: Container[str] | None = None) -> argparse.ArgumentParser:
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
    top.add_argument("--version", action="version", version=f"{DISTRIBUTION} {__version__}")
    top.add_argument("--project", type=Path, help="folder with pyproject.toml (default: here)")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for name, command in commands().items():
        often = command.HELP.often
        verb = verbs.add_parser(
            name,
            help=command.HELP.summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=not often,
        )
        if typed is None or name in typed:
            if often:
                verb.add_argument("-h", "--help", action=_Help, often=often)
            command.add_options(verb)
            verb.description = help_text.description(command.HELP)
            verb.epilog = help_text.epilog(command.HELP, docs)
    return top


class _Help(argparse.Action):
    """``--help`` shows the options that are used often, ``--help all`` every one."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, often: Sequence[str]) -> None:
        text = "show the options that are used often, or all, and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs="?", choices=("all",), metavar="all", help=text)
        self._often = often
        del dest

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print and end."""
        del namespace, option_string
        assert isinstance(parser, Parser)
        sys.stdout.write(parser.format_help() if values == "all" else parser.brief_help(self._often))
        parser.exit()


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

    def brief_help(self, often: Sequence[str]) -> str:
        """Return the help with these options alone, and how many there are."""
        options = {name: action for action in self._actions for name in action.option_strings}
        formatter = self._get_formatter()
        formatter.add_usage("%(prog)s [options]", [], [])
        formatter.add_text(self.description)
        formatter.start_section(f"options used often; --help all shows {len(set(options.values()))}")
        formatter.add_arguments([options[name] for name in ("--help", *often)])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """End with the usage and one line."""
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        more = _meant(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""
        if message.startswith("the following arguments are required") or (choice and choice[1] == "help"):
            more = f"; see {self.prog} --help"
        super().error(message + more)


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
