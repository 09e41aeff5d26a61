"""The controller's end of a zygote, which forks a child per probe, and of the C++ worker, a process per probe."""

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.errors import EnvironmentUnavailable
from harness.machine.load import cpu_s_of
from harness.machine.processes import REAP_DEADLINE_S, kill_group, reap
from harness.probing import loaded_libraries, processes
from harness.probing.events import EventTail
from harness.store.json import from_json
from harness.worker import wire

START_DEADLINE_S = 180.0
WARNING_IS_ERROR = "PYTHONWARNINGS makes this warning an error; error::FutureWarning, say, leaves others alone"

GONE = -1


@dataclass(eq=False)
class Child:
    """A probe's process. ``ended`` is set when it has been reaped, or when its zygote died.

    Attributes:
        birth: as ``process.birth_of`` has it, ``GONE`` if it had ended before anybody could ask, None if unknown.
        exited: set when it is known to have ended, also while it is held and therefore not reaped.
        killed: set when somebody has ended it: whoever still looks into it need not go on.
    """

    run_dir: str
    pid: int | None = None
    birth: int | None = None
    status: int | None = None
    max_rss_bytes: int | None = None
    started: threading.Event = field(default_factory=threading.Event)
    exited: threading.Event = field(default_factory=threading.Event)
    killed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    _released: threading.Condition = field(default_factory=threading.Condition)
    _holders: int = 0

    @contextlib.contextmanager
    def pinned(self) -> Iterator[int | None]:
        """Yield its number, None if it has none any more; meanwhile no other process is given that number.

        That holds for whom this process reaps. A forked child is reaped by its zygote: there it is only made sure
        that no other process has the number yet.
        """
        with self._released:
            self._holders += 1
        try:
            reused = self.pid is not None and self.birth is not None and processes.is_another(self.pid, self.birth)
            yield None if reused or self.ended.is_set() else self.pid
        finally:
            with self._released:
                self._holders -= 1
                self._released.notify_all()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Wait until nobody holds it, and let nobody do so meanwhile: for whoever reaps it and sets ``ended``."""
        with self._released:
            self._released.wait_for(lambda: self._holders == 0)
            yield

    def kill(self) -> None:
        with self.pinned() as pid:
            if pid is not None:
                kill_group(pid)
        self.killed.set()


class Zygote:
    """One process per environment that has imported torch and run no operator.

    Thread-safe: any thread may ``fork``; one reader thread dispatches the answers. If the zygote dies, every child
    that still ran ends without a status: nothing is known of it.

    Attributes:
        import_cpu_s: CPU time that importing torch took, whatever it waited for the disk; 0 until it is ready.
    """

    def __init__(self, interpreter: str, run_dir: Path, env: Mapping[str, str], *, name: str = "") -> None:
        self._run_dir = run_dir
        self._name = name or interpreter
        self._children: dict[str, Child] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._dead = threading.Event()
        self._closing = False
        self.import_cpu_s = 0.0
        try:
            self._process = processes.start_worker(interpreter, run_dir, env)
        except OSError as error:
            raise EnvironmentUnavailable(
                f"{interpreter} cannot be started: {error.strerror or error}", "name a working interpreter with --env"
            ) from error
        self._reader = threading.Thread(target=self._read, name=f"zygote {self._process.pid}", daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        return not self._dead.is_set()

    def wait_ready(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Wait until torch is imported. Raises ``EnvironmentUnavailable``: it, or a library, cannot be, or too late."""
        limit = time.monotonic() + deadline_s
        while not self._ready.wait(0.1):
            if self._dead.is_set():
                self.close()
                refused = loaded_libraries.refused(self._run_dir, self._name)
                raise refused or EnvironmentUnavailable(self._why_dead(), f"full output in {self._run_dir}")
            if time.monotonic() > limit:
                self.close()
                raise EnvironmentUnavailable(
                    f"importing torch took more than {deadline_s:.0f} s", f"see {self._run_dir / wire.STDERR}"
                )
        self.import_cpu_s = self.import_cpu_s or cpu_s_of(self._process.pid)

    def fork(self, run_dir: Path, *, batch: bool = False, within: Child | None = None) -> Child:
        """Fork a child that does the request in ``run_dir``.

        ``batch``: it does none itself: it is a batch worker, and waits for requests; ``within``: nothing is forked,
        this batch worker does it. The child has its number: both are killed as one.
        """
        child = Child(run_dir=str(run_dir))
        order = {"run_dir": child.run_dir, **({"batch": True} if batch else {})}
        if within is not None:
            order["within"] = within.run_dir
        with self._lock:
            self._children[child.run_dir] = child
            try:
                if self._process.stdin is None or self._dead.is_set():
                    raise BrokenPipeError
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()
            except (OSError, ValueError):  # ValueError: closed meanwhile by another thread
                self._dead.set()  # a repeat must find a new zygote, even before the reader has seen the end of this one
                self._bury(child)
        return child

    def close(self) -> bool:
        """Kill the zygote and all its children; False if something could not be reaped."""
        with self._lock:
            self._closing = True  # how a child ends from here on is our doing
            children = list(self._children.values())
        for child in children:
            child.kill()
        if self.alive and self._ready.is_set():  # it ends what they leave, wherever that has moved to
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(REAP_DEADLINE_S)
        return reap(self._process, self._reader)

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        try:
            for line in stream:
                with contextlib.suppress(ValueError, KeyError, TypeError):  # printed before our code had the say
                    self._dispatch(from_json(line, dict[str, object]))
        finally:
            self._dead.set()
            with self._lock:
                for child in list(self._children.values()):
                    self._bury(child)

    def _dispatch(self, answer: dict[str, object]) -> None:
        if "ready" in answer:
            self._ready.set()
            return
        with self._lock:
            child = self._children[str(answer["run_dir"])]
            if "pid" in answer:
                pid = int(str(answer["pid"]))
                child.birth = processes.birth_of(pid) or GONE
                child.pid = pid
                child.started.set()
                if self._closing:
                    child.kill()
            elif "gone" in answer:
                self._bury(child)
            elif not self._closing:
                child.status = int(str(answer["status"]))
                if "max_rss_bytes" in answer:
                    child.max_rss_bytes = int(str(answer["max_rss_bytes"]))
                del self._children[child.run_dir]
                child.ended.set()

    def _bury(self, child: Child) -> None:
        self._children.pop(child.run_dir, None)
        child.kill()  # the kernel ends the child with the zygote, but not what it has started
        child.started.set()
        child.ended.set()

    def _why_dead(self) -> str:
        tail = EventTail(self._run_dir / wire.EVENTS)
        failure = tail.refresh().own_failure
        if failure is not None:
            as_error = f" ({WARNING_IS_ERROR})" if failure.type.endswith("Warning") else ""
            return f"torch cannot be imported: {failure.type}: {failure.first_line}{as_error}"
        lines = (self._run_dir / wire.STDERR).read_text(errors="replace").strip().splitlines()
        how = "" if self._process.returncode is None else f" ({processes.describe_exit(self._process.returncode)})"
        return f"the worker ended before torch was imported{how}: {lines[-1].strip()[:300] if lines else 'no output'}"


def start(binary: Path, run_dir: Path, env: Mapping[str, str], *, kept: bool = False) -> Child:
    """Start ``binary`` on a request; ``kept``: all it starts ends with it. Raises ``EnvironmentUnavailable``."""
    child = Child(run_dir=str(run_dir))
    try:
        started = processes.start_native(binary, run_dir, env, kept=kept)
    except OSError as error:
        raise EnvironmentUnavailable(
            f"{binary} cannot be started: {error.strerror or error}", "delete its folder: it is built again"
        ) from error
    child.birth = processes.birth_of(started.number)
    child.pid = started.number
    child.started.set()
    threading.Thread(target=_wait, args=(child, started), name=f"native {started.pid}", daemon=True).start()
    return child


def _wait(child: Child, started: "subprocess.Popen[bytes]") -> None:
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    kill_group(started.pid)  # before it is reaped: its number is nobody else's yet
    child.exited.set()
    with child.released():  # nobody looks into it or is about to send it a signal
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        child.status = status
        child.max_rss_bytes = usage.ru_maxrss * 1024
        child.ended.set()
