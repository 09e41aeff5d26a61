"""The page of commands, made from the texts of ``--help``: ``python -m tests.docs.commands_page`` writes it."""

import posixpath
import textwrap

from harness.cli.help import ALWAYS
from harness.cli.parser import commands
from tests.docs.pages import PROJECT

WIDTH = 118
PAGE = PROJECT / "docs" / "guide" / "commands.md"
HEAD = """\
# Commands

Every command, in the order of `--help`. Where the gate is installed, each begins with `torchscript-gate`, and in the
repository with `-m harness`. The sessions `bisect`, `compat`, `doctor`, `gate`, `matrix`, `migrate`, `mitigate` and
`pack` of `noxfile.py` install the gate's dependencies first: `nox -s compat -- ...` is `python -m harness compat ...`.

`--project DIR`, the folder with `pyproject.toml`, goes before the command. `RUN` is the folder or the name of a run, or
`last`; a `CELL_ID` is at the end of each red cell's `rerun` line.

Results go to standard output, progress and errors to standard error. On a terminal, lines are as wide as it, between 80
and 120 columns (`COLUMNS` overrides that). `NO_COLOR` and `TERM=dumb` switch colours off.

Every command can also end with these exit codes: {always}.
"""


def text() -> str:
    """Return the page."""
    parts = [HEAD.format(always=ALWAYS)]
    parts += [_command(name) for name in commands()]
    return "\n".join(parts)


def _command(name: str) -> str:
    command_help = commands()[name].HELP
    examples = "\n".join(f"# {what}\npython -m harness {name} {words}" for words, what in command_help.examples)
    page = posixpath.relpath(command_help.page, "guide")
    more = f"[{page.removesuffix('.md').replace('-', ' ')}]({page})"
    codes = _filled(f"Exit codes: {command_help.codes}. More: {more}.")
    return f"## {name}\n\n{_filled(command_help.what)}\n\n```sh\n{examples}\n```\n\n{codes}\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
