"""Writes a reproducer's case as a few lines that need no file, and keeps them only if they show it."""

import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.diagnosis.reproduce.files import LIMITED, START_S, Tensors
from harness.diagnosis.reproduce.judging import confirms
from harness.diagnosis.reproduce.snippet_text import operator_snippet, snippet
from harness.domain.probe import WorkerLimits
from harness.probing import processes
from harness.probing.facts import Attributed, Effects
from harness.probing.requests import worker_limits
from harness.store import codec
from harness.system import pool

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
                env=processes.worker_environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}),
                cwd=program.parent,
                start_new_session=True,
            )
        except OSError:
            return "unknown", ""
        try:
            hangs = _hangs(started, Path(f"/proc/self/fd/{output.fileno()}"), wait_s)
        finally:
            processes.reap(started)
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


SNIPPET = "snippet.py"


def snippet_that_shows(
    case: Mapping[str, Any],
    folder: Path,
    facts: Attributed,
    effects: Effects,
    *,
    code: str,
    tensors: Tensors,
    wait_s: float,
) -> str:
    """Return ``snippet.py``, which now lies in ``folder`` and was seen to show the symptom; empty where there is none.

    Args:
        code: of the archive; nothing for an operator.
        wait_s: how long it may be silent.
    """
    what = case["symptom"]["what"]
    if "operator" in case:
        text = operator_snippet(case, tensors.data)
    else:
        text = snippet(code, case, tensors.data) if code and what in ("hang", "crash", "error", "values") else ""
    if not text:
        return ""
    program = effects.run_dir.write(f"{folder.relative_to(effects.run_dir.path)}/{SNIPPET}", text.encode())
    limits = worker_limits(facts.plan.settings.limits, "run")

    def run(side: str) -> tuple[str, str]:
        return run_snippet(program, effects.environments[side].interpreter, limits=limits, wait_s=wait_s)

    # Numbers are wrong only beside the right ones.
    sides = ["new", "old"] if what in ("values", "any") else ["new"]
    ended = dict(zip(sides, pool.each(run, sides, jobs=facts.plan.settings.jobs), strict=True))
    how, said = ended["new"]
    old_how, old = ended.get("old", ("", ""))
    if not confirms(case["symptom"], {"how": how, "said": said, "old_how": old_how, "old": old}):
        program.unlink()
        return ""
    return text
