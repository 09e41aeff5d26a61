"""Starts the programs of ``still`` as if a zygote had forked them, and watches them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from harness.core.probe import Deadline
from harness.checks.hang import watchdog
from harness.probing import conclusion
from harness.probing.zygote import Child
from tests.programs import still

PROGRAM = Path(still.__file__)
# Far longer than any test: what ends before was proven, not waited for.
PATIENT = Deadline(load_s=120.0, call_s=120.0, total_s=240.0)
# Silent for longer than a blocked process may be, and well.
WELL = (
    "abba",
    "inherited_gil",
    "own_pipe",
    "forked_processes",
    "loads_while_serving",
    "without_a_phase",
    "alone_at_the_barrier",
    "beside_an_idle_pool",
    "beside_the_helpers_of_cuda",
    "helper_sleeps",
    "helper_wakes_up_in_a_pool_of_old",
    "helper_hears_nothing",
    "helper_waits_for_a_child",
    "helper_looks_after_a_child",
    "helper_reads_from_another_process",
    "helper_waits_for_a_file_lock",
    "helper_waits_with_a_limit",
    "retries",
    "retries_until_a_helper_is_done",
    "retries_until_a_child_is_done",
    "sleeps",
    "waits_once_with_a_limit",
    "hears_nothing",
    "polls_a_socket",
    "reads_from_another_process",
    "waits_for_a_child",
    "child_computes",
    "waits_for_a_file_lock",
    "writes_to_disk",
    "slow_but_progressing",
    "overtaken",
)


def start(folder: Path, name: str, seconds: float | None = None, before: Sequence[str] = ()) -> Child:
    """Start a program; ``before`` is put before its command line (``nice``, ``taskset``)."""
    folder.mkdir(parents=True)
    command = [*before, sys.executable, "-S", str(PROGRAM), str(folder), name]
    if seconds is not None:
        command.append(str(seconds))
    with (folder / "stderr").open("wb") as stderr:
        running = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stderr=stderr)
    child = Child(run_dir=str(folder), pid=running.pid)
    child.started.set()

    def wait() -> None:
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
        child.exited.set()
        with child.released():
            child.status = running.wait()
            child.ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return child


def watch_all(
    folder: Path,
    programs: Mapping[str, float | None],
    deadline: Deadline,
    investigate: watchdog.Investigate | None = None,
) -> dict[str, conclusion.Ending]:
    """Watch some programs at once, by name (and, of healthy ones, for how long they take).

    What follows a colon in a name is no part of it: the same program twice, in folders of their own.
    """

    def watch(name: str) -> conclusion.Ending:
        child = start(folder / name, name.partition(":")[0], programs[name])
        try:
            return watchdog.watch(child, folder / name, deadline, investigate=investigate)
        finally:
            end(child)

    with ThreadPoolExecutor(len(programs)) as pool:
        return dict(zip(programs, pool.map(watch, programs), strict=True))


def end(child: Child) -> None:
    """Kill what is left of a program's group."""
    if child.pid is not None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    assert child.ended.wait(10)


# Ends with whoever started it, however that ends.
HOG = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@contextmanager
def hogs(count: int, cpus: set[int] | None = None) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Keep CPUs busy with so many processes."""
    running = [subprocess.Popen([sys.executable, "-S", "-c", HOG], start_new_session=True) for _ in range(count)]
    try:
        for hog in running:
            if cpus is not None:
                os.sched_setaffinity(hog.pid, cpus)
        yield running
    finally:
        for hog in running:
            hog.kill()
            hog.wait()


def one_cpu() -> int:
    """Return a CPU that this process may use."""
    return min(os.sched_getaffinity(0))


def monotonic_s() -> float:
    """Return the clock of events, in seconds."""
    return time.monotonic_ns() * 1e-9
