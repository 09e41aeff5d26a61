"""``pack``: golden bundles, for another team to judge by."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness.cli.help import CommandHelp
from harness.cli.options import add_models, add_out, add_running, options_of
from harness.cli.terminal import say, width
from harness.core.errors import ExitCode

HELP = CommandHelp(
    "Write a golden bundle per model: artifact, requests and the old release's answers in one file. With it "
    "another team can judge a new release without the old one.",
    (("--old 2.1.2 --artifacts models --into bundles", "answered by torch 2.1.2"),),
    "0 every model has its bundle, 3 environment not provisioned, 4 some have none: the output says why",
    "guide/own-models.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which models are packed, where to."""
    command.add_argument("--old", metavar="RELEASE", help="release that answers, or the NAME of an --env")
    add_models(command)
    command.add_argument("--into", metavar="DIR", default="bundles", help="where the bundles go (default: bundles)")
    add_running(command, "--device", "--jobs", "--profile")
    add_out(command)


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Write golden bundles."""
    from harness.machine.progress import Progress
    from harness.report.documents.packing import packing_document
    from harness.report.formats import on_terminal
    from harness.run.golden.pack import pack

    packing = pack(options_of(parsed, arguments), Path(parsed.into), Progress())
    say(on_terminal(packing_document(packing), width=width(), most_lines=0))
    return ExitCode.COMPATIBLE if packing.complete else ExitCode.INCONCLUSIVE
