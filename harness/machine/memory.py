"""How much memory this process and those that it starts may use: the machine's, or that of a control group."""

import re
from pathlib import Path

from harness.machine import control_groups
from harness.machine.files import text_of

MEMINFO = Path("/proc/meminfo")
SHARE = 0.9


def share_gb() -> float | None:
    """Return the default memory limit of one worker: 90 % of ``usable_bytes``, in 10^9 bytes."""
    usable = usable_bytes()
    return None if usable is None else round(SHARE * usable / 1e9, 1) or None


def usable_bytes(meminfo: Path | None = None, groups: Path | None = None, own: Path | None = None) -> int | None:
    """Return the smaller of the machine's memory and its control groups' limits; None if neither is known."""
    mount, own = groups or control_groups.MOUNT, own or control_groups.OWN
    limits = control_groups.limits("memory", "memory.max", "memory.limit_in_bytes", mount=mount, own=own)
    total = bytes_in(text_of(meminfo or MEMINFO), "MemTotal")
    return min([*([] if total is None else [total]), *limits], default=None)


def bytes_in(meminfo: str, name: str) -> int | None:
    """Return a number of ``/proc/meminfo``, by its text; None where it is not told."""
    match = re.search(rf"^{name}:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None
