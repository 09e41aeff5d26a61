"""Starts and ends programs: each in a session of its own, ended as a whole, also where this process is killed.

Workers alone are started otherwise, by ``harness/probing/processes.py``: they ask for their end themselves.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO

REAP_DEADLINE_S = 5.0
PYTHON = sys.executable
SUPERVISOR = Path(__file__).with_name("supervisor.py")

Stream = int | IO[bytes]


def start(
    command: Sequence[str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream,
    stderr: Stream,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Collection[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start ``command`` under a supervisor that stands for it; ``env`` None: our own. Raises ``OSError``."""
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            (PYTHON, "-I", "-S", str(SUPERVISOR), str(os.getpid()), str(write), *command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=(write, *pass_fds),
        )
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    try:
        refusal = os.read(read, 16)
    except BaseException:
        reap(process)
        raise
    finally:
        os.close(read)
    if refusal:
        reap(process)
        raise OSError(int(refusal), os.strerror(int(refusal)), command[0])
    return process


def run(
    command: Sequence[str],
    *,
    limit_s: float,
    text: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Return how a command has ended that reads ``text`` and answers within ``limit_s`` seconds.

    Raises ``OSError``: it cannot be executed; ``TimeoutExpired``: it did not end in time, and has been ended.
    """
    process = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env)
    try:
        out, errors = process.communicate(text.encode(), timeout=limit_s)
    finally:
        reap(process)
    texts = (stream.decode(errors="replace") for stream in (out, errors))
    return subprocess.CompletedProcess(command, process.returncode, *texts)


def kill_group(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Kill the process group that ``pid`` leads, or send it another signal; silent where it is gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def reap(process: "subprocess.Popen[bytes]", reader: threading.Thread | None = None) -> bool:
    """Kill ``process`` with its group, wait for it and close its pipes; False if it could not be reaped.

    A process that its work has put into another group or session is not found: it outlives the run. ``process``: leader
    of its session; ``reader``: a thread that reads its answers; their pipe is closed only after the thread has seen the
    end of it.
    """
    if process.returncode is None:  # else its number may be another's by now
        kill_group(process.pid)
    _close(process.stdin)
    try:
        process.wait(REAP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        return False
    if reader is not None:
        reader.join(REAP_DEADLINE_S)
        if reader.is_alive():
            return False  # an escaped process holds the other end; closing ours would wait for it
    _close(process.stdout)
    _close(process.stderr)
    return True


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()
