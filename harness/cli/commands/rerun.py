"""``rerun``: cells of a finished run, repeated."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import add_out, add_policy, add_policy_keys, add_trust, add_verbose, options_of

HELP = CommandHelp(
    "Repeat one cell of a run with fresh probes, or many in one new run with one report. The result is about these "
    "cells only, never about the upgrade.",
    (
        ("last dlrm/backward/alone/cpu/default", "a cell; report --verbose prints the ids"),
        ("last --cause semantics-aten::upsample_bicubic2d", "every cell of a cause; the report has the ids"),
        ("last --red", "everything that fails"),
        ("last --undecided", "all that could not be decided; a latency gets the thorough budget"),
    ),
    "0 what was repeated passes, 1 it fails, 3 environment not provisioned, 4 not decided",
    "guide/before-an-upgrade.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which cell of which run."""
    command.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("cell", nargs="?", metavar="CELL_ID", help="one cell, as the report prints it")
    which.add_argument("--cause", metavar="ID", help="all cells of a cause")
    which.add_argument("--red", action="store_true", help="all cells that fail")
    which.add_argument("--undecided", action="store_true", help="all cells that could not be decided")
    command.add_argument("--latency", choices=("quick", "thorough"), help="another budget for a latency cell")
    add_policy(command)
    add_policy_keys(command)
    add_verbose(command)
    add_trust(command)
    add_out(command)


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Repeat one cell of a run, or several."""
    from harness.cli.commands.report import show_run
    from harness.machine.progress import Progress
    from harness.run.cell.rerun import RED, UNDECIDED, rerun, rerun_all

    options, progress = options_of(parsed, arguments), Progress()
    if parsed.cell is not None:
        return show_run(rerun(options, parsed.run, parsed.cell, progress), verbose=parsed.verbose)
    which = parsed.cause or (RED if parsed.red else UNDECIDED)
    finished = rerun_all(options, parsed.run, which, progress, cause=parsed.cause is not None)
    return show_run(finished, verbose=parsed.verbose)
