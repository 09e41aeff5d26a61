"""Watches one child from outside: follows its events, knows every open phase, ends it past its deadline.

A hang is a phase that began and did not end within its deadline. Evidence is taken before the kill. (A finer
proof, from what the threads do meanwhile, has its place in ``overdue``.)
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.domain.probe import Deadline
from harness.runtime import process
from harness.runtime.event_reader import Diary, EventTail, OpenPhase
from harness.runtime.zygote import Child
from harness.worker import wire

POLL_S = 0.2
LOAD_PHASES = (wire.LOAD, wire.INPUTS, wire.IMPORT, wire.RECORD, wire.SAVE)


@dataclass(frozen=True)
class Ending:
    """How a watch ended.

    Attributes:
        killed: whether the watchdog ended the child.
        overdue: which phases were past their deadline then; empty if it hung outside of every phase.
        reaped: False if the child lives on.
    """

    diary: Diary
    end_ns: int
    killed: bool = False
    overdue: tuple[OpenPhase, ...] = ()
    reaped: bool = True
    stacks: str = field(default="", repr=False)


def watch(child: Child, run_dir: Path, deadline: Deadline) -> Ending:
    """Wait for ``child``; past a deadline take its stacks, kill its group and say which phases were overdue."""
    begin = time.monotonic()
    tail = EventTail(run_dir / wire.EVENTS)
    while not child.ended.wait(POLL_S):
        late = overdue(tail.refresh(), deadline, begin)
        if late is not None:
            return _end(child, run_dir, tail, late)
    return Ending(diary=tail.refresh(), end_ns=time.monotonic_ns(), stacks=_read_stacks(run_dir))


def overdue(diary: Diary, deadline: Deadline, begin_s: float) -> tuple[OpenPhase, ...] | None:
    """Return the phases past their deadline, None if all is well; every open phase once the total is spent."""
    now_ns = time.monotonic_ns()
    late = tuple(
        opened
        for opened in diary.open.values()
        if opened.phase != wire.BARRIER
        and now_ns - opened.begin_ns > 1e9 * (deadline.load_s if opened.phase in LOAD_PHASES else deadline.call_s)
    )
    if late:
        return late
    if time.monotonic() - begin_s > deadline.total_s:
        return tuple(diary.open.values())
    return None


def _end(child: Child, run_dir: Path, tail: EventTail, late: tuple[OpenPhase, ...]) -> Ending:
    if child.pid is not None:
        process.request_stack_dump(child.pid, run_dir / wire.STACKS)
        process.kill_group(child.pid)
    reaped = child.ended.wait(process.REAP_DEADLINE_S)
    diary = tail.refresh()
    return Ending(
        diary=diary,
        end_ns=time.monotonic_ns(),
        killed=True,
        overdue=late,
        reaped=reaped,
        stacks=_read_stacks(run_dir),
    )


def _read_stacks(run_dir: Path) -> str:
    try:
        return (run_dir / wire.STACKS).read_text(errors="replace")
    except FileNotFoundError:
        return ""
