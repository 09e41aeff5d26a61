"""``env``: environments, built before anybody needs them."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import options_of
from harness.core.errors import ExitCode

HELP = CommandHelp(
    "Build the environments of torch releases, or say where they are. A run does this automatically.",
    (("2.1.2 2.6.0", "both; one that exists already takes no time"),),
    "0 all exist, 3 one could not be provisioned",
    "guide/environments.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which releases."""
    command.add_argument("releases", nargs="*", metavar="RELEASE", help="default: the configured pair")


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build environments."""
    from harness.machine.progress import Progress
    from harness.run.env import build

    for environment in build(options_of(parsed, arguments), parsed.releases, Progress()):
        print(f"{environment.name:16} {environment.interpreter}")
    return ExitCode.COMPATIBLE
