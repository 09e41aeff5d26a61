"""Chooses the cores that all processes of a duel share: pinned there, what differs between cores cancels."""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.runtime import machine

QUIET_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where a duel runs.

    Attributes:
        cores: to which its processes are pinned; empty: nowhere, and ``why_not`` says why.
        ranked: all cores that may be used, the best first: for callers that need more than ``cores``.
    """

    cores: tuple[int, ...] = ()
    ranked: tuple[int, ...] = ()
    why_not: str = ""

    def first(self, count: int) -> tuple[int, ...]:
        """Return the best ``count`` cores, or all there are; none where nothing is pinned."""
        return self.ranked[:count] if self.cores else ()


ANYWHERE = Placement(why_not="it was not asked for")


def choose(cores: int, quiet_s: float = QUIET_S) -> Placement:
    """Return ``cores`` cores that were least busy for ``quiet_s`` seconds, on distinct physical cores first.

    Nothing is pinned where the platform cannot, or fewer cores may be used than are wanted.
    """
    try:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed)
    except (AttributeError, OSError) as error:
        return Placement(why_not=f"this platform cannot: {error}")
    if cores > len(allowed):
        return Placement(why_not=f"{cores} cores are wanted and {len(allowed)} may be used")
    before = machine.core_times()
    time.sleep(quiet_s)
    after = machine.core_times()
    busy = {core: (after[core] - before[core]).busy for core in allowed if core in after and core in before}
    ranked = rank(allowed, busy, {core: _siblings(core) for core in allowed})
    return Placement(cores=tuple(sorted(ranked[:cores])), ranked=ranked)


def rank(allowed: Sequence[int], busy: Mapping[int, float], siblings: Mapping[int, frozenset[int]]) -> tuple[int, ...]:
    """Return cores, the best first: one thread of every physical core before a second one, the idle before the busy.

    Args:
        busy: core -> time that it was at work; what is not known counts as idle.
        siblings: core -> the threads of its physical core.

    A physical core is as busy as all its threads together: they share it.
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
        allowed = os.sched_getaffinity(0)
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), allowed)


def _siblings(core: int) -> frozenset[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        return cores_in(text)
    except (OSError, ValueError):
        return frozenset({core})


def cores_in(text: str) -> frozenset[int]:
    """Return the cores of a kernel list: ``"0-2,8"``."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)
