"""Reads this machine and its container: disk, memory, limits, crash dumps, and the counters before and after a run."""

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.domain.machine import Container, CounterReading, Disk, Forensics, Gpus, Limits, Memory
from harness.hang import debuggers
from harness.system import control_groups, memory
from harness.system.cores import governors
from harness.system.files import text_of
from harness.system.load import CoreTime, core_times_in, quota


def look_at_disk(folder: Path, cache: Path | None) -> Disk:
    """Return what is known of the disk below ``folder``, which need not be there yet.

    Args:
        cache: of uv; None where it does not build.
    """
    there = _nearest(folder)
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        free = None
    return Disk(
        folder=str(there),
        writable=os.access(there, os.W_OK),
        free=free,
        cache=str(cache) if cache is not None else "",
        same_filesystem=_device(there) == _device(_nearest(cache)) if cache is not None else None,
    )


def uv_cache(environ: Mapping[str, str]) -> Path:
    """Return where uv keeps its cache, from ``environ``: UV_CACHE_DIR, else the user's cache folder.

    https://docs.astral.sh/uv/concepts/cache/#cache-directory
    """
    named = environ.get("UV_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    home = Path(environ.get("HOME") or "~").expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "uv"


def _nearest(folder: Path) -> Path:
    """Return ``folder``, or the nearest one above it that is there."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


def _device(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except OSError:
        return None


PROC: Final = Path("/proc")
SYS: Final = Path("/sys")
ROOT: Final = Path("/")
CAP_SYS_PTRACE: Final = 19  # linux/capability.h

_KINDS: Final = (
    (r"kubepods|kubelet", "kubernetes"),
    (r"libpod|podman", "podman"),
    (r"docker", "docker"),
    (r"containerd|crio|garden|lxc", "container"),
)


def look_at_memory(proc: Path = PROC, sys: Path = SYS, shared: Path = Path("/dev/shm")) -> Memory:  # noqa: S108
    """Return the memory that this process and those that it starts may use."""
    room = _statvfs(shared)
    return Memory(
        usable=memory.usable_bytes(proc / "meminfo", *_groups(proc, sys)),
        available=memory.bytes_in(text_of(proc / "meminfo"), "MemAvailable"),
        shared=room.f_blocks * room.f_frsize if room is not None else None,
    )


def _groups(proc: Path, sys: Path) -> tuple[Path, Path]:
    return sys / "fs" / "cgroup", proc / "self" / "cgroup"


def look_at_limits(proc: Path = PROC, sys: Path = SYS) -> Limits:
    """Return what the user and the container may have."""
    own = dict(re.findall(r"^(Max [a-z ]+?) {2,}(\w+)", text_of(proc / "self" / "limits"), re.MULTILINE))
    mount, group = _groups(proc, sys)
    of_groups = control_groups.limits("pids", "pids.max", mount=mount, own=group)
    tasks = [number for number in (_number(own.get("Max processes", "")), *of_groups) if number]
    return Limits(
        tasks=min(tasks, default=None),
        open_files=_number(own.get("Max open files", "")),
        core_bytes=_number(own.get("Max core file size", "")),
    )


def look_at_forensics(proc: Path = PROC) -> Forensics:
    """Return what a crash or a hang would leave here."""
    status = text_of(proc / "self" / "status")
    scope = text_of(proc / "sys" / "kernel" / "yama" / "ptrace_scope").strip()
    seccomp = re.search(r"^Seccomp:\s*(\d+)", status, re.MULTILINE)
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    known = (debuggers.PYSTACK, debuggers.PY_SPY, debuggers.EU_STACK, debuggers.GDB)
    return Forensics(
        core_pattern=text_of(proc / "sys" / "kernel" / "core_pattern").strip(),
        ptrace_scope=int(scope) if scope.isdigit() else None,
        seccomp=int(seccomp[1]) if seccomp else None,
        may_ptrace=bool(int(effective[1], 16) >> CAP_SYS_PTRACE & 1) if effective else None,
        debuggers=tuple(item.name for item in known if debuggers.find(item.name)),
    )


def look_at_container(proc: Path = PROC, sys: Path = SYS, root: Path = ROOT) -> Container:
    """Return the container around this process, from the files that the usual engines leave."""
    memberships = text_of(proc / "self" / "cgroup")
    signs = memberships + text_of(proc / "1" / "cgroup") + _overlay(text_of(proc / "self" / "mountinfo"))
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, signs)), "")
    if (root / "var" / "run" / "secrets" / "kubernetes.io").is_dir():
        kind = "kubernetes"
    elif (root / "run" / ".containerenv").exists():
        kind = "podman"
    elif not kind and (root / ".dockerenv").exists():
        kind = "docker"
    groups = sys / "fs" / "cgroup"
    version = 2 if (groups / "cgroup.controllers").exists() else 1 if memberships else None
    return Container(kind=kind, cgroup_version=version, group=_longest_group(memberships))


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
    """Return what the machine's counters are now.

    Args:
        folder: on whose disk the run is kept.
        gpus: as they are now, where the run uses one.
        allowed: the cores that may be used; None asks the kernel.
    """
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
        swapped_bytes=None if None in swapped else PAGE_BYTES * sum(one or 0 for one in swapped),
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
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _own_s() -> float:
    """Return the CPU time of this process and of all below it that have ended and were waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _hot(cpus: Path, cores: Collection[int]) -> int | None:
    """Return how often the cores, and the packages that they are in, were slowed down for their heat (Intel)."""
    folders = [cpus / f"cpu{core}" / "thermal_throttle" for core in cores]
    texts = [text_of(folder / f"{part}_throttle_count").strip() for folder in folders for part in ("core", "package")]
    counts = [int(text) for text in texts if text.isdecimal()]
    return sum(counts) if counts else None


def _statvfs(folder: Path) -> os.statvfs_result | None:
    try:
        return os.statvfs(folder)
    except OSError:
        return None


def _free(folder: Path) -> int | None:
    room = _statvfs(folder)
    return room.f_bavail * room.f_frsize if room is not None else None
