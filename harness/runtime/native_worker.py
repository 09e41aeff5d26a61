"""Starts the C++ worker: one process per probe, so that every initialization begins in a fresh process."""

import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from harness.errors import EnvironmentUnavailable
from harness.runtime import process
from harness.runtime.zygote import Child


def start(binary: Path, run_dir: Path, env: Mapping[str, str]) -> Child:
    """Start ``binary`` on the request in ``run_dir``; the child's ``ended`` is set when it has been reaped.

    Raises:
        EnvironmentUnavailable: it cannot be executed.
    """
    child = Child(run_dir=str(run_dir))
    try:
        started = process.start_native(binary, run_dir, env)
    except OSError as error:
        raise EnvironmentUnavailable(
            f"{binary} cannot be started: {error.strerror or error}", "delete its folder: it is built again"
        ) from error
    child.birth = process.birth_of(started.pid)
    child.pid = started.pid
    child.started.set()
    threading.Thread(target=_wait, args=(child, started), name=f"native {started.pid}", daemon=True).start()
    return child


def _wait(child: Child, started: "subprocess.Popen[bytes]") -> None:
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    process.kill_group(started.pid)  # before it is reaped: its number is nobody else's yet
    child.exited.set()
    with child.released():  # nobody looks into it or is about to send it a signal
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        child.status = status
        child.max_rss_bytes = usage.ru_maxrss * 1024
        child.ended.set()
