"""A recording of a machine's processes: when each ran, waited for a CPU or was blocked."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]


class Part(NamedTuple):
    """Some time, spread evenly between two moments of CLOCK_MONOTONIC; all in nanoseconds."""

    begin_ns: int
    end_ns: int
    amount_ns: int


@dataclass(kw_only=True, slots=True)
class Course:
    """What one thread or process did.

    ``waited``: for a CPU; only of the watched process's threads. ``blocked``: in uninterruptible waits.
    """

    ran: list[Part] = field(default_factory=list)
    waited: list[Part] = field(default_factory=list)
    blocked: list[Part] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class ProcessCourse(Course):
    """What one process did; ``cpus``: those that it may use; ``is_new``: it began while it was recorded."""

    pid: int
    name: str
    command: str = ""
    parent: int = 0
    is_new: bool = False
    cpus: frozenset[int] = frozenset()


@dataclass(kw_only=True, slots=True)
class Recording:
    """All processes of a machine for some seconds.

    Attributes:
        looks_ns: when they were looked at.
        watched: the process that is asked about, whose ``threads`` are recorded one by one.
        blocked_in: kernel function -> nanoseconds that a thread of the watched process was blocked in it.
        interval_ns: between two looks, usually; ``own_cpu_ns``: what the looks took.
        ended: the watched process ended; ``counts_waits``: the kernel has accounts of what threads wait for CPUs.
    """

    watched: ProcessCourse
    threads: list[Course] = field(default_factory=list)
    others: list[ProcessCourse] = field(default_factory=list)
    looks_ns: list[int] = field(default_factory=list)
    blocked_in: dict[str, int] = field(default_factory=dict)
    own_cpu_ns: int = 0
    ended: bool = False
    counts_waits: bool = True

    @property
    def span_ns(self) -> int:
        return self.looks_ns[-1] - self.looks_ns[0]

    @property
    def interval_ns(self) -> int:
        return int(np.median(np.diff(self.looks_ns))) if len(self.looks_ns) > 1 else 0


def on_grid(parts: Iterable[Part], edges_ns: Series) -> Series:
    """Return for each cell between two edges how much of the parts lies in it, in nanoseconds."""
    table = np.array([part for part in parts if part.end_ns > part.begin_ns], dtype=float).reshape(-1, 3)
    if not len(table):
        return np.zeros(len(edges_ns) - 1)
    begin, end, amount = table.T
    rate = amount / (end - begin)
    moments = np.concatenate((begin, end))
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    rates = np.cumsum(np.concatenate((rate, -rate))[order])
    total = np.concatenate(((0.0,), np.cumsum(rates[:-1] * np.diff(moments))))
    return np.diff(np.interp(edges_ns, moments, total))
