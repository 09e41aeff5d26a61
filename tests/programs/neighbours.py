"""Servers that are disturbed, and neighbours that disturb them or only seem to.

Usage: neighbours.py NAME ARGUMENT... Each prints one line when it is ready, and runs until it is ended.
"""

import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS: dict[str, Callable[..., None]] = {}
# 4 KiB pages of the large server: its page tables take about 40 ms to walk.
LARGE = 2 << 30
WRITTEN = 64 << 20


def program(function: Callable[..., None]) -> Callable[..., None]:
    PROGRAMS[function.__name__] = function
    return function


def ready() -> None:
    print("ready", flush=True)


def every(seconds: float) -> Iterator[None]:
    """Yield by the clock, however long the work takes, until whoever started the program is gone."""
    at, parent = time.monotonic(), os.getppid()
    while os.getppid() == parent:
        yield
        now = time.monotonic()
        at = max(at + seconds, now)
        time.sleep(at - now)


@program
def computes(cpu: str) -> None:
    """Serve requests that take 3 ms of CPU, 100 in a second."""
    os.sched_setaffinity(0, {int(cpu)})
    ready()
    for _ in every(0.01):
        burn(0.003)


@program
def maps() -> None:
    """Map and unmap memory as an allocator does, in a process that has much of it."""
    memory = mmap.mmap(-1, LARGE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    block = bytes(1 << 20)
    for _ in range(LARGE // len(block)):
        memory.write(block)
    ready()
    for _ in every(0.003):
        for _ in range(10):
            with mmap.mmap(-1, 1 << 16) as buffer:
                buffer[0] = 1


@program
def writes(file: str) -> None:
    """Append to a log and wait until it is on the disk, 50 times in a second."""
    ready()
    with Path(file).open("wb", 0) as log:
        for _ in every(0.02):
            log.write(bytes(4096))
            os.fdatasync(log.fileno())


@program
def reads_smaps(pid: str, seconds: str) -> None:
    """Walk the page tables of a process, as monitoring agents do."""
    file = Path("/proc", pid, "smaps_rollup")
    ready()
    for _ in every(float(seconds)):
        file.read_bytes()


@program
def burns(cpu: str, seconds: str, share: str) -> None:
    os.sched_setaffinity(0, {int(cpu)})
    ready()
    for _ in every(float(seconds)):
        burn(float(seconds) * float(share))


@program
def fsyncs(file: str, seconds: str) -> None:
    """Write much and wait until it is on the disk, as whoever saves checkpoints does."""
    data = os.urandom(WRITTEN)
    ready()
    for _ in every(float(seconds)):
        with Path(file).open("wb", 0) as saved:
            saved.write(data)
            os.fsync(saved.fileno())


def burn(seconds: float) -> None:
    """Use a CPU for so many seconds of its time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
