"""Runs a program that has no watchdog of its own, and tells how it ended."""

import subprocess
import tempfile
import time
from pathlib import Path

from harness.domain.probe import WorkerLimits
from harness.runtime import codec, process
from harness.runtime.reproducer_files import LIMITED, START_S

LOOK_S = 0.05
LONGEST_SAID = 100_000


def run_snippet(program: Path, interpreter: str, *, limits: WorkerLimits, wait_s: float) -> tuple[str, str]:
    """Return (how it ended: "hang", "crash", "error", "end" or "unknown", what it said after its first line).

    Args:
        program: it prints a line once torch is imported.
        wait_s: from each line that it prints to the next, and to its end.
    """
    command = (interpreter, "-s", "-u", str(LIMITED), codec.canonical(limits).decode(), str(program))
    with tempfile.TemporaryFile() as output:
        try:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=process.worker_environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}),
                cwd=program.parent,
                start_new_session=True,
            )
        except OSError:
            return "unknown", ""
        try:
            hangs = _hangs(started, Path(f"/proc/self/fd/{output.fileno()}"), wait_s)
        finally:
            process.reap(started)
        output.seek(0)
        text = output.read(LONGEST_SAID).decode(errors="replace")
    said = text.partition("\n")[2]
    if hangs or started.returncode is None:
        return ("hang" if text else "unknown"), said
    if started.returncode < 0:
        return "crash", said
    return ("error" if started.returncode else "end"), said


def _hangs(started: "subprocess.Popen[bytes]", output: Path, wait_s: float) -> bool:
    """Wait for the end; return whether it was silent for too long, which the import of torch may be for longer."""
    known, since = 0, time.monotonic()
    while started.poll() is None:
        size = output.stat().st_size
        if size != known:
            known, since = size, time.monotonic()
        if time.monotonic() - since > (wait_s if known else START_S):
            return True
        time.sleep(LOOK_S)
    return False
