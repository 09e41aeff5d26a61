"""How ``--help`` is laid out: what a command is for, commands to copy, what its exit codes say, which page has more.

``%(prog)s`` is the command as it was typed, so that ``python -m`` and ``torchscript-gate`` show their own.
"""

import re
import textwrap
from typing import NamedTuple

WIDTH = 80
ALWAYS = "2 configuration, 5 a bug of the gate, 130 interrupted"


class CommandHelp(NamedTuple):
    """What is said of one command beside its options.

    Attributes:
        summary: its line in the help of the program.
        examples: (arguments after the command, what they do).
        codes: what the command's own exit codes mean, beside those that every command has.
        page: of ``docs``.
        often: the options that ``--help`` shows, where there are so many that the rest is left to ``--help all``.
    """

    name: str
    summary: str
    what: str
    examples: tuple[tuple[str, str], ...]
    codes: str
    page: str
    often: tuple[str, ...] = ()


TOP = """where to begin:
  inspect models/           which releases load your files? installs nothing
  doctor                    can this machine run the gate? installs nothing
  compat                    judge the upgrade: one decision, one exit code
  report last               show the last run again, or in another format
  rerun last CELL_ID        repeat one red cell with fresh probes
  bisect --cell CELL_ID     find the operator that causes it, and what fixes it
  mitigate --cell CELL_ID   find the settings that mitigate it, with their cost

exit codes: 0 compatible, 1 incompatible, 2 configuration,
            3 environment not provisioned, 4 inconclusive or nothing tested,
            5 a bug of the gate, 130 interrupted; 125 untestable (returned
            by reproducers, for git bisect run)

COMMAND --help shows examples and the exit codes of that command.
"""


def description(command: CommandHelp) -> str:
    """Return the text above the options."""
    return textwrap.fill(command.what, WIDTH - 2, break_on_hyphens=False)


def top(docs: str) -> str:
    """Return the text below the commands; ``docs`` is the folder of the pages."""
    return f"{TOP}\nmore: {docs}/index.md\n"


def epilog(command: CommandHelp, docs: str) -> str:
    """Return the text below the options: examples, exit codes, and the page of ``docs`` that has more."""
    lines = ["examples:"]
    for arguments, what in command.examples:
        lines += [f"  %(prog)s {arguments}", f"      {what}"]
    lines += ["", "exit codes:"]
    lines += [f"  {code:>3}  {words}" for code, words in sorted({**_codes(ALWAYS), **_codes(command.codes)}.items())]
    return "\n".join([*lines, "", f"more: {docs}/{command.page}"])


def _codes(text: str) -> dict[int, str]:
    """Return what each code means, of ``0 done, 4 undecided``."""
    return {int(code): words for code, _, words in (part.partition(" ") for part in re.split(r", (?=\d)", text))}
