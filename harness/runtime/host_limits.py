"""Reads what this machine and its container allow: memory, shared memory, crash dumps, looking into processes."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.domain.host import Container, Forensics, Limits, Memory
from harness.runtime import debuggers, memory
from harness.runtime.small_files import text_of

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
    group = proc / "self" / "cgroup"
    return Memory(
        usable=memory.usable_bytes(proc / "meminfo", sys / "fs" / "cgroup", group),
        available=_available(text_of(proc / "meminfo")),
        shared=_total_bytes(shared),
    )


def look_at_limits(proc: Path = PROC, sys: Path = SYS) -> Limits:
    """Return what the user and the container may have."""
    own = dict(re.findall(r"^(Max [a-z ]+?) {2,}(\w+)", text_of(proc / "self" / "limits"), re.MULTILINE))
    tasks = [number for number in (_number(own.get("Max processes", "")), *_task_limits(proc, sys)) if number]
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


def _task_limits(proc: Path, sys: Path) -> Iterator[int | None]:
    """Yield the limits of the own group and those above it, of control groups of either version."""
    for line in text_of(proc / "self" / "cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers in ("", "pids"):
            inside = Path(path.lstrip("/"))
            for part in (inside, *inside.parents):
                yield _number(text_of(sys / "fs" / "cgroup" / controllers / part / "pids.max").strip())


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None  # "max" and "unlimited" are none


def _longest_group(memberships: str) -> str:
    """Return the path that tells most of how the group was made."""
    paths = [line.split(":", 2)[2] for line in memberships.splitlines() if line.count(":") >= 2]
    return max(paths, key=len, default="")


def _overlay(mounts: str) -> str:
    """Return the mount of the root folder where it is a container's; its options have the engine's name."""
    return next((line for line in mounts.splitlines() if " / / " in line and " overlay " in line), "")


def _available(meminfo: str) -> int | None:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _total_bytes(folder: Path) -> int | None:
    try:
        told = os.statvfs(folder)
    except OSError:
        return None
    return told.f_blocks * told.f_frsize
