"""``waivers``: findings that are known, in ``golden/waivers.toml``."""

import argparse
import datetime as dt
import shlex
from collections.abc import Callable, Sequence

from harness.commands import waivers as known
from harness.commands.options import Options, own_command
from harness.domain.text import counted
from harness.errors import ConfigError, ExitCode
from harness.report.text.waivers import render_waivers
from harness.verbs.shared import options_of, say, width


def waivers(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Write, list or take out waivers."""
    options = options_of(parsed, arguments)
    say(ACTIONS[parsed.action](options, parsed))
    return ExitCode.COMPATIBLE


def _add(options: Options, parsed: argparse.Namespace) -> str:
    told = known.add(
        options,
        parsed.run,
        parsed.cell_id,
        owner=parsed.owner,
        reason=parsed.reason,
        issue=parsed.issue,
        expires=_date(parsed.expires),
        bound=_number(parsed.bound),
    )
    again = f"{own_command()} gate {shlex.quote(told.run)}"
    return f"{_listed(told, 'wrote {} to')}\njudge the run again: {again}\n"


def _list(options: Options, parsed: argparse.Namespace) -> str:
    told = known.known(options, parsed.run)
    return _listed(told, "{} in", judged_by=told.run) if told.uses else f"no waivers in {told.file}\n"


def _prune(options: Options, parsed: argparse.Namespace) -> str:
    told = known.prune(options, parsed.run, write=parsed.yes)
    if not told.uses:
        return f"nothing to take out of {told.file}\n"
    if parsed.yes:
        return _listed(told, "took {} out of", judged_by=told.run)
    return f"{_listed(told, 'to go: {} of', judged_by=told.run)}\nwrite with --yes\n"


def _listed(told: known.Told, what: str, *, judged_by: str = "") -> str:
    """Return the waivers below what was done with them; ``what`` has a place for how many they are."""
    title = f"{what.format(counted(len(told.uses), 'waiver'))} {told.file}"
    title += f"; what they did in {judged_by}" if judged_by else ""
    return render_waivers(told.uses, title, in_a_run=bool(told.run), width=width())


ACTIONS: dict[str, Callable[[Options, argparse.Namespace], str]] = {"add": _add, "list": _list, "prune": _prune}


def _date(text: str | None) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text) if text is not None else None
    except ValueError as error:
        raise ConfigError(f"--expires {text}: {error}", "write a date like 2027-03-31") from error


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError as error:
        raise ConfigError(f"--bound {text} is no number", "write one like 0.001, or 1.2 for a ratio") from error
