"""Watches one child from outside: follows its events, samples its threads, ends it when it is proven to hang.

Evidence is taken before the kill, and nothing that goes wrong with that prevents it. ``proof.py`` decides.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.checks.hang.activity import WorkerSampler
from harness.checks.hang.forensics import crash_evidence, investigate
from harness.checks.hang.proof import LOOK_EVERY_S, History, Progress, Proven
from harness.checks.hang.readings import only_want_the_gil
from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.probe import Deadline
from harness.machine.processes import REAP_DEADLINE_S
from harness.probing import processes
from harness.probing.conclusion import Ending
from harness.probing.events import EventLog, EventTail, OpenPhase
from harness.probing.printed import Printed
from harness.probing.zygote import Child
from harness.worker import wire

# Tools that take stacks have deadlines of their own (gdb needs up to 17 s); this one is for when those fail.
INVESTIGATION_DEADLINE_S = 45.0
LAST_STACKS_BYTES = 1 << 20
__all__ = ["crash_evidence", "investigate", "watch"]

Investigate = Callable[[int, Path, HangProof], Evidence]


def watch(
    child: Child,
    run_dir: Path,
    deadline: Deadline,
    *,
    investigate: Investigate | None = None,
    seen: Callable[[EventLog], None] = lambda _: None,
) -> Ending:
    """Wait for ``child``; once it is proven to hang, look into it, kill its group and name the phases to blame.

    ``investigate`` may fail or take too long; ``seen`` is shown the events at every look, while the child runs.
    """
    with Printed(run_dir) as printed:
        return _watch(child, run_dir, deadline, printed, investigate=investigate, seen=seen)


def _watch(
    child: Child,
    run_dir: Path,
    deadline: Deadline,
    printed: Printed,
    *,
    investigate: Investigate | None,
    seen: Callable[[EventLog], None],
) -> Ending:
    tail = EventTail(run_dir / wire.EVENTS)
    begin_ns = time.monotonic_ns()
    history = History(begin_ns, deadline)
    sampler: WorkerSampler | None = None
    while not child.ended.wait(LOOK_EVERY_S):
        printed.trim()
        event_log = tail.refresh()
        seen(event_log)
        progress = Progress.of(event_log, begin_ns)
        now_ns = time.monotonic_ns()
        if child.pid is not None:
            sampler = sampler or WorkerSampler(child.pid)
            detailed = history.wants_detail(progress, now_ns)
            forked = progress.forked.values()
            snapshot = sampler.sample(forked, detailed=detailed, apart=progress.serving_tids(now_ns))
            if snapshot is not None:
                history.add(progress, snapshot)
        finding = history.judge(progress, time.monotonic_ns())
        if finding is None:
            continue
        with child.pinned() as pid:
            hung = progress.process_of(finding.blamed) or pid
            evidence = _look_into(hung, run_dir, finding.proof, investigate, killed=child.killed)
            if _went_on(child, tail, progress, finding):
                history.patience *= 2
                continue
            if hung is not None and (evidence is None or not evidence.stacks):  # else they have been asked for already
                processes.request_stack_dump(hung, processes.stacks_of(hung, run_dir))
            child.kill()
        reaped = child.ended.wait(REAP_DEADLINE_S)
        remarks = printed.finish()
        return Ending(
            event_log=tail.refresh(),
            end_ns=time.monotonic_ns(),
            killed=True,
            overdue=_not_held_up(finding.blamed, evidence),
            reaped=reaped,
            stacks=_read_stacks(run_dir),
            proof=finding.proof,
            evidence=evidence and replace(evidence, remarks=(*evidence.remarks, *remarks)),
        )
    return Ending(event_log=tail.refresh(), end_ns=time.monotonic_ns(), stacks=_read_stacks(run_dir))


def _went_on(child: Child, tail: EventTail, before: Progress, finding: Proven) -> bool:
    """Whether a process that was found blocked has gone on while it was looked into: then it was not.

    Past a deadline that no longer matters: the look itself may have woken it (a signal ends a sleep).
    """
    if finding.proof.kind is not HangKind.BLOCKED:
        return False
    return child.exited.is_set() or child.ended.is_set() or tail.refresh().progress_ns > before.progress_ns


def _look_into(
    pid: int | None, run_dir: Path, proof: HangProof, investigate: Investigate | None, *, killed: threading.Event
) -> Evidence | None:
    if investigate is None or pid is None:
        return None
    answers = list[Evidence]()

    def nothing(remark: str) -> Evidence:
        return Evidence(proof=proof, remarks=(remark,))

    def ask() -> None:
        try:
            answers.append(investigate(pid, run_dir, proof))
        except Exception as error:  # noqa: BLE001  the kill goes first, whatever is wrong with the tools
            answers.append(nothing(f"looking into the process failed: {type(error).__name__}: {error}"))

    asking = threading.Thread(target=ask, name=f"look into {pid}", daemon=True)
    asking.start()
    limit = time.monotonic() + INVESTIGATION_DEADLINE_S
    while asking.is_alive() and time.monotonic() < limit:
        asking.join(LOOK_EVERY_S)
        if killed.is_set():  # The run is being ended: the results are not read, nor need their number be kept.
            return nothing("the process was ended while it was looked into")
    if not answers:
        return nothing(f"looking into the process took more than {INVESTIGATION_DEADLINE_S:.0f} s")
    return answers[0] if answers[0].proof is not None else replace(answers[0], proof=proof)


def _not_held_up(blamed: Sequence[OpenPhase], evidence: Evidence | None) -> tuple[OpenPhase, ...]:
    """Return the phases that others wait for; all of them where each only waits for Python's global lock."""
    waiting = only_want_the_gil(evidence.stacks) if evidence is not None else frozenset()
    return tuple(phase for phase in blamed if phase.tid not in waiting) or tuple(blamed)


def _read_stacks(run_dir: Path) -> str:
    """Return the end of the dump, which an artifact can have made as large as its limit of files."""
    try:
        with (run_dir / wire.STACKS).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LAST_STACKS_BYTES))
            return stream.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
