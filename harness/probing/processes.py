"""Starts worker processes, each in a session of its own, and asks them for their stacks; tells how they ended."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from harness.system import pool
from harness.system.processes import reap
from harness.worker import wire

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

    return _spawned(start)


def start_native(
    binary: Path, run_dir: Path, env: Mapping[str, str], *, orders: bool = False
) -> "subprocess.Popen[bytes]":
    """Start the C++ worker on ``run_dir``, in a session of its own.

    Args:
        orders: whether it gets pipes for orders and answers; else it answers through files alone.

    Raises:
        OSError: it cannot be executed.
    """

    def start() -> "subprocess.Popen[bytes]":
        with (run_dir / wire.STDERR).open("ab") as stderr, (run_dir / wire.STDOUT).open("ab") as stdout:
            return subprocess.Popen(
                (str(binary), str(run_dir), str(os.getpid())),
                stdin=subprocess.PIPE if orders else subprocess.DEVNULL,
                stdout=subprocess.PIPE if orders else stdout,
                stderr=stderr,
                env=worker_environment(env),
                cwd=run_dir,
                start_new_session=True,
            )

    return _spawned(start)


def _spawned(start: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
    """Return what ``start`` starts in the spawner's thread; whoever is interrupted meanwhile leaves no process."""
    started = _spawner.submit(start)
    try:
        return pool.answer(started)
    except KeyboardInterrupt:
        started.add_done_callback(_end_unwanted)
        raise


def _end_unwanted(started: "Future[subprocess.Popen[bytes]]") -> None:
    if not started.cancelled() and started.exception() is None:
        reap(started.result())


def birth_of(pid: int) -> int | None:
    """Return when the kernel has started ``pid``, in its own ticks; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def is_another(pid: int, birth: int) -> bool:
    """Whether the number ``pid`` has meanwhile been given to a process that was not born then."""
    return birth_of(pid) not in (None, birth)


def stacks_of(pid: int, run_dir: Path) -> Path:
    """Return the file into which ``pid`` dumps its stacks: that of the worker, or of a process that it has forked."""
    own = run_dir / f"{wire.STACKS}.{pid}"
    return own if own.exists() else run_dir / wire.STACKS


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


def describe_wait_status(status: int) -> str:
    """Return ``"signal SIGSEGV"`` or ``"exit code 3"``."""
    return describe_exit(os.waitstatus_to_exitcode(status))


def describe_exit(code: int) -> str:
    """Return the same for an exit code as ``subprocess`` gives it: negative for a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
