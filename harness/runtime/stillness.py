"""Says whether a process stands still for good: nobody in it runs, and nothing outside is waited for; pure.

The thresholds are measured on CPython 3.11 and glibc 2.36 with 2 CPUs, idle and with four spinning processes beside.
"""

from collections.abc import Collection, Sequence

from harness.runtime import use, waits
from harness.runtime.activity import Snapshot
from harness.runtime.event_reader import OpenPhase

# Whoever waits for Python's global lock wakes up every 5 ms: 0.3 % of a CPU each. Work is far above this.
CPU_SHARE = 0.02
# All threads without a phase together: sixteen such waiters, or CUDA's and the pools' idle threads.
OTHERS_CPU_SHARE = 0.05
# A thread that only waits is hardly ever found awake: a single wake-up on a loaded machine.
AWAKE_SHARE = 0.25
QUEUED_SHARE = 0.05
# But one that polls wakes up 200 times in a second, and on a loaded machine waits for a CPU each time.
POLLING_AWAKE_SHARE = 0.6
POLLING_QUEUED_SHARE = 0.6
# A wait with a limit ends by itself. Only who has met the limit so often, and waits again, will go on like this.
LEAST_POLLS = 3
# What idle helpers move: a byte through a pipe, an event counter, a line in a log.
IDLE_IO_BYTES = 4096
# A helper that waits for the network and is woken so often receives something.
RECEIVING_RUNS = 3


def blocked_phases(
    window: use.Window, at_work: Sequence[OpenPhase], serving: Collection[int], last: Snapshot
) -> tuple[OpenPhase, ...] | None:
    """Return which phases are blocked for good, None if that is not proven.

    All of them or none: while one thread at work may go on, it may free the others. Without any phase at work (all
    wait at a barrier, or the worker is between phases) nobody knows which threads matter: then all must wait.

    Args:
        at_work: open phases, without barriers and without the threads in ``serving``, which beat.
        last: the last snapshot of the window.
    """
    if any(phase.tid == 0 for phase in at_work) or (serving and not at_work):
        return None
    counted = {phase.tid for phase in at_work} or {
        tid for tid, thread in last.threads.items() if thread.state not in "ZX"
    }
    if not is_still(window, serving):
        return None
    span_ns = window.span_ns
    stands = all(
        _stands(window.threads[tid], span_ns, alone=not serving) for tid in counted if tid in window.threads
    )  # a thread that has ended within its phase stands as well
    others = [one for tid, one in window.threads.items() if tid not in counted and tid not in serving]
    if not stands or sum(one.on_cpu_ns for one in others) > OTHERS_CPU_SHARE * span_ns:
        return None
    return tuple(at_work)


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


def _stands(one: use.ThreadUse, span_ns: int, *, alone: bool) -> bool:
    """Whether this thread waits for good.

    Args:
        alone: whether nobody else is at work. Beside threads that serve, a lock may change hands: then it must not
            have been woken at all.
    """
    if not one.waits_for or not one.waits_for <= waits.STANDING:
        return False
    if not alone:
        return one.runs == 0 and not one.polls
    if one.polls and (one.runs is None or one.runs < LEAST_POLLS):
        return False
    return one.awake <= (POLLING_AWAKE_SHARE if one.polls else AWAKE_SHARE) * one.looks and one.on_cpu_ns <= (
        CPU_SHARE * span_ns
    )
