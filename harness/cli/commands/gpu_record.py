"""``gpu-record``: everything that the gate does on a device, in one go, and a record of it."""

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

from harness.cli.help import CommandHelp
from harness.cli.options import add_models, add_out, add_running, add_sides, options_of
from harness.cli.terminal import say

FOLDER = "docs/gpu"

HELP = CommandHelp(
    "Look at this machine, export the models on its GPU, load and call them, initialize them in every scenario, time "
    "them, and write down what ran, what failed and how long each part took; after --minutes with what is there.",
    (
        ("--env old=OLD_PYTHON --env new=NEW_PYTHON", "two releases, the old against the new"),
        ("--env old=PYTHON --env new=PYTHON --minutes 9", "one torch under two profiles: judges no upgrade"),
        ("--resume last --minutes 9", "go on with what the last one did not come to"),
        ("--device cpu --into reports", "a rehearsal, which is never green"),
    ),
    "0 everything ran on a GPU and is compatible, 1 incompatible, 3 environment not provisioned or no GPU, "
    "4 inconclusive: no upgrade or no GPU or not everything",
    "guide/gpu-record.md",
)
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


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the sides, the models, and how long it may take."""
    add_sides(command)
    add_models(command)
    command.add_argument("--device", metavar="NAME", help="torch's name of the device (default: cuda)")
    add_running(command, "--jobs", "--profile", "--new-profile")
    command.add_argument(
        "--minutes", type=_minutes, default=25.0, metavar="N", help="end after N minutes with what is there (25)"
    )
    command.add_argument(
        "--resume", metavar="RECORD", help="go on with the parts that did not end ('last': the newest)"
    )
    command.add_argument("--into", metavar="DIR", help=f"where the record is written (default: {FOLDER})")
    add_out(command)


def _minutes(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1e6:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number above 0, such as 25, got {text!r}")


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Make the record."""
    from harness.decision.gpu_record import exit_code
    from harness.report.formats import GPU_RECORD
    from harness.run.gpu_record.record import make_record
    from harness.run.options import shown_path
    from harness.system.progress import Progress

    words = _handed_on(parsed)
    if parsed.device is None and (words or parsed.resume is None):
        parsed.device = "cuda"
        words = _handed_on(parsed)
    options, progress = options_of(parsed, arguments), Progress()
    into = Path(parsed.into).absolute() if parsed.into is not None else options.project / FOLDER
    recorded = make_record(options, words, progress, minutes=parsed.minutes, into=into)
    if recorded.file is not None:
        say(GPU_RECORD.render("markdown", recorded.record))
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
