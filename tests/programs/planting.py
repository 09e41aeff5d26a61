"""Starts a process in a planted state: ``planted_states.cpp`` or ``.py``, with what plants it from outside."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "planted_states.cpp"
READY_S = 20.0
# State -> what a client sends, and then waits for an answer.
WHOLE, HALF = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Le"
ASKED = {
    **dict.fromkeys(("long_poll", "timed", "push", "executor", "crossed"), WHOLE),
    **dict.fromkeys(("half_request", "half_threaded"), HALF),
    **dict.fromkeys(("polled", "batch"), WHOLE.replace(b"/", b"/waits", 1)),
}
# Others are answered every two seconds, each over a connection of its own, which the client closes.
OTHERS_ANSWERED = ("polled", "batch")


class Programs:
    """The planted program in C++, and the same as a library for Python; each is compiled when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def executable(self) -> Path:
        return self._build("planted_states")

    @cached_property
    def library(self) -> Path:
        return self._build("libplanted_states.so", "-shared")

    def _build(self, name: str, *options: str) -> Path:
        made = self._folder / name
        command = ["g++", "-std=c++17", "-O1", "-fPIC", "-pthread", *options, str(SOURCE), "-o", str(made)]
        subprocess.run(command, check=True)
        return made


@dataclass(frozen=True)
class Planted:
    """``pid``: of the process that is asked about; ``children``: those that it has forked."""

    pid: int
    port: int
    children: tuple[int, ...] = ()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def planted(programs: Programs, language: str, state: str, folder: Path) -> Iterator[Planted]:
    """Run a process in that state; it and all that it has started are ended afterwards, by their ids."""
    port = free_port()
    base = {
        "stopped": "served",
        "starved": "busy",
        "load": "served",
        "half_threaded": "served",
        "polled": "served",
    }.get(state, state)
    if language == "c++":
        words = [str(programs.executable), base, str(port)]
    else:
        words = [sys.executable, str(HERE / "planted_states.py"), base, str(port), str(programs.library)]
    with contextlib.ExitStack() as ending:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, start_new_session=True
        )
        ending.callback(_end, process)
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert said[-1:] == [b"ready"], said
        if state == "stopped":
            os.kill(process.pid, signal.SIGSTOP)
        elif state == "starved":
            core = min(os.sched_getaffinity(0))
            for tid in map(int, os.listdir(f"/proc/{process.pid}/task")):
                os.sched_setaffinity(tid, {core})
            taskset = shutil.which("taskset") or "taskset"
            for _ in range(4):
                # Sessions share CPUs evenly where the kernel groups by them: each has one, as the process has.
                words = [taskset, "-c", str(core), str(programs.executable), "loop"]
                loop = subprocess.Popen(words, start_new_session=True)
                ending.callback(_end_one, loop)
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, loop.pid, -5)
        elif state == "load":
            ending.enter_context(loaded(port))
        elif state == "unanswered":
            ending.enter_context(loaded(port, connections=3))
        for _ in range(2 if state == "crossed" else state in ASKED):
            ending.enter_context(_asked_once(port, ASKED[state], pushed=state == "push"))
        if state in OTHERS_ANSWERED:
            ending.enter_context(loaded(port, connections=1, pause_s=2.0, keep=False))
        if state == "crossed":
            time.sleep(0.5)  # each has its own lock by now, and wants the other
        if state in ("busy", "storm", "starved", "load", "kept_gil", "unanswered"):
            time.sleep(0.5)
        pid = int(said[0]) if state == "zombie" else process.pid
        yield Planted(pid, port, _children(process.pid))


def _children(pid: int) -> tuple[int, ...]:
    """Return what any of its threads has forked."""
    texts = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            texts.append(file.read_text())
    return tuple(map(int, " ".join(texts).split()))


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pid in (*_children(process.pid), process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _end_one(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


@contextlib.contextmanager
def _asked_once(port: int, words: bytes, *, pushed: bool) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        if pushed:  # speak long after what the server has sent, as a client of a WebSocket
            client.recv(100)
            time.sleep(1.2)
        client.sendall(words)
        time.sleep(0.5)
        yield


@contextlib.contextmanager
def loaded(
    port: int,
    *,
    connections: int = 4,
    pause_s: float = 0.0,
    times_s: list[float] | None = None,
    keep: bool = True,
) -> Iterator[None]:
    """Send requests over so many connections at a time; ``times_s`` gets how long each took.

    ``keep``: whether a connection is used again; else it is closed after the answer.
    """
    ended = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while not ended.wait(pause_s):
                begin = time.perf_counter()
                connection.request("GET", "/")
                connection.getresponse().read()
                if not keep:
                    connection.close()
                if times_s is not None:
                    times_s.append(time.perf_counter() - begin)
        connection.close()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
