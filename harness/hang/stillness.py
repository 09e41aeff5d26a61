"""Decides whether a process is blocked for good: none of its threads runs, and none waits for the outside; pure.

The thresholds are measured on CPython 3.11 and glibc 2.36 with 2 CPUs, idle and with four spinning processes beside.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.hang import use, waits
from harness.hang.activity import TICK_NS, Snapshot, ThreadSample
from harness.probing.events import OpenPhase

# Whoever waits for Python's global lock wakes up every 5 ms, for less than 1 % of a CPU each
# (docs/evidence.md#gil-waiters). Work is far above this.
CPU_SHARE = 0.02
# All threads without a phase together: several such waiters, or CUDA's and the pools' idle threads.
OTHERS_CPU_SHARE = 0.05
# A thread that only waits is hardly ever found awake: a single wake-up on a loaded machine.
AWAKE_SHARE = 0.25
QUEUED_SHARE = 0.05
# But one that polls wakes up 200 times in a second, and on a loaded machine waits for a CPU each time.
POLLING_AWAKE_SHARE = 0.6
POLLING_QUEUED_SHARE = 0.6
# Whoever looks at a lock so often in a second waits for the global lock (200 times), or for another thread that it
# expects at any moment. A slower loop may look at anything each time: it is a retry.
TIGHT_POLLS_PER_S = 15
# A wait with a timeout ends on its own. Only a thread that has timed out this often, and waits again, is in a loop.
LEAST_RETRIES = 5
# What idle helpers move: a byte through a pipe, an event counter, a line in a log.
IDLE_IO_BYTES = 4096
# A helper that waits for the network and is woken so often receives something.
RECEIVING_RUNS = 3
# A helper with a timer of its own wakes at even intervals; this much earlier or later, on a loaded machine.
UNEVEN = 0.2
LEAST_TICKS = 2
# The driver's own threads, which live from the first use of the GPU on, as the kernel names them.
_CUDA = re.compile(r"cuda-|cuda[0-9a-f]{6}")


@dataclass(slots=True)
class _Rhythm:
    """When one thread has woken up, as far as looks can tell: a wake-up lies between two looks.

    Attributes:
        changed_ns: the look before which it has run last. Before that look's predecessor, at ``after_ns``, it had not.
        even_since_ns: from when on its wake-ups may have come at even intervals.
        least_ns, most_ns: bounds of that interval.
        ticks: how many such intervals.
    """

    started_ns: int
    runs: int | None
    changed_ns: int
    after_ns: int
    even_since_ns: int
    least_ns: float = 0.0
    most_ns: float = float("inf")
    ticks: int = 0

    def wake(self, runs: int | None, before_ns: int, now_ns: int) -> None:
        """Take into account that it has run between these looks."""
        least_ns = max(self.least_ns, float(before_ns - self.changed_ns))
        most_ns = min(self.most_ns, float(now_ns - self.after_ns))
        if runs is not None and (1 - UNEVEN) * least_ns <= most_ns * (1 + UNEVEN):
            self.least_ns, self.most_ns, self.ticks = least_ns, most_ns, self.ticks + 1
        else:
            self.even_since_ns, self.ticks = self.changed_ns, int(runs is not None)
            self.least_ns, self.most_ns = float(before_ns - self.changed_ns), float(now_ns - self.after_ns)
        self.runs, self.changed_ns, self.after_ns = runs, now_ns, before_ns


class Rhythms:
    """Since when each thread of a process is idle, or ticks; feed it every snapshot."""

    def __init__(self) -> None:
        self._threads: dict[int, _Rhythm] = {}
        self._before_ns = 0

    def add(self, snapshot: Snapshot) -> None:
        """Take a look into account."""
        known, self._threads = self._threads, {}
        for tid, thread in snapshot.threads.items():
            rhythm = known.get(tid)
            if rhythm is None or rhythm.started_ns != thread.started_ns:
                rhythm = self._first(thread, snapshot.ns)
            elif thread.runs is None or thread.runs != rhythm.runs:
                rhythm.wake(thread.runs, self._before_ns, snapshot.ns)
            self._threads[tid] = rhythm
        self._before_ns = snapshot.ns

    def _first(self, thread: ThreadSample, now_ns: int) -> _Rhythm:
        """Return what the first look at a thread shows: it has run at some time since its start."""
        return _Rhythm(thread.started_ns, thread.runs, now_ns, thread.started_ns, thread.started_ns + TICK_NS)

    def idle_since_ns(self, tid: int) -> float:
        """Return the look since which it has not run; infinity if it was never sampled."""
        rhythm = self._threads.get(tid)
        return float("inf") if rhythm is None else rhythm.changed_ns

    def ticks_since_ns(self, tid: int) -> float:
        """Return since when it has woken up at even intervals, and never else; infinity if it does not."""
        rhythm = self._threads.get(tid)
        return float("inf") if rhythm is None or rhythm.ticks < LEAST_TICKS else rhythm.even_since_ns


def blocked_phases(
    window: use.Window,
    at_work: Sequence[OpenPhase],
    serving: Collection[int],
    last: Snapshot,
    rhythms: Rhythms,
    *,
    retries: bool = False,
) -> tuple[OpenPhase, ...] | None:
    """Return which phases are blocked for good, None if that is not proven.

    All of them or none: while one thread at work may go on, it may free the others. Without any phase at work (all
    wait at a barrier, or the worker is between phases) nobody knows which threads matter: then all must wait.

    Args:
        at_work: open phases, without barriers and without the threads in ``serving``, which beat.
        last: the last snapshot of the window.
        rhythms: fed with all snapshots, also those before the window.
        retries: whether the window is long enough to call a loop blocked that looks now and then.
    """
    if any(phase.tid == 0 for phase in at_work) or (serving and not at_work):
        return None
    counted = {phase.tid for phase in at_work} or {
        tid for tid, thread in last.threads.items() if thread.state not in "ZX" and not _CUDA.match(thread.name)
    }
    if not is_still(window, serving):
        return None
    span_ns = window.span_ns
    found = [window.threads[tid] for tid in counted if tid in window.threads]  # one that has ended stands as well
    stands = all(_stands(one, span_ns, alone=not serving, retries=retries) for one in found)
    others = [one for tid, one in window.threads.items() if tid not in counted and tid not in serving]
    if not stands or sum(one.on_cpu_ns for one in others) > OTHERS_CPU_SHARE * span_ns:
        return None
    if any(child.states - set("ZX") for child in window.children) and any(_retries(one, span_ns) for one in found):
        return None  # it may look each time whether the child has done its work, which may be waiting, too
    return None if at_work and helper_may_end_it(window, at_work, serving, rhythms) else tuple(at_work)


def helper_may_end_it(
    window: use.Window, at_work: Sequence[OpenPhase], serving: Collection[int], rhythms: Rhythms
) -> bool:
    """Whether a thread without a phase waits for something outside, maybe for the sake of one of these phases.

    It does not if it has waited like this since before the first of them began, or has ticked by itself since then.
    """
    begin_ns = min(phase.begin_ns for phase in at_work)
    tids = {phase.tid for phase in at_work}.union(serving)
    return any(
        _waits_outside(one, window.span_ns)
        and rhythms.idle_since_ns(tid) > begin_ns
        and not _ticks_idly(one, rhythms.ticks_since_ns(tid), begin_ns)
        for tid, one in window.threads.items()
        if tid not in tids
    )


def _waits_outside(one: use.ThreadUse, span_ns: int) -> bool:
    """Whether something other than another thread may end this wait: also a timeout, and anything unknown."""
    return not one.waits_for or not one.waits_for <= waits.STANDING or _retries(one, span_ns)


def _ticks_idly(one: use.ThreadUse, since_ns: float, begin_ns: int) -> bool:
    """Whether it wakes at even intervals: since before the phases, or, begun in one, as the driver's threads do."""
    if _CUDA.match(one.name):
        return True
    polls_driver = bool(one.waits_for) and one.waits_for <= {waits.DEVICE, waits.EVENT}
    return since_ns <= begin_ns or (polls_driver and since_ns < float("inf"))


def _retries(one: use.ThreadUse, span_ns: int) -> bool:
    """Whether it waits with a limit, and hardly ever enough to be waiting for the global lock."""
    return one.polls and (one.runs is None or one.runs < TIGHT_POLLS_PER_S * 1e-9 * span_ns)


def ran(seen: Sequence[Snapshot], at_work: Sequence[OpenPhase]) -> bool:
    """Whether a thread at work has had a CPU between the first and the last of these looks."""
    first, last = seen[0], seen[-1]
    return any(
        last.threads[tid].on_cpu_ns - first.threads[tid].on_cpu_ns > CPU_SHARE * (last.ns - first.ns)
        for tid in {phase.tid for phase in at_work} & last.threads.keys() & first.threads.keys()
    )


def is_still(window: use.Window, serving: Collection[int] = ()) -> bool:
    """Whether no thread and no child process worked, moved data, or waits for a disk; ``serving`` is left out."""
    if window.span_ns == 0 or (window.io_bytes or 0) > IDLE_IO_BYTES:
        return False
    threads = (one for tid, one in window.threads.items() if tid not in serving)
    return all(_is_idle(one, window.span_ns) for one in threads) and all(
        child.constant
        and child.cpu_ns <= CPU_SHARE * window.span_ns
        and child.awake_share <= AWAKE_SHARE
        and child.io_bytes <= IDLE_IO_BYTES
        and "D" not in child.states
        for child in window.children
    )


def _is_idle(one: use.ThreadUse, span_ns: int) -> bool:
    receives = waits.NETWORK in one.waits_for and (one.runs or 0) >= RECEIVING_RUNS
    return (
        one.on_cpu_ns <= CPU_SHARE * span_ns
        and one.queued_ns <= (POLLING_QUEUED_SHARE if one.polls else QUEUED_SHARE) * span_ns
        and "D" not in one.states
        and not receives
    )


def _stands(one: use.ThreadUse, span_ns: int, *, alone: bool, retries: bool) -> bool:
    """Whether this thread waits for good.

    Args:
        alone: whether nobody else is at work. Beside threads that serve, a lock may change hands: then it must not
            have been woken at all.
        retries: whether a thread that polls now and then counts as blocked too.
    """
    if not one.waits_for or not one.waits_for <= waits.STANDING:
        return False
    if not alone:
        return one.runs == 0 and not one.polls
    if _retries(one, span_ns) and (not retries or one.runs is None or one.runs < LEAST_RETRIES):
        return False
    return one.awake <= (POLLING_AWAKE_SHARE if one.polls else AWAKE_SHARE) * one.looks and one.on_cpu_ns <= (
        CPU_SHARE * span_ns
    )
