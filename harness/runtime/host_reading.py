"""Reads the counters of this machine and its control groups: once before a run and once after it.

Nothing here raises: what cannot be read is not told. Files only: it takes milliseconds.
"""

import os
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from harness.domain.course import Reading
from harness.domain.host import Gpus
from harness.runtime.host_cores import governors
from harness.runtime.machine import CoreTime, core_times_in, quota
from harness.runtime.small_files import text_of

PROC: Final = Path("/proc")
SYS: Final = Path("/sys")
SHARED: Final = Path("/dev/shm")  # noqa: S108  it is looked at, nothing is put there
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def read(
    folder: Path,
    *,
    gpus: Gpus | None = None,
    proc: Path = PROC,
    sys: Path = SYS,
    shared: Path = SHARED,
    allowed: Collection[int] | None = None,
) -> Reading:
    """Return what the machine's counters are now.

    Args:
        folder: on whose disk the run is kept.
        gpus: as they are now, where the run uses one.
        allowed: the cores that may be used; None asks the kernel.
    """
    cores = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    times = core_times_in(text_of(proc / "stat"))
    spent = sum((times[core] for core in cores if core in times), CoreTime())
    limits, groups = quota(sys / "fs" / "cgroup", proc / "self" / "cgroup"), _Groups(proc, sys)
    cpus, machine = sys / "devices" / "system" / "cpu", text_of(proc / "vmstat")
    swapped = [_counter(machine, name) for name in ("pswpin", "pswpout")]
    return Reading(
        at_s=time.monotonic(),
        slept_s=time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC),
        cores=len(cores),
        core_s=spent.total,
        busy_s=spent.busy,
        stolen_s=spent.stolen,
        own_s=_own_s(),
        quota_cores=limits.cores,
        throttled_s=limits.throttled_s,
        hot=_hot(cpus, cores),
        governors=governors(cpus, cores),
        oom_kills=groups.counter("memory", "memory.events", "memory.oom_control", "oom_kill"),
        machine_oom_kills=_counter(machine, "oom_kill"),
        tasks_refused=groups.counter("pids", "pids.events", "pids.events", "max"),
        swapped_bytes=None if None in swapped else PAGE_BYTES * sum(one or 0 for one in swapped),
        available_bytes=min([*_available(text_of(proc / "meminfo")), *groups.room()], default=None),
        disk_bytes=_free(folder),
        shared_bytes=_free(shared),
        gpus=gpus,
    )


class _Groups:
    """The control groups of this process, of either version; inside a container only the root may be there."""

    def __init__(self, proc: Path, sys: Path) -> None:
        self._mount = sys / "fs" / "cgroup"
        self._lines = [line.split(":", 2) for line in text_of(proc / "self" / "cgroup").splitlines()]

    def folders(self, controller: str) -> Iterator[Path]:
        """Yield the own group and those above it."""
        for _, controllers, path in (line for line in self._lines if len(line) == 3):
            if controllers and controller not in controllers.split(","):
                continue
            mounts = [self._mount / controller] if controllers else [self._mount, self._mount / "unified"]
            inside = PurePosixPath(path.lstrip("/"))
            for mount in mounts:
                yield from (mount / part for part in (inside, *inside.parents))

    def counter(self, controller: str, file: str, older: str, name: str) -> int | None:
        """Return a counter of the nearest group that has it; ``older`` is the file of version 1."""
        for folder in self.folders(controller):
            for text in (text_of(folder / file), text_of(folder / older)):
                found = _counter(text, name)
                if found is not None:
                    return found
        return None

    def room(self) -> Iterator[int]:
        """Yield how much memory each group with a limit has left; files in memory may be dropped, so they count."""
        for folder in self.folders("memory"):
            for limit, used in (
                ("memory.max", "memory.current"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            ):
                most, now = text_of(folder / limit).strip(), text_of(folder / used).strip()
                if most.isdecimal() and now.isdecimal():  # "max" is none
                    dropped = _counter(text_of(folder / "memory.stat"), "inactive_file") or 0
                    yield max(int(most) - int(now) + dropped, 0)


def _counter(text: str, name: str) -> int | None:
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _own_s() -> float:
    """Return the CPU time of this process and of all below it that have ended and were waited for."""
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


def _hot(cpus: Path, cores: Collection[int]) -> int | None:
    """Return how often the cores, and the packages that they are in, were slowed down for their heat (Intel)."""
    folders = [cpus / f"cpu{core}" / "thermal_throttle" for core in cores]
    texts = [text_of(folder / f"{part}_throttle_count").strip() for folder in folders for part in ("core", "package")]
    counts = [int(text) for text in texts if text.isdecimal()]
    return sum(counts) if counts else None


def _available(meminfo: str) -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", meminfo, re.MULTILINE)
    if found:
        yield int(found[1]) * 1024


def _free(folder: Path) -> int | None:
    try:
        told = os.statvfs(folder)
    except OSError:
        return None
    return told.f_bavail * told.f_frsize
