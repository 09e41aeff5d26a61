"""``completion``: the command line, for a shell that completes it."""

import argparse
from collections.abc import Sequence

from harness.arguments.completion_script import SCRIPT, render_completion
from harness.arguments.parser import parser
from harness.errors import ExitCode
from harness.verbs.shared import say


def completion(parsed: argparse.Namespace, _arguments: Sequence[str]) -> int:
    """Write the script that teaches a shell."""
    say(render_completion(parser(SCRIPT), parsed.shell) + "\n")
    return ExitCode.COMPATIBLE
