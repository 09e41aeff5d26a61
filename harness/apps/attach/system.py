"""``attach --system``: which other process of the machine holds up one that is slow or stalls."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.terminal import say, shown
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.core.interference import Interference

LEAST_S, MOST_S = 2.0, 3600.0
FOLDER = Path("reports", "attach-system")
TRACE = "trace.json"


def add_options(command: argparse.ArgumentParser, which: "argparse._MutuallyExclusiveGroup") -> None:
    """Add the options of ``--system``, which itself stands among ``which``."""
    which.add_argument(
        "--system",
        action="store_true",
        help="record all processes: who holds up the one of --pid, or the one that waits most",
    )
    command.add_argument(
        "--pid", dest="held_up", type=int, metavar="PID", help="with --system: the process that is slow or stalls"
    )
    command.add_argument(
        "--seconds", type=float, default=30.0, metavar="N", help="with --system: how long to record (default: 30)"
    )


def run(parsed: argparse.Namespace) -> "Interference":
    """Record, write the result and its trace to ``parsed.out`` or ``FOLDER``, print it, return it for its exit code.

    Raises:
        ConfigError: there is no such process, nobody waits, or so many seconds cannot be recorded.
    """
    from harness.checks.interference.check import check
    from harness.checks.interference.recorder import CHOOSE_S, Recorder, most_waiting
    from harness.checks.interference.timeline import timeline
    from harness.machine.progress import Progress
    from harness.report.formats import INTERFERENCE
    from harness.report.trace import render_trace
    from harness.verdict.interference import culprits

    if not LEAST_S <= parsed.seconds <= MOST_S:
        raise ConfigError(f"--seconds {parsed.seconds:g}", f"name from {LEAST_S:g} to {MOST_S:g} seconds")
    progress = Progress()
    if parsed.held_up is None:
        progress.stage("look which process waits most", left_s=CHOOSE_S)
    recorder = Recorder(most_waiting() if parsed.held_up is None else parsed.held_up)
    progress.stage("record", left_s=parsed.seconds)
    recording = recorder.record(parsed.seconds)
    progress.stage("compare")
    found = check(recording, chosen=parsed.held_up is None)
    found = replace(found, culprits=culprits(found))
    folder = parsed.out or FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TRACE).write_text(render_trace(timeline(recording)))
        for name, content in INTERFERENCE.rendered_files(found):
            (folder / name).write_bytes(content)
    except OSError as error:
        progress.note(f"the trace is not written: {folder}: {error.strerror}; name another folder with --out")
        folder = Path()
    progress.finish()
    say(INTERFERENCE.render(parsed.format, found, shown(str(folder) if folder.name else "")))
    return found
