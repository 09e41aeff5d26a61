"""``rerun``: cells of a finished run, repeated."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_out, add_policy, add_policy_keys, add_trust, add_verbose

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "rerun",
    "repeat one cell of a run",
    "Repeat one cell of a run with fresh probes, or many in one new run with one report. The result is about these "
    "cells only, never about the upgrade.",
    (
        ("last dlrm/alone", "a cell; report --verbose prints the ids"),
        ("last --cause semantics-aten::upsample_bicubic2d", "every cell of a cause; the report has the ids"),
        ("last --red", "everything that fails"),
        ("last --undecided", "all that could not be decided; a latency gets the thorough budget"),
    ),
    "0 what was repeated passes, 1 it fails, 3 environment not provisioned, 4 not decided",
    "guide/before-an-upgrade.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
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


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.report.command import show_run
    from harness.apps.rerun.rerun import RED, UNDECIDED, rerun, rerun_all

    if parsed.cell is not None:
        return show_run(rerun(project, parsed.run, parsed.cell), verbose=parsed.verbose)
    which = parsed.cause or (RED if parsed.red else UNDECIDED)
    finished = rerun_all(project, parsed.run, which, cause=parsed.cause is not None)
    return show_run(finished, verbose=parsed.verbose)
