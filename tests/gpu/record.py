"""Make a GPU record: everything that the gate does on a device, in one go: ``python -m tests.gpu.record --help``."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli.options import add_models, add_out, add_running, add_sides, options_of
from harness.cli.parser import Parser
from harness.cli.terminal import say
from harness.core.text import visible
from harness.core.errors import ExitCode, GateError
from harness.run.options import shown_path
from harness.machine.progress import Progress
from tests.gpu.making import make_record
from tests.gpu.page import render_record
from tests.gpu.recorded import exit_code

FOLDER = "docs/gpu"
WHAT = """Look at this machine, export the models on its GPU, load and call them, initialize them in every scenario, time
them, and write down what ran, what failed and how long each part took; after --minutes with what is there."""
CODES = """exit codes: 0 everything ran on a GPU and is compatible, 1 incompatible, 3 environment not provisioned or no
GPU, 4 inconclusive: no upgrade or no GPU or not everything. More: docs/gpu/README.md"""
# By option of compat what is handed on to every part.
HANDED_ON = {
    "--env": "env",
    "--old": "old",
    "--new": "new",
    "--artifacts": "artifacts",
    "--fixtures": "fixtures",
    "-k": "expression",
    "--library": "libraries",
    "--set": "assignments",
    "--device": "device",
    "--jobs": "jobs",
    "--profile": "profile",
    "--new-profile": "new_profile",
}


def main(arguments: Sequence[str]) -> int:
    """Make the record and return its exit code; errors are one line each on standard error."""
    parsed = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _make(parsed, arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except GateError as error:
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m tests.gpu.record", description=WHAT, epilog=CODES)
    parser.add_argument("--project", type=Path, default=Path.cwd(), help="folder with pyproject.toml (default: here)")
    add_sides(parser)
    add_models(parser)
    parser.add_argument("--device", metavar="NAME", help="torch's name of the device (default: cuda)")
    add_running(parser, "--jobs", "--profile", "--new-profile")
    parser.add_argument(
        "--minutes", type=_minutes, default=25.0, metavar="N", help="end after N minutes with what is there (25)"
    )
    parser.add_argument("--resume", metavar="RECORD", help="go on with the parts that did not end ('last': the newest)")
    parser.add_argument("--into", metavar="DIR", help=f"where the record is written (default: {FOLDER})")
    add_out(parser)
    return parser


def _minutes(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1e6:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number above 0, such as 25, got {text!r}")


def _make(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    words = _handed_on(parsed)
    if parsed.device is None and (words or parsed.resume is None):
        parsed.device = "cuda"
        words = _handed_on(parsed)
    options, progress = options_of(parsed, arguments), Progress()
    into = Path(parsed.into).absolute() if parsed.into is not None else options.project / FOLDER
    recorded = make_record(options, words, progress, minutes=parsed.minutes, into=into)
    if recorded.file is not None:
        say(render_record(recorded.record))
        progress.note(f"written: {shown_path(recorded.file)}, and as JSON beside it")
    return exit_code(recorded.record)


def _handed_on(parsed: argparse.Namespace) -> list[str]:
    """Return what every part is given, as words of ``compat``."""
    words = []
    for option, name in HANDED_ON.items():
        given = getattr(parsed, name)
        values = given if isinstance(given, list) else [given] if given is not None else []
        words += [word for value in values for word in (option, value)]
    return words


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
