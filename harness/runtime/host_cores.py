"""Looks at the cores of this machine: how many there are, how they are clocked, and who takes their time now."""

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from harness.domain.host import Cores
from harness.runtime.affinity import cores_in
from harness.runtime.machine import core_times_in, quota
from harness.runtime.small_files import text_of

PROC: Final = Path("/proc")
SYS: Final = Path("/sys")
LOOK_S: Final = 0.2


def look(
    proc: Path = PROC, sys: Path = SYS, *, allowed: Collection[int] | None = None, look_s: float = LOOK_S
) -> Cores:
    """Return what the cores are like.

    Args:
        allowed: the cores that may be used; None asks the kernel.
        look_s: between two readings of their time; 0 leaves out what takes it.
    """
    usable = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    stolen, busy = _shares(proc / "stat", usable, look_s) if look_s > 0 else (None, None)
    cpus = sys / "devices" / "system" / "cpu"
    return Cores(
        visible=len(core_times_in(text_of(proc / "stat"))) or len(usable),
        allowed=len(usable),
        quota=quota(sys / "fs" / "cgroup", proc / "self" / "cgroup").cores,
        stolen=stolen,
        busy=busy,
        governors=governors(cpus, usable),
        turbo=_turbo(cpus),
        threads_per_core=_threads_per_core(cpus, usable),
    )


def _shares(stat: Path, cores: Collection[int], look_s: float) -> tuple[float | None, float | None]:
    """Return the shares of the cores' time that the hypervisor took, and that anyone used, in the next moment."""
    before = core_times_in(text_of(stat))
    time.sleep(look_s)
    after = core_times_in(text_of(stat))
    spent = [after[core] - before[core] for core in cores if core in after and core in before]
    total = sum(one.total for one in spent)
    if total <= 0:
        return None, None
    return sum(one.stolen for one in spent) / total, sum(one.busy for one in spent) / total


def governors(cpus: Path, cores: Collection[int]) -> tuple[str, ...]:
    """Return the frequency governors of the cores, each once; ``cpus`` is their folder in ``/sys``."""
    found = {text_of(cpus / f"cpu{core}" / "cpufreq" / "scaling_governor").strip() for core in cores}
    return tuple(sorted(found - {""}))


def _turbo(cpus: Path) -> bool | None:
    """Return whether clocks may boost: from intel_pstate, else from the switch of other drivers."""
    for path, on in ((cpus / "intel_pstate" / "no_turbo", "0"), (cpus / "cpufreq" / "boost", "1")):
        text = text_of(path).strip()
        if text in ("0", "1"):
            return text == on
    return None


def _threads_per_core(cpus: Path, cores: Collection[int]) -> int | None:
    siblings = (text_of(cpus / f"cpu{core}" / "topology" / "thread_siblings_list") for core in cores)
    counts = [len(cores_in(text)) for text in siblings if text.strip()]
    return max(counts, default=None)
