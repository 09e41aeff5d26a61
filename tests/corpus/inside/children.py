"""One forked process for each job of a list, from a process that has imported torch and run no operator of it."""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List

POLL_S = 0.01
Job = Dict[str, Any]


def run(jobs: List[Job], work: Callable[[Job], Dict[str, Any]], folder: Path, deadline_s: float) -> None:
    """Write ``{"job": NAME, "ended": HOW, ...}`` for each job as a line of standard output, as each ends.

    ``ended`` is ``done`` (with what ``work`` returned), ``signal N``, ``status N``, or ``deadline``. What a child
    prints goes into a file in ``folder``.
    """
    for job in jobs:
        result = folder / "result.json"
        result.unlink(missing_ok=True)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _child(job, work, result, folder / "printed.txt")
        ended = _wait(child, started + deadline_s)
        line = {"job": job["name"], "ended": ended, "seconds": round(time.monotonic() - started, 2)}
        if result.exists():
            line.update(json.loads(result.read_text()))
        print(json.dumps(line), flush=True)


def _child(job: Job, work: Callable[[Job], Dict[str, Any]], result: Path, printed: Path) -> None:
    try:
        os.setsid()
        sink = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        try:
            found = work(job)
        except BaseException as error:  # noqa: BLE001  what it raised is the answer
            found = {
                "error": type(error).__name__,
                "message": str(error)[:2000],
                "trace": traceback.format_exc()[-1500:],
            }
        temporary = result.with_suffix(".new")
        temporary.write_text(json.dumps(found))
        temporary.rename(result)
    finally:
        os._exit(0)


def _wait(child: int, deadline: float) -> str:
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "deadline"
        time.sleep(POLL_S)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return "done" if os.WEXITSTATUS(status) == 0 else f"status {os.WEXITSTATUS(status)}"


def quiet() -> None:
    """Keep one thread and no warnings, before torch is imported."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    if not sys.warnoptions:
        import warnings

        warnings.simplefilter("ignore")
