"""``rerun``: one cell of a finished run, repeated."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import add_out, add_policy, add_verbose, options_of

HELP = CommandHelp(
    "Repeat one cell of a run with fresh probes. The result is about that cell only, never about the upgrade.",
    (("last dlrm/backward/alone/cpu/default/all", "a cell's id is at the end of its rerun line"),),
    "0 the cell passes, 1 it fails, 3 environment not provisioned, 4 not decided",
    "guide/before-an-upgrade.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which cell of which run."""
    command.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    command.add_argument("cell", metavar="CELL_ID", help="as the report prints it")
    command.add_argument("--latency", choices=("quick", "thorough"), help="another budget for a latency cell")
    add_policy(command)
    add_verbose(command)
    add_out(command)


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Repeat one cell of a run."""
    from harness.cli.report import show_run
    from harness.run.cell.rerun import rerun
    from harness.system.progress import Progress

    return show_run(rerun(options_of(parsed, arguments), parsed.run, parsed.cell, Progress()), verbose=parsed.verbose)
