"""What all verbs share: the options that were typed, and how an answer is written."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence

from harness.commands.options import Options
from harness.planning.schema import OPTIONS


def options_of(parsed: argparse.Namespace, arguments: Sequence[str]) -> Options:
    """Return what was typed."""
    given = vars(parsed)
    return Options(
        project=parsed.project.resolve(),
        overrides={name: given[name] for name in OPTIONS if given.get(name) not in (None, [])},
        assignments=given.get("assignments") or (),
        environments=given.get("env") or (),
        expression=given.get("expression"),
        scenarios=given.get("scenario") or (),
        golden=given.get("golden"),
        artifacts=given.get("artifacts") or (),
        libraries=given.get("libraries") or (),
        out=given.get("out"),
        resume=given.get("resume"),
        arguments=arguments,
    )


def say(text: str) -> None:
    """Write to standard output; a reader that stops reading, or knows ASCII only, does not change the exit code."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def colour() -> bool:
    """Whether the reader sees colours, and wants to."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def width() -> int:
    """Return how wide a text may be, in columns."""
    return max(80, min(120, shutil.get_terminal_size((100, 24)).columns))
