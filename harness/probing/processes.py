"""Starts worker processes, each in a session of its own, and asks them for their stacks; tells how they ended."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from harness.machine import pool
from harness.machine.processes import PYTHON, REAP_DEADLINE_S, Stream, kill_group, reap
from harness.worker import wire

STACK_DUMP_DEADLINE_S = 1.0
BOOTSTRAP = Path(__file__).resolve().parent.parent / "worker" / "bootstrap.py"
KEEPER = BOOTSTRAP.with_name("orphans.py")

# What a worker inherits: enough to find libraries and a home, and nothing that could steer Python or torch.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")

# The kernel sends the parent-death signal when the *thread* that started a child ends, so all workers are
# started by one thread that lives as long as this process.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


def worker_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return variables built from nothing, ``extra`` on top; ``PYTHONHASHSEED=0``: archive code order follows it."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "PYTHONHASHSEED": "0", **extra}


class Worker(subprocess.Popen[bytes]):
    """A worker's process, or its keeper's, which ends alike; ``number``: of the worker itself."""

    number: int


def start_worker(interpreter: str, run_dir: Path, env: Mapping[str, str], *, kept: bool = False) -> Worker:
    """Start ``bootstrap.py`` on ``run_dir`` with pipes for orders and answers; stderr goes to a file.

    ``kept``: whether a keeper starts it, for what it starts may move to a session of its own. Raises ``OSError``: the
    interpreter cannot be executed.
    """

    def start() -> Worker:
        with (run_dir / wire.STDERR).open("ab") as stderr:
            command = (interpreter, "-s", "-u", str(BOOTSTRAP), str(run_dir))
            return _started(command, run_dir, env, (subprocess.PIPE, subprocess.PIPE, stderr), kept=kept)

    return _spawned(start)


def start_native(
    binary: Path, run_dir: Path, env: Mapping[str, str], *, orders: bool = False, kept: bool = False
) -> Worker:
    """Start the C++ worker in a session; no ``orders``: it answers by files alone. Raises ``OSError``."""

    def start() -> Worker:
        with (run_dir / wire.STDERR).open("ab") as stderr, (run_dir / wire.STDOUT).open("ab") as stdout:
            answers = (subprocess.PIPE, subprocess.PIPE) if orders else (subprocess.DEVNULL, stdout)
            return _started((str(binary), str(run_dir)), run_dir, env, (*answers, stderr), kept=kept)

    return _spawned(start)


def end(worker: Worker) -> bool:
    """Kill a worker with its group, and by its keeper what it has left; False if it could not be reaped."""
    if worker.number != worker.pid and worker.poll() is None:
        kill_group(worker.number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(REAP_DEADLINE_S)
    return reap(worker)


def _started(
    command: Sequence[str], run_dir: Path, env: Mapping[str, str], streams: Sequence[Stream], *, kept: bool
) -> Worker:
    asker, variables = str(os.getpid()), worker_environment(env)
    if not kept:
        worker = _popen((*command, asker), run_dir, variables, streams)
        worker.number = worker.pid
        return worker
    read, write = os.pipe()
    with os.fdopen(read, "rb") as report:
        try:
            keeping = (PYTHON, "-I", "-S", str(KEEPER), asker, str(write), json.dumps(variables), *command)
            worker = _popen(keeping, run_dir, worker_environment({}), streams, (write,))
        finally:
            os.close(write)
        number, *refusal = map(int, report.read().split() or (b"0", b"%d" % errno.ECHILD))
    if refusal:
        reap(worker)
        raise OSError(refusal[0], os.strerror(refusal[0]), command[0])
    worker.number = number
    return worker


def _popen(
    command: Sequence[str],
    run_dir: Path,
    variables: Mapping[str, str],
    streams: Sequence[Stream],
    inherited: Sequence[int] = (),
) -> Worker:
    stdin, stdout, stderr = streams
    return Worker(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=variables,
        cwd=run_dir,
        start_new_session=True,
        pass_fds=inherited,
    )


def _spawned(start: Callable[[], Worker]) -> Worker:
    """Return what ``start`` starts in the spawner's thread; whoever is interrupted meanwhile leaves no process."""
    started = _spawner.submit(start)
    try:
        return pool.answer(started)
    except KeyboardInterrupt:
        started.add_done_callback(_end_unwanted)
        raise


def _end_unwanted(started: Future[Worker]) -> None:
    if not started.cancelled() and started.exception() is None:
        end(started.result())


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


def describe_exit(code: int) -> str:
    """Return ``"exit code 3"``, or ``"signal SIGSEGV"`` for a negative one, as ``subprocess`` gives it."""
    return f"exit code {code}" if code >= 0 else f"signal {signal_name(-code)}"


def signal_name(number: int) -> str:
    """Return ``"SIGSEGV"``; the number itself for a signal that Python does not name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
