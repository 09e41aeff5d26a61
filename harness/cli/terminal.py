"""How an answer is written: as wide as the terminal, in colour where that is wanted, whatever reads it."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.formats import Shown

_LEAST, _IN_A_LOG, _MOST = 80, 100, 120


def say(text: str) -> None:
    """Write to standard output; a reader that stops reading, or knows ASCII only, does not change the exit code."""
    sys.stdout.write(text)
    sys.stdout.flush()


def shown(directory: str = "", *, every_row: bool = False) -> "Shown":
    """Return how the reader sees a result, whose folder is ``directory`` as that reader would type it."""
    from harness.report.formats import Shown

    return Shown(directory=directory, width=width(), colour=colour(), every_row=every_row)


def colour() -> bool:
    """Whether the reader sees colours, and wants to: https://no-color.org, which an empty NO_COLOR does not ask for."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return how wide a text may be, in columns: as the terminal before which the reader sits, also behind a pager."""
    return max(_LEAST, min(_MOST, _columns() or _IN_A_LOG))


def terminal_width() -> int | None:
    """Return the same where the answer itself goes to a terminal; None: to a file or a filter, where lines are rows."""
    return width() if sys.stdout.isatty() else None


def _columns() -> int:
    """Return the columns that ``COLUMNS`` or one of the standard streams' terminals has; 0: there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
        try:
            if stream is not None and (columns := os.get_terminal_size(stream.fileno()).columns):
                return columns
        except (OSError, ValueError):  # no terminal, or closed
            continue
    return 0
