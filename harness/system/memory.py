"""How much memory this process and those that it starts may use: the machine's, or that of a control group."""

from collections.abc import Iterator
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
SHARE = 0.9


def share_gb() -> float | None:
    """Return the default memory limit of one worker: 90 % of ``usable_bytes``, in 10^9 bytes."""
    usable = usable_bytes()
    return None if usable is None else round(SHARE * usable / 1e9, 1) or None


def usable_bytes(meminfo: Path | None = None, groups: Path | None = None, own: Path | None = None) -> int | None:
    """Return the smaller of the machine's memory and the limits of its control groups; None if neither is known.

    Args:
        meminfo, groups, own: where to read that; None: of this machine.
    """
    limits = _groups(groups or GROUPS, _read(own or OWN_GROUP))
    return min([*_machine(_read(meminfo or MEMINFO)), *limits], default=None)


def _machine(meminfo: str) -> Iterator[int]:
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            yield int(line.split()[1]) * 1024


def _groups(mount: Path, memberships: str) -> Iterator[int]:
    """Yield the limits of the own group and those above it: of version 2, and of version 1's memory controller."""
    for line in memberships.splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            root, name = (mount, "memory.max") if not controllers else (mount / "memory", "memory.limit_in_bytes")
            inside = Path(group.lstrip("/"))
            for folder in (inside, *inside.parents):
                text = _read(root / folder / name).strip()
                if text.isdecimal():  # "max" is none
                    yield int(text)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
