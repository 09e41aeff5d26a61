"""Reads the machine's load around a benchmark: what used its cores, and what hypervisor and quota took.

Nothing here raises: what cannot be read counts as quiet.
"""

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.machine import GpuState, MachineState
from harness.machine import control_groups
from harness.machine.files import text_of

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreTime:
    """What a core, or several, have done; seconds, in steps of 10 ms."""

    total: float = 0.0
    busy: float = 0.0
    stolen: float = 0.0

    def __add__(self, other: "CoreTime") -> "CoreTime":
        return CoreTime(total=self.total + other.total, busy=self.busy + other.busy, stolen=self.stolen + other.stolen)

    def __sub__(self, other: "CoreTime") -> "CoreTime":
        return CoreTime(total=self.total - other.total, busy=self.busy - other.busy, stolen=self.stolen - other.stolen)


def core_times_in(text: str) -> dict[int, CoreTime]:
    """Return core -> time since the start of the machine, from the text of ``/proc/stat``."""
    times = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if not name.startswith("cpu") or name == "cpu":
            continue
        # user nice system idle iowait irq softirq steal; guests' time is in user's already (man 5 proc)
        ticks = [int(field) for field in fields[:8]] + [0] * (8 - len(fields))
        user, nice, system, idle, iowait, irq, softirq, steal = (TICK_S * value for value in ticks)
        busy = user + nice + system + irq + softirq
        times[int(name[3:])] = CoreTime(total=busy + idle + iowait + steal, busy=busy, stolen=steal)
    return times


def core_times() -> dict[int, CoreTime]:
    return core_times_in(text_of(Path("/proc/stat")))


def cpu_s_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used; 0 where it is gone."""
    return cpu_s_in(text_of(Path(f"/proc/{pid}/stat")))


def cpu_s_in(text: str) -> float:
    """Return the seconds of CPU that a process has used, from the text of its ``stat``; 0 where it is gone."""
    fields = text.rpartition(")")[2].split()
    return TICK_S * (int(fields[11]) + int(fields[12])) if len(fields) > 12 else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """The container's CPU quota in cores, None without one; ``throttled_s``: stopped for so long since its start."""

    cores: float | None = None
    throttled_s: float = 0.0


def quota(root: Path = control_groups.MOUNT, own: Path = control_groups.OWN) -> Quota:
    """Return the tightest quota over this process, of control groups of either version."""
    quotas = [_quota_of(folder) for folder in control_groups.folders("cpu", root, own)]
    limits = [quota_.cores for quota_ in quotas if quota_.cores is not None]
    return Quota(
        cores=min(limits, default=None), throttled_s=max((quota_.throttled_s for quota_ in quotas), default=0.0)
    )


def _quota_of(folder: Path) -> Quota:
    limit, period, *_ = (text_of(folder / "cpu.max").split() or _version_1_limit(folder)) + ["max", "1"]
    stat = dict(line.split()[:2] for line in text_of(folder / "cpu.stat").splitlines() if len(line.split()) > 1)
    return Quota(
        cores=int(limit) / int(period) if limit.isdigit() else None,
        throttled_s=1e-6 * int(stat.get("throttled_usec", 0)) + 1e-9 * int(stat.get("throttled_time", 0)),
    )


def _version_1_limit(folder: Path) -> list[str]:
    return [text_of(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]


LOOK_S = 0.3


def share_of_others(look_s: float = LOOK_S) -> float:
    """Return which share of the usable cores' time others use or are given, over ``look_s`` in which we do nothing."""
    watch = Watch(())
    with watch.attentive(()):
        time.sleep(look_s)
    state = watch.machine_state(cores=(), why_not_pinned="", gpu=None)
    return state.others + state.stolen


class Watch:
    """Adds up what happened on the benchmark's ``cores`` (empty: all usable) while it is ``attentive``."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores) or _allowed()
        self._seen = CoreTime()
        self._own_s = 0.0
        self._is_attentive = False
        self._throttled_s = quota().throttled_s

    @contextlib.contextmanager
    def attentive(self, pids: Collection[int]) -> Iterator[None]:
        """Count what happens inside; the work of ``pids``, not yet reaped, and of this process is our own."""
        self._is_attentive = True
        try:
            with self._adding(pids, 1):
                yield
        finally:
            self._is_attentive = False

    @contextlib.contextmanager
    def inattentive(self, pids: Collection[int]) -> Iterator[None]:
        """Leave out what happens inside, while ``attentive`` to the same ``pids``; without effect otherwise."""
        with self._adding(pids, -1) if self._is_attentive else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _adding(self, pids: Collection[int], sign: int) -> Iterator[None]:
        before, own = self._now(), _cpu_s(pids)
        try:
            yield
        finally:
            spent = self._now() - before
            self._seen = self._seen + spent if sign > 0 else self._seen - spent
            after = _cpu_s(pids)
            self._own_s += sign * sum(max(after[pid] - own[pid], 0.0) for pid in own)

    def machine_state(self, *, cores: Sequence[int], why_not_pinned: str, gpu: GpuState | None) -> MachineState:
        now = quota()
        total = self._seen.total or 1.0
        return MachineState(
            cores=tuple(cores),
            why_not_pinned=why_not_pinned,
            stolen=min(max(self._seen.stolen / total, 0.0), 1.0),
            others=min(max((self._seen.busy - self._own_s) / total, 0.0), 1.0),
            quota_cores=now.cores,
            quota_throttled_s=max(now.throttled_s - self._throttled_s, 0.0),
            gpu=gpu,
        )

    def _now(self) -> CoreTime:
        times = core_times()
        return sum((times[core] for core in self._cores if core in times), CoreTime())


def _cpu_s(pids: Collection[int]) -> Mapping[int, float]:
    return {pid: cpu_s_of(pid) for pid in (*pids, os.getpid())}


def _allowed() -> tuple[int, ...]:
    with contextlib.suppress(AttributeError, OSError):
        return tuple(os.sched_getaffinity(0))
    return tuple(range(os.cpu_count() or 1))
