"""``pack``: golden bundles, for another team to judge by."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_models, add_out, add_running
from harness.cli.terminal import say, width

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "pack",
    "write a golden bundle per model, for another team to judge by",
    "Write a golden bundle per model: artifact, requests and the old release's answers in one file. With it "
    "another team can judge a new release without the old one.",
    (("--old 2.1.2 --artifacts models --into bundles", "answered by torch 2.1.2"),),
    "0 every model has its bundle, 3 environment not provisioned, 4 some have none: the output says why",
    "guide/golden-records.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--old", metavar="RELEASE", help="release that answers, or the NAME of an --env")
    add_models(command)
    command.add_argument("--into", metavar="DIR", default="bundles", help="where the bundles go (default: bundles)")
    add_running(command, "--device", "--jobs", "--profile")
    add_out(command)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.pack.pack import pack
    from harness.report.documents.packing import packing_document
    from harness.report.formats import on_terminal

    packing = pack(project, Path(parsed.into))
    say(on_terminal(packing_document(packing), width=width(), most_lines=0))
    return packing
