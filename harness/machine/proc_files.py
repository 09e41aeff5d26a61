"""Reads what the kernel says of processes and threads in ``/proc``; a file that is gone or forbidden is None."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h


@dataclass(frozen=True, slots=True)
class Status:
    """A process's or thread's ``stat``.

    Attributes:
        state: one letter: R runs or waits for a CPU, S sleeps, D waits in the kernel, T stopped, Z ended.
        cpu_ns, dead_children_cpu_ns, started_ns: in steps of a tick; ``started_ns`` since the start of the machine.
        flags: the kernel's, ``PF_`` of linux/sched.h.
        processor: the CPU that it ran on last.
        stack_begin: address; 0 or 1 where this user may not know it.
    """

    name: str
    state: str
    cpu_ns: int
    dead_children_cpu_ns: int
    started_ns: int
    parent: int
    flags: int
    processor: int
    stack_begin: int

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & _KERNEL_THREAD)


def status_in(text: bytes | None) -> Status | None:
    """Read ``stat``: number (name) state parent ... utime stime cutime cstime ... starttime; any name, also ``)``."""
    if not text or b")" not in text:
        return None
    head, _, tail = text.rpartition(b")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    own, dead = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
    return Status(
        name=head.partition(b"(")[2].decode("utf-8", "replace"),
        state=fields[0].decode(),
        cpu_ns=own * TICK_NS,
        dead_children_cpu_ns=dead * TICK_NS,
        started_ns=int(fields[19]) * TICK_NS,
        parent=int(fields[1]),
        flags=int(fields[6]),
        processor=int(fields[36]) if len(fields) > 36 else -1,
        stack_begin=int(fields[25]) if len(fields) > 25 else 0,
    )


def accounts_in(text: bytes | None) -> tuple[int, int]:
    """Read ``schedstat``: nanoseconds on a CPU, and waiting for one; zeros where the kernel does not count."""
    ran, waited, *_ = [*(text or b"").split(), b"0", b"0"]
    return int(ran), int(waited)


def links_in(folder: str) -> Iterator[str]:
    """Yield where the links of a folder lead, such as the open files in ``fd``; none where that is forbidden."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                yield os.readlink(entry.path)  # noqa: PTH115  no Path per descriptor


def numbers_in(folder: str) -> list[int]:
    """Return the processes, threads or descriptors that a folder has. Raises ``OSError``: it is gone."""
    with os.scandir(folder) as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def read(path: str) -> bytes | None:
    """Return the first 8 KiB of a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 8192)
    except OSError:  # the process ended between opening and reading
        return None
    finally:
        os.close(descriptor)
