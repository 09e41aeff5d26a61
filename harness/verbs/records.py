"""``golden``: what people decide about a run, kept in git."""

import argparse
from collections.abc import Sequence

from harness.commands import golden as records
from harness.errors import ExitCode
from harness.verbs.shared import options_of


def golden(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Keep or show accepted records."""
    options = options_of(parsed, arguments)
    if parsed.action == "propose":
        for folder in records.propose(options, parsed.run):
            print(f"proposed {folder}")
    elif parsed.action == "accept":
        for model in records.accept(options, parsed.models, parsed.reason):
            print(f"accepted {model}")
    else:
        print(records.status(options))
    return ExitCode.COMPATIBLE
