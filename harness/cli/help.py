"""How ``--help`` is laid out: what a command is for, commands to copy, what its exit codes say, where more is told.

``%(prog)s`` is the command as it was typed, so that both ``python -m harness`` and ``torchscript-gate`` show their own.
"""

import re
import textwrap
from typing import NamedTuple

WIDTH = 80
ALWAYS = "2 configuration, 5 our own bug, 130 interrupted"


class CommandHelp(NamedTuple):
    """What the help of one command says beside its options.

    Attributes:
        examples: (arguments after the command, what they do).
        codes: what the command's own exit codes mean, beside those that every command has.
        page: of ``docs``.
    """

    what: str
    examples: tuple[tuple[str, str], ...]
    codes: str
    page: str


TOP = """\
where to begin:
  doctor                    whether this machine can; installs nothing
  compat                    the upgrade, judged: one decision, one exit code
  report last               what the last run said, again or in another format
  rerun last CELL_ID        one red cell again, with fresh probes
  bisect --cell CELL_ID     whose doing it is, and what cures it
  mitigate --cell CELL_ID   every setting that cures it, with its price

exit codes: 0 compatible, 1 incompatible, 2 configuration,
            3 environment not provisioned, 4 inconclusive or nothing tested,
            5 our own bug, 130 interrupted; 125 untestable (of a reproducer,
            for git bisect run)

COMMAND --help has examples and the exit codes of each.
"""


def description(command: CommandHelp) -> str:
    """Return what stands above the options."""
    return textwrap.fill(command.what, WIDTH - 2, break_on_hyphens=False)


def top(docs: str) -> str:
    """Return what stands below the commands; the pages lie in the folder ``docs``."""
    return f"{TOP}\nmore: {docs}/index.md\n"


def epilog(command: CommandHelp, docs: str) -> str:
    """Return what stands below the options: examples, exit codes, and the page with more in the folder ``docs``."""
    lines = ["examples:"]
    for arguments, what in command.examples:
        lines += [f"  %(prog)s {arguments}", f"      {what}"]
    lines += ["", "exit codes:"]
    lines += [f"  {code:>3}  {words}" for code, words in sorted({**_codes(ALWAYS), **_codes(command.codes)}.items())]
    return "\n".join([*lines, "", f"more: {docs}/{command.page}"])


def _codes(text: str) -> dict[int, str]:
    """Return what each code means, of ``0 done, 4 undecided``."""
    return {int(code): words for code, _, words in (part.partition(" ") for part in re.split(r", (?=\d)", text))}
