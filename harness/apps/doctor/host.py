"""Reads this machine and its container: disk, memory, limits, and the counters before and after a run."""

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.apps.doctor.facts import Container, CounterReading, Disk, Limits, Memory
from harness.core.machine import Gpus
from harness.machine import control_groups, memory
from harness.machine.cores import governors
from harness.machine.files import text_of
from harness.machine.load import CoreTime, core_times_in, quota


def look_at_disk(folder: Path) -> Disk:
    there = _nearest(folder)
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        free = None
    return Disk(folder=str(there), writable=os.access(there, os.W_OK), free=free)


def _nearest(folder: Path) -> Path:
    """Return ``folder``, or the nearest one above it that is there."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


PROC: Final = Path("/proc")
SYS: Final = Path("/sys")
ROOT: Final = Path("/")

_KINDS: Final = (
    (r"kubepods|kubelet", "kubernetes"),
    (r"libpod|podman", "podman"),
    (r"docker", "docker"),
    (r"containerd|crio|garden|lxc", "container"),
)


def look_at_memory(proc: Path = PROC, sys: Path = SYS) -> Memory:
    return Memory(
        usable=memory.usable_bytes(proc / "meminfo", *_groups(proc, sys)),
        available=memory.bytes_in(text_of(proc / "meminfo"), "MemAvailable"),
    )


def _groups(proc: Path, sys: Path) -> tuple[Path, Path]:
    return sys / "fs" / "cgroup", proc / "self" / "cgroup"


def look_at_limits(proc: Path = PROC, sys: Path = SYS) -> Limits:
    own = dict(re.findall(r"^(Max [a-z ]+?) {2,}(\w+)", text_of(proc / "self" / "limits"), re.MULTILINE))
    mount, group = _groups(proc, sys)
    of_groups = control_groups.limits("pids", "pids.max", mount=mount, own=group)
    tasks = [number for number in (_number(own.get("Max processes", "")), *of_groups) if number]
    return Limits(
        tasks=min(tasks, default=None),
        open_files=_number(own.get("Max open files", "")),
    )


def look_at_container(proc: Path = PROC, root: Path = ROOT) -> Container:
    memberships = text_of(proc / "self" / "cgroup")
    signs = memberships + text_of(proc / "1" / "cgroup") + _overlay(text_of(proc / "self" / "mountinfo"))
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, signs)), "")
    if (root / "var" / "run" / "secrets" / "kubernetes.io").is_dir():
        kind = "kubernetes"
    elif (root / "run" / ".containerenv").exists():
        kind = "podman"
    elif not kind and (root / ".dockerenv").exists():
        kind = "docker"
    return Container(kind=kind, group=_longest_group(memberships))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None  # "max" and "unlimited" are none


def _longest_group(memberships: str) -> str:
    """Return the path that tells most of how the group was made."""
    paths = [line.split(":", 2)[2] for line in memberships.splitlines() if line.count(":") >= 2]
    return max(paths, key=len, default="")


def _overlay(mounts: str) -> str:
    """Return the mount of the root folder where it is a container's; its options have the engine's name."""
    return next((line for line in mounts.splitlines() if " / / " in line and " overlay " in line), "")


SHARED: Final = Path("/dev/shm")  # noqa: S108  it is looked at, nothing is put there
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def read_counters(
    folder: Path,
    *,
    gpus: Gpus | None = None,
    proc: Path = PROC,
    sys: Path = SYS,
    shared: Path = SHARED,
    allowed: Collection[int] | None = None,
) -> CounterReading:
    """Return what the machine's counters are now; ``gpus`` are passed in, ``allowed`` None asks the kernel."""
    cores = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    times = core_times_in(text_of(proc / "stat"))
    spent = sum((times[core] for core in cores if core in times), CoreTime())
    limits = quota(*_groups(proc, sys))
    of_memory, of_tasks = (list(control_groups.folders(name, *_groups(proc, sys))) for name in ("memory", "pids"))
    cpus, machine = sys / "devices" / "system" / "cpu", text_of(proc / "vmstat")
    swapped = [_counter(machine, name) for name in ("pswpin", "pswpout")]
    available = memory.bytes_in(text_of(proc / "meminfo"), "MemAvailable")
    return CounterReading(
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
        oom_kills=_group_counter(of_memory, ("memory.events", "memory.oom_control"), "oom_kill"),
        machine_oom_kills=_counter(machine, "oom_kill"),
        tasks_refused=_group_counter(of_tasks, ("pids.events",), "max"),
        swapped_bytes=None if None in swapped else PAGE_BYTES * sum(pages or 0 for pages in swapped),
        available_bytes=min([*([] if available is None else [available]), *_room(of_memory)], default=None),
        disk_bytes=_free(folder),
        shared_bytes=_free(shared),
        gpus=gpus,
    )


def _group_counter(folders: Sequence[Path], files: Sequence[str], name: str) -> int | None:
    """Return a counter of the nearest group that has it; ``files``: where it stands, in either version."""
    texts = (text_of(folder / file) for folder in folders for file in files)
    return next((count for text in texts if (count := _counter(text, name)) is not None), None)


def _room(folders: Sequence[Path]) -> Iterator[int]:
    """Yield how much memory each group with a limit has left; files in memory may be dropped, so they count."""
    for folder in folders:
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            most, now = text_of(folder / limit).strip(), text_of(folder / used).strip()
            if most.isdecimal() and now.isdecimal():  # "max" is none
                dropped = _counter(text_of(folder / "memory.stat"), "inactive_file") or 0
                yield max(int(most) - int(now) + dropped, 0)


def _counter(text: str, name: str) -> int | None:
    match = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else None


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _hot(cpus: Path, cores: Collection[int]) -> int | None:
    folders = [cpus / f"cpu{core}" / "thermal_throttle" for core in cores]
    texts = [text_of(folder / f"{part}_throttle_count").strip() for folder in folders for part in ("core", "package")]
    counts = [int(text) for text in texts if text.isdecimal()]
    return sum(counts) if counts else None


def _free(folder: Path) -> int | None:
    try:
        room = os.statvfs(folder)
    except OSError:
        return None
    return room.f_bavail * room.f_frsize
