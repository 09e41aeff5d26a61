"""The cores of this machine: how many, how clocked, how busy; what they know; and which of them a benchmark gets."""

import contextlib
import functools
import os
import platform
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.core.archive import Processor
from harness.core.machine import Cores
from harness.machine import load
from harness.machine.files import text_of
from harness.machine.load import core_times_in, quota

QUIET_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where a benchmark runs.

    ``cores``: to which its processes are pinned; empty: nowhere, and ``why_not`` says why; ``ranked``: all cores that
    may be used, the best first: for callers that need more than ``cores``.
    """

    cores: tuple[int, ...] = ()
    ranked: tuple[int, ...] = ()
    why_not: str = ""

    def first(self, count: int) -> tuple[int, ...]:
        """Return the best ``count`` cores, or all there are; none where nothing is pinned."""
        return self.ranked[:count] if self.cores else ()

    def lanes(self, count: int) -> tuple["Placement", ...]:
        """Return ``count`` placements of as many cores each, the best first; fewer where the cores do not suffice."""
        size = len(self.cores)
        if not size or count == 1:
            return (self,)
        parts = [self.ranked[size * lane : size * (lane + 1)] for lane in range(min(count, len(self.ranked) // size))]
        return tuple(
            replace(self, cores=tuple(sorted(own)), ranked=(*own, *(core for core in self.ranked if core not in own)))
            for own in parts
        )


ANYWHERE = Placement(why_not="it was not asked for")


def choose(cores: int, quiet_s: float = QUIET_S) -> Placement:
    """Return the least busy cores over ``quiet_s``, on distinct physical cores first; unpinned where impossible."""
    try:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed)
    except (AttributeError, OSError) as error:
        return Placement(why_not=f"this platform cannot: {error}")
    if cores > len(allowed):
        return Placement(why_not=f"{cores} cores are wanted and {len(allowed)} may be used")
    before = load.core_times()
    time.sleep(quiet_s)
    after = load.core_times()
    busy = {core: (after[core] - before[core]).busy for core in allowed if core in after and core in before}
    ranked = rank(allowed, busy, {core: _siblings(core) for core in allowed})
    return Placement(cores=tuple(sorted(ranked[:cores])), ranked=ranked)


_OF_THE_CPU = (
    *("model", "vendor_id", "cpu family", "stepping", "microcode", "cache size", "flags", "Features"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)


@functools.cache
def processor() -> Processor:
    """Return this machine and what its CPU knows; nothing of that where the kernel does not tell."""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", text_of(Path("/proc/cpuinfo")), re.MULTILINE)
    return Processor(machine=platform.machine(), instructions=frozenset(flags[1].split() if flags else ()))


def machine_identity() -> list[str]:
    """Return what the same program may compute other bits by: machine, C library, how many CPUs there are, and each
    kind of CPU with its instructions and caches, by which libraries choose kernels and cut their work.
    """
    lines = text_of(Path("/proc/cpuinfo")).splitlines()
    cpu = {line for line in lines if line.startswith(_OF_THE_CPU)}
    return [platform.machine(), *platform.libc_ver(), str(os.cpu_count()), *sorted(cpu)]


def physical_cores() -> int:
    """Return how many physical cores this process may use; 1 where the platform does not tell."""
    try:
        allowed = os.sched_getaffinity(0)
    except (AttributeError, OSError):
        return 1
    return len({_siblings(core) & allowed for core in allowed})


def rank(allowed: Sequence[int], busy: Mapping[int, float], siblings: Mapping[int, frozenset[int]]) -> tuple[int, ...]:
    """Return cores, the best first: one thread of every physical core before a second one, the idle before the busy.

    ``busy``: core -> time at work (unknown counts as idle); ``siblings``: core -> the threads of its physical core,
    which is as busy as all of them together.
    """
    whole = {core: sum(busy.get(other, 0.0) for other in siblings.get(core, frozenset()) | {core}) for core in allowed}
    first: list[int] = []
    second: list[int] = []
    for core in sorted(allowed, key=lambda core: (whole[core], busy.get(core, 0.0), core)):
        is_taken = any(core in siblings.get(other, frozenset()) for other in first)
        (second if is_taken else first).append(core)
    return tuple(first + second)


def pin(pid: int, cores: Sequence[int]) -> str:
    """Pin a process that has just started, and all that it starts; return why that was refused, or an empty string."""
    try:
        os.sched_setaffinity(pid, cores)
    except (AttributeError, OSError) as error:
        return str(error)
    return ""


def unpin(pid: int) -> None:
    """Let every thread of a process run wherever this one may; silent where it is gone."""
    with contextlib.suppress(AttributeError, OSError):
        pin_threads(pid, os.sched_getaffinity(0))


def pin_threads(pid: int, cores: Collection[int]) -> None:
    """Move every thread of a process, and all that they start, to ``cores``; silent where it is gone."""
    with contextlib.suppress(AttributeError, OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def _siblings(core: int) -> frozenset[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        return cores_in(text)
    except (OSError, ValueError):
        return frozenset({core})


def cores_in(text: str) -> frozenset[int]:
    """Return the cores of a kernel list: ``"0-2,8"``."""
    cores: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        cores.update(range(int(low), int(high or low) + 1))
    return frozenset(cores)


PROC: Final = Path("/proc")
SYS: Final = Path("/sys")
LOOK_S: Final = 0.2


def look_at_cores(
    proc: Path = PROC, sys: Path = SYS, *, allowed: Collection[int] | None = None, look_s: float = LOOK_S
) -> Cores:
    """Return what the cores are like.

    ``allowed``: the cores that may be used; None asks the kernel; ``look_s``: between two readings of their time; 0
    leaves out what takes it.
    """
    usable = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    return Cores(
        visible=len(core_times_in(text_of(proc / "stat"))) or len(usable),
        allowed=len(usable),
        quota=quota(sys / "fs" / "cgroup", proc / "self" / "cgroup").cores,
        stolen=_stolen(proc / "stat", usable, look_s) if look_s > 0 else None,
    )


def _stolen(stat: Path, cores: Collection[int], look_s: float) -> float | None:
    before = core_times_in(text_of(stat))
    time.sleep(look_s)
    after = core_times_in(text_of(stat))
    spent = [after[core] - before[core] for core in cores if core in after and core in before]
    total = sum(time_.total for time_ in spent)
    return sum(time_.stolen for time_ in spent) / total if total > 0 else None


def governors(cpus: Path, cores: Collection[int]) -> tuple[str, ...]:
    """Return the frequency governors of the cores, each once; ``cpus`` is their folder in ``/sys``."""
    names = {text_of(cpus / f"cpu{core}" / "cpufreq" / "scaling_governor").strip() for core in cores}
    return tuple(sorted(names - {""}))
