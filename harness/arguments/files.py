"""``inspect`` and ``pack``: files that are read, and files that are taken along."""

import argparse

from harness.arguments.shared import add_library, add_models, add_out, add_running

INSPECTION_FORMATS = ("json", "sarif", "text")


def add_inspect(verb: argparse.ArgumentParser) -> None:
    """Add which files, and which releases are asked about them."""
    verb.add_argument("files", nargs="+", metavar="FILES", help="artifacts, patterns, or folders of them")
    verb.add_argument("--old", metavar="RELEASE", help="predict loading in this release, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="and in this one; without both only the facts are listed")
    verb.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    add_library(verb)
    verb.add_argument("--format", choices=INSPECTION_FORMATS, default="text", help="sarif: for code scanning")


def add_pack(verb: argparse.ArgumentParser) -> None:
    """Add which models are packed, where to."""
    verb.add_argument("--old", metavar="RELEASE", help="release that answers, or the NAME of an --env")
    add_models(verb)
    verb.add_argument("--into", metavar="DIR", default="bundles", help="where the bundles go (default: bundles)")
    add_running(verb, "--device", "--jobs", "--profile")
    add_out(verb)
