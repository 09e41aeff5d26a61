"""Starts and ends worker processes. Every process has its own session; the whole group is killed."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.worker import wire

REAP_DEADLINE_S = 5.0
STACK_DUMP_DEADLINE_S = 1.0
BOOTSTRAP = Path(__file__).resolve().parent.parent / "worker" / "bootstrap.py"

# What a worker inherits: enough to find libraries and a home, and nothing that could steer Python or torch.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")

# The kernel sends the parent-death signal when the *thread* that started a child ends, so all workers are
# started by one thread that lives as long as this process.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


def worker_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return a worker's environment variables, built from nothing; ``extra`` comes from the serving profile.

    ``PYTHONHASHSEED=0`` because the order of code in an archive follows the hash seed.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "PYTHONHASHSEED": "0", **extra}


def start_worker(interpreter: str, run_dir: Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start ``bootstrap.py`` on ``run_dir`` with pipes for orders and answers; stderr goes to a file.

    Raises:
        OSError: the interpreter cannot be executed.
    """
    command: Sequence[str] = (interpreter, "-s", "-u", str(BOOTSTRAP), str(run_dir), str(os.getpid()))

    def start() -> "subprocess.Popen[bytes]":
        with (run_dir / wire.STDERR).open("ab") as stderr:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=worker_environment(env),
                cwd=run_dir,
                start_new_session=True,
            )

    return _spawner.submit(start).result()


def kill_group(pid: int) -> None:
    """Kill the process group that ``pid`` leads; silent where it is gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def request_stack_dump(pid: int, stacks: Path) -> None:
    """Ask a worker for the stacks of all its threads and wait until the dump stands still, 1 s at most."""
    before = stacks.stat().st_size if stacks.exists() else 0
    try:
        os.kill(pid, signal.SIGUSR1)
    except ProcessLookupError:
        return
    limit = time.monotonic() + STACK_DUMP_DEADLINE_S
    last = before
    while time.monotonic() < limit:
        time.sleep(0.05)
        size = stacks.stat().st_size if stacks.exists() else 0
        if size > before and size == last:
            return
        last = size


def reap(process: "subprocess.Popen[bytes]") -> bool:
    """Kill ``process`` with its group, close its pipes and wait for it; False if it could not be reaped."""
    kill_group(process.pid)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(REAP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def describe_wait_status(status: int) -> str:
    """Return ``"signal SIGSEGV"`` or ``"exit code 3"``; empty for a clean exit."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"signal {signal.Signals(number).name}"
        except ValueError:
            return f"signal {number}"
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code else ""
