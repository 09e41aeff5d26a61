"""``first-bad``: ``bisect`` over the releases of torch."""

import argparse

from harness.cli.commands import bisect
from harness.cli.help import CommandHelp

HELP = CommandHelp(
    "Find the first torch release that breaks a model: the same as bisect --over releases.",
    (
        ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "for a file"),
        ("--model dlrm --old 2.1.2 --new 2.6.0 --builds 8", "test more releases between the ends at once"),
    ),
    "0 the newest release is not bad, 1 found, 3 an end of the range or the index is unavailable, 4 undecided",
    "guide/first-bad-release.md",
)
call = bisect.call


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``bisect``; without ``--over`` it searches over releases."""
    bisect.add_options(command)
    command.set_defaults(over="releases")
