"""Stacks of a process that was looked at, by what is installed, the shortest stop first."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.checks.attach import locks, mapped
from harness.checks.attach.phases import phase_of, phase_of_process
from harness.checks.hang.activity import living, peek
from harness.checks.hang.forensics import SeenFromOutside, look_from_outside
from harness.checks.hang.stack_words import Wait, waits_for
from harness.core.attach import Attached, ThreadFacts
from harness.core.hang import ThreadStack
from harness.machine.files import text_of

ALWAYS_IN_DISK: Final = 0.9
UNINTERRUPTIBLE: Final = "no native stacks: a thread is uninterruptible, and cannot stop for a debugger"


def is_python(files: Sequence[str]) -> bool:
    return any(re.search(r"/(libpython|python)\d?[^/]*$", file) for file in files)


def with_stacks(
    process: Attached, *, may_stop: bool = True, may_stop_long: bool = False, gdb: bool = False
) -> Attached:
    """Return the process with stacks of its threads, taken by what is installed, the shortest stop first.

    ``may_stop``: else only by tools that read its memory; ``may_stop_long``, ``gdb``: as ``look_from_outside``.
    """
    shared = living(f"/proc/{process.pid}", [thread.tid for thread in process.threads])
    python = is_python(mapped.mapped_files(shared))
    # It could not stop for a debugger, and would once it goes on, with the debugger gone.
    uninterruptible = any(thread.in_disk >= ALWAYS_IN_DISK for thread in process.threads)
    alive = int(Path(shared).name)  # debuggers find nothing by a main thread that has ended
    with tempfile.TemporaryDirectory(prefix="attach-") as folder:
        seen = look_from_outside(
            alive,
            Path(folder),
            python=python,
            may_stop=may_stop and not uninterruptible,
            may_stop_long=may_stop_long,
            gdb=gdb,
        )
    remarks = (*process.remarks, *([UNINTERRUPTIBLE] if uninterruptible else []))
    return _explained(replace(process, remarks=remarks), seen, shared)


def _explained(process: Attached, seen: SeenFromOutside, shared: str) -> Attached:
    stacks = {stack.tid: stack for stack in seen.evidence.stacks}
    threads = tuple(_with_stack(process, thread, stacks.get(thread.tid), shared) for thread in process.threads)
    return replace(
        process,
        threads=threads,
        phase=phase_of_process(thread.phase for thread in threads),
        stops_s=seen.stops_s,
        gil_holder=seen.gil_holder,
        tool=seen.evidence.tool,
        remarks=(*process.remarks, *seen.evidence.remarks),
    )


def _with_stack(process: Attached, thread: ThreadFacts, stack: ThreadStack | None, shared: str) -> ThreadFacts:
    if stack is None:
        return thread
    wait = waits_for(stack)
    lock = thread.lock
    if lock is None and wait is Wait.READ_WRITE_LOCK and thread.runs == 0:
        syscall = text_of(Path(f"/proc/{process.pid}/task/{thread.tid}/syscall"))
        tids = {one.tid for one in process.threads}
        lock = locks.read_write_lock(syscall, lambda at, length: peek(shared, at, length), tids.__contains__)
    return replace(thread, stack=stack, stack_wait=wait.value, phase=phase_of(stack), lock=lock)
