"""Decides from events and from the kernel's accounting whether a process hangs, and how; pure.

BLOCKED is proven long before any deadline: for a while no event came, and every thread that is at work stood still,
waiting for something that only another thread of the same process could give. That while counts only time in which the
machine demonstrably gave CPUs: on a crowded one a wait looks endless that is not, and a proof takes longer. All else is
told by deadlines, and those run fair: time in which the process waited for CPUs that others had does not count, and
while other work of the process gets on, a late phase is slow and not hung, up to a cap.
"""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checks.hang import waits
from harness.checks.hang.activity import (
    UNWATCHED_NS,
    Snapshot,
    ThreadSample,
    ThreadUse,
    Window,
    activity_of,
    lost_between,
    stalled_between,
    window_of,
)
from harness.core.hang import HangKind, HangProof, ThreadActivity
from harness.core.probe import Deadline
from harness.machine.proc_files import TICK_NS
from harness.probing.events import EventLog, OpenPhase
from harness.worker import wire

# Whoever waits for Python's global lock wakes up every 5 ms, for less than 1 % of a CPU each
# (docs/evidence.md#gil-waiters). Work is far above this.
CPU_SHARE = 0.02
# All threads without a phase together: several such waiters, or CUDA's and the pools' idle threads.
OTHERS_CPU_SHARE = 0.05
# A thread that only waits is hardly ever found awake: a single wake-up on a loaded machine.
AWAKE_SHARE = 0.25
QUEUED_SHARE = 0.05
# One that ticks does so often, and waits for its turn each time, for less than this: work that is kept from a CPU waits
# longer.
TURN_NS = 10_000_000
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
# A helper that waits for the network and is woken so often, and so often in a second, receives something.
RECEIVING_RUNS = 3
RECEIVING_PER_S = 1.2
# A helper with a timer of its own wakes at even intervals; this much earlier or later, on a loaded machine.
UNEVEN = 0.2
LEAST_TICKS = 2
# The driver's own threads, which live from the first use of the GPU on, as the kernel names them.
_CUDA = re.compile(r"cuda-|cuda[0-9a-f]{6}")


@dataclass(slots=True)
class _Rhythm:
    """When one thread has woken up, as far as looks can tell: a wake-up lies between two looks.

    ``changed_ns``: the look before which it has run last. Before that look's predecessor, at ``after_ns``, it had not;
    ``even_since_ns``: from when on its wake-ups may have come at even intervals.
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
        rhythm = self._threads.get(tid)
        return float("inf") if rhythm is None else rhythm.changed_ns

    def ticks_since_ns(self, tid: int) -> float:
        """Return since when it has woken up at even intervals, and never else; infinity if it does not, or no longer.

        Who has woken twice is no ticker by that: one that was asked for something then waits, and does not tick on.
        """
        rhythm = self._threads.get(tid)
        if rhythm is None or rhythm.ticks < LEAST_TICKS:
            return float("inf")
        overdue = self._before_ns - rhythm.changed_ns > (1 + UNEVEN) * rhythm.most_ns
        return float("inf") if overdue else rhythm.even_since_ns


def blocked_phases(
    window: Window,
    at_work: Sequence[OpenPhase],
    serving: Collection[int],
    last: Snapshot,
    rhythms: Rhythms,
    *,
    retries: bool = False,
    at_barriers: Collection[int] = (),
) -> tuple[OpenPhase, ...] | None:
    """Return which phases are blocked for good; None if that is not proven, empty if it is and no phase is to blame.

    All of them or none: while one thread at work may go on, it may free the others. Without any phase at work (all wait
    at a barrier, or the worker is between phases) nobody knows which threads matter: then all must wait. ``at_work`` is
    without barriers and without the threads in ``serving``, which beat; ``retries``: whether the window is long enough
    to call a loop blocked that looks now and then; threads ``at_barriers`` wait for others of the script.
    """
    if any(phase.tid == 0 for phase in at_work) or (serving and not at_work):
        return None
    counted = {phase.tid for phase in at_work} or {
        tid for tid, thread in last.threads.items() if thread.state not in "ZX" and not _CUDA.match(thread.name)
    }
    if not is_still(window, serving):
        return None
    span_ns = window.span_ns
    waiting = [window.threads[tid] for tid in counted if tid in window.threads]  # one that has ended stands as well
    all_wait = all(_waits_for_good(use, span_ns, alone=not serving, retries=retries) for use in waiting)
    others = [use for tid, use in window.threads.items() if tid not in counted and tid not in serving]
    if not all_wait or sum(use.on_cpu_ns for use in others) > OTHERS_CPU_SHARE * span_ns:
        return None
    if any(child.states - set("ZX") for child in window.children) and any(_retries(use, span_ns) for use in waiting):
        return None  # it may look each time whether the child has done its work, which may be waiting, too
    apart = {*serving, *at_barriers}
    return None if at_work and helper_may_end_it(window, at_work, apart, rhythms) else tuple(at_work)


def helper_may_end_it(window: Window, at_work: Sequence[OpenPhase], apart: Collection[int], rhythms: Rhythms) -> bool:
    """Whether a thread that is not ``apart`` waits for something outside, maybe for the sake of one of these phases.

    It does not if it has waited like this since before the first of them began, or has ticked by itself since then.
    """
    begin_ns = min(phase.begin_ns for phase in at_work)
    tids = {phase.tid for phase in at_work}.union(apart)
    return any(
        _waits_outside(use, window.span_ns)
        and rhythms.idle_since_ns(tid) > begin_ns
        and not _ticks_idly(use, rhythms.ticks_since_ns(tid), begin_ns)
        for tid, use in window.threads.items()
        if tid not in tids
    )


def _waits_outside(use: ThreadUse, span_ns: int) -> bool:
    """Whether something other than another thread may end this wait: also a timeout, and anything unknown."""
    return not use.waits_for or not use.waits_for <= waits.INSIDE or _retries(use, span_ns)


def _ticks_idly(use: ThreadUse, since_ns: float, begin_ns: int) -> bool:
    """Whether it wakes at even intervals: since before the phases, or, begun in one, as the driver's threads do."""
    if _CUDA.match(use.name):
        return True
    polls_driver = bool(use.waits_for) and use.waits_for <= {waits.DEVICE, waits.EVENT}
    return since_ns <= begin_ns or (polls_driver and since_ns < float("inf"))


def _retries(use: ThreadUse, span_ns: int) -> bool:
    """Whether it waits with a limit, and hardly ever enough to be waiting for the global lock."""
    return use.polls and (use.runs is None or use.runs < TIGHT_POLLS_PER_S * 1e-9 * span_ns)


def ran(seen: Sequence[Snapshot], at_work: Sequence[OpenPhase]) -> bool:
    first, last = seen[0], seen[-1]
    return any(
        last.threads[tid].on_cpu_ns - first.threads[tid].on_cpu_ns > CPU_SHARE * (last.ns - first.ns)
        for tid in {phase.tid for phase in at_work} & last.threads.keys() & first.threads.keys()
    )


def is_still(window: Window, serving: Collection[int] = ()) -> bool:
    """Whether no thread and no child process worked, moved data, or waits for a disk; ``serving`` is left out."""
    if window.span_ns == 0 or (window.io_bytes or 0) > IDLE_IO_BYTES:
        return False
    threads = (use for tid, use in window.threads.items() if tid not in serving)
    return all(_is_idle(use, window.span_ns) for use in threads) and all(
        child.constant
        and child.cpu_ns <= CPU_SHARE * window.span_ns
        and child.awake_share <= AWAKE_SHARE
        and child.io_bytes <= IDLE_IO_BYTES
        and "D" not in child.states
        for child in window.children
    )


def _is_idle(use: ThreadUse, span_ns: int) -> bool:
    in_turns = use.polls or (use.runs is not None and use.queued_ns <= TURN_NS * use.runs)
    woken = max(RECEIVING_RUNS, RECEIVING_PER_S * 1e-9 * span_ns)
    receives = waits.NETWORK in use.waits_for and (use.runs or 0) >= woken
    return (
        use.on_cpu_ns <= CPU_SHARE * span_ns
        and use.queued_ns <= (POLLING_QUEUED_SHARE if in_turns else QUEUED_SHARE) * span_ns
        and "D" not in use.states
        and not receives
    )


def _waits_for_good(use: ThreadUse, span_ns: int, *, alone: bool, retries: bool) -> bool:
    """Whether this thread waits for good; beside serving threads it must not have been woken: locks change hands."""
    if not use.waits_for or not use.waits_for <= waits.INSIDE:
        return False
    if use.state == "R" and not use.polls:
        return False  # it has been freed, and waits for its turn: the next look will find it elsewhere
    if not alone:
        return use.runs == 0 and not use.polls
    if _retries(use, span_ns) and (not retries or use.runs is None or use.runs < LEAST_RETRIES):
        return False
    return use.awake <= (POLLING_AWAKE_SHARE if use.polls else AWAKE_SHARE) * use.looks and use.on_cpu_ns <= (
        CPU_SHARE * span_ns
    )


# Phases whose time depends on disks and on the size of an artifact, not on one call of it.
LOAD_PHASES = (wire.LOAD, wire.INPUTS, wire.IMPORT, wire.RECORD, wire.SAVE)

# A blocked process is to be reported within 5 s of its last progress. Of these, taking stacks needs up to 1.5 s
# (two looks, docs/evidence.md#debuggers) and polling 0.3 s on a loaded machine.
BLOCKED_AFTER_S = 3.0
# The threads must have been blocked for this long: BLOCKED_AFTER_S less the first look after the last event, whose
# interval still holds work that was done before it.
STILL_S = 2.5
# Where a phase looks now and then whether it may go on, with a limit of a second each time, say.
RETRIES_AFTER_S = 10.0
RETRIES_STILL_S = 9.0
# A healthy probe ends within a few looks and is hardly ever sampled; a deadline of 0.7 s is still noticed.
LOOK_EVERY_S = 0.2
# So many looks in each second of that; half of those, so that a loaded machine is not blind.
LEAST_LOOKS_PER_S = 2.5
# From so much silence on threads are asked what they wait for. Healthy probes hardly ever come here.
DETAIL_AFTER_S = 0.4
# A serving thread beats every wire.BEAT_S; after five beats left out, it counts like any other.
BEAT_STALE_S = 5 * wire.BEAT_S
# A phase past its deadline, while other work of its process gets on, may take so many times its deadline: it
# competes with that work, for CPUs and for locks. (Deadlines are 20 x the old release's time already.)
SLOW_CAP = 4.0
# A process that got less than this part of the time in which it wanted a CPU is starved: the machine's fault.
STARVED_SHARE = 0.25
# On a CPU, or waiting for one, for most of the window: busy.
BUSY_SHARE = 0.5
# The window that a proof by deadline shows.
KEPT_S = 10.0

PhaseKey = tuple[int, str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What the worker has said.

    ``progress_ns``: the last event that was not a beat; ``beat_ns``: the last beat by thread; ``forked``: thread of the
    script -> the process that was forked for it.
    """

    phases: tuple[OpenPhase, ...] = ()
    progress_ns: int = 0
    beat_ns: Mapping[int, int]
    forked: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, event_log: EventLog, begin_ns: int) -> "Progress":
        """Read the event log; before its first event, silence began with the watch."""
        phases = tuple(event_log.open.values())
        return cls(
            phases=phases,
            progress_ns=max(event_log.progress_ns, begin_ns),
            beat_ns=dict(event_log.beat_ns),
            forked=dict(event_log.forked),
        )

    def process_of(self, blamed: Sequence[OpenPhase]) -> int | None:
        """Return the forked process that the first of these phases is in; None where the worker's own process is."""
        return self.forked.get(blamed[0].thread) if blamed else None

    def since_ns(self, phase: OpenPhase) -> int:
        """Return from when the deadline of ``phase`` counts: its begin; where a thread serves, its last beat."""
        return max(phase.begin_ns, self.beat_ns.get(phase.thread, 0)) if phase.phase == wire.SERVE else phase.begin_ns

    def beats(self, phase: OpenPhase, now_ns: int) -> bool:
        return phase.phase == wire.SERVE and now_ns - self.since_ns(phase) < 1e9 * BEAT_STALE_S

    @property
    def tids_at_barriers(self) -> frozenset[int]:
        """The threads that wait for others of the script, which may be forked processes: to the kernel, outside."""
        return frozenset(phase.tid for phase in self.phases if phase.phase == wire.BARRIER)

    def serving_tids(self, now_ns: int) -> frozenset[int]:
        """Return the threads that serve and beat: they are neither at fault nor able to disprove anything."""
        return frozenset(phase.tid for phase in self.phases if self.beats(phase, now_ns))


@dataclass(frozen=True, kw_only=True, slots=True)
class Proven:
    proof: HangProof
    blamed: tuple[OpenPhase, ...]


class History:
    """Snapshots of one process with what they mean for its deadlines; feed it every look, ask it after each."""

    def __init__(self, begin_ns: int, deadline: Deadline) -> None:
        self._begin_ns = begin_ns
        self._deadline = deadline
        self._snapshots: deque[tuple[Snapshot, int]] = deque()
        self._rhythms = Rhythms()
        self._lost_ns = 0
        self._stalled_ns = 0
        self._lost_at: dict[PhaseKey, int] = {}
        self._on_cpu_at: dict[PhaseKey, int] = {}
        self._progress_ns = 0
        self._lost_at_progress = 0
        self._stalled_at_progress = 0
        self.patience = 1.0

    def add(self, progress: Progress, snapshot: Snapshot) -> None:
        before = self._snapshots[-1][0] if self._snapshots else None
        lost_ns = max(snapshot.ns - (before.ns if before is not None else self._begin_ns) - UNWATCHED_NS, 0)
        stalled_ns = 0
        if before is not None:
            lost_ns = max(lost_between(before, snapshot), lost_ns)
            stalled_ns = stalled_between(before, snapshot, int(1e9 * LOOK_EVERY_S))
        self._lost_ns += lost_ns
        self._stalled_ns += stalled_ns

        def lost_at(ns: int) -> int:
            """Return what had been lost at a moment since the look before, if nothing was until then."""
            return self._lost_ns - min(lost_ns, max(snapshot.ns - ns, 0))

        self._rhythms.add(snapshot)
        self._snapshots.append((snapshot, snapshot.ns - self._stalled_ns))
        while self._counted_ns(snapshot.ns) - self._snapshots[0][1] > 1e9 * KEPT_S:
            self._snapshots.popleft()
        keys = [_key(progress, phase) for phase in progress.phases]
        self._lost_at = {key: self._lost_at.get(key, lost_at(key[2])) for key in keys}
        threads = [snapshot.threads.get(phase.tid) for phase in progress.phases]
        self._on_cpu_at = {
            key: self._on_cpu_at.get(key, thread.on_cpu_ns)
            for key, thread in zip(keys, threads, strict=True)
            if thread is not None
        }
        if progress.progress_ns != self._progress_ns:
            self._progress_ns, self._lost_at_progress = progress.progress_ns, lost_at(progress.progress_ns)
            self._stalled_at_progress = self._stalled_ns

    def _counted_ns(self, ns: int) -> int:
        """Return a moment on a clock that goes by while the machine demonstrably gives CPUs."""
        return ns - self._stalled_ns

    @property
    def _stalled_since_progress_ns(self) -> int:
        return self._stalled_ns - self._stalled_at_progress

    def wants_detail(self, progress: Progress, now_ns: int) -> bool:
        """Whether the next look should ask threads what they wait for: after some silence, and before a deadline."""
        return now_ns - progress.progress_ns > 1e9 * DETAIL_AFTER_S or any(
            2 * self._own_ns(progress, phase, now_ns) > 1e9 * self._limit_s(phase) for phase in progress.phases
        )

    def judge(self, progress: Progress, now_ns: int) -> Proven | None:
        """Return the proof that the process hangs; None while it may still go on."""
        return self._blocked(progress, now_ns) or self._late(progress, now_ns) or self._spent(progress, now_ns)

    def _blocked(self, progress: Progress, now_ns: int) -> Proven | None:
        return self._blocked_for(progress, now_ns, BLOCKED_AFTER_S, STILL_S, retries=False) or self._blocked_for(
            progress, now_ns, RETRIES_AFTER_S, RETRIES_STILL_S, retries=True
        )

    def _blocked_for(
        self, progress: Progress, now_ns: int, after_s: float, still_s: float, *, retries: bool
    ) -> Proven | None:
        if now_ns - progress.progress_ns - self._stalled_since_progress_ns < 1e9 * after_s * self.patience:
            return None
        since = self._counted_ns(now_ns) - 1e9 * still_s * self.patience
        seen = [
            snapshot
            for snapshot, counted_ns in self._snapshots
            if snapshot.ns >= progress.progress_ns and counted_ns >= since and snapshot.detailed
        ]
        if len(seen) < LEAST_LOOKS_PER_S * still_s:
            return None
        serving = progress.serving_tids(now_ns)
        at_work = [phase for phase in progress.phases if phase.phase != wire.BARRIER and phase.tid not in serving]
        if ran(seen, at_work):  # the common case of a long call, for little
            return None
        if any(snapshot.threads.keys() - seen[-1].threads.keys() for snapshot in seen):
            return None  # a thread has ended, and who waits may be about to find that, once it gets a CPU
        window = window_of(seen, serving)
        blamed = blocked_phases(
            window,
            at_work,
            serving,
            seen[-1],
            self._rhythms,
            retries=retries,
            at_barriers=progress.tids_at_barriers,
        )
        if blamed is None:
            return None
        return self._finding(HangKind.BLOCKED, progress, blamed, window, now_ns)

    def _late(self, progress: Progress, now_ns: int) -> Proven | None:
        silent_ns = now_ns - progress.progress_ns - (self._lost_ns - self._lost_at_progress)
        late = []
        for phase in progress.phases:
            if phase.phase == wire.BARRIER or progress.beats(phase, now_ns):
                continue
            limits = [(self._own_ns(progress, phase, now_ns), 1e9 * self._limit_s(phase))]
            if phase.phase == wire.LOAD and self._deadline.load_cpu_s is not None:
                limits.append((self._on_cpu_ns(progress, phase), 1e9 * self._deadline.load_cpu_s))
            if any(ns >= limit and (silent_ns >= limit or ns >= SLOW_CAP * limit) for ns, limit in limits):
                late.append(phase)
        if not late:
            return None
        since_ns = max(min(progress.since_ns(phase) for phase in late), now_ns - int(1e9 * KEPT_S))
        window = self._window(progress, since_ns, now_ns)
        own_s = 1e-9 * self._own_ns(progress, late[0], now_ns)
        kind = self._kind(window, late, progress, now_ns)
        return self._finding(kind, progress, tuple(late), window, now_ns, own_s=own_s)

    def _spent(self, progress: Progress, now_ns: int) -> Proven | None:
        watched_ns = now_ns - self._begin_ns
        if watched_ns < 1e9 * self._deadline.total_s:
            return None
        open_ = progress.phases
        blamed = tuple(
            phase for phase in open_ if phase.phase != wire.BARRIER and not progress.beats(phase, now_ns)
        ) or tuple(open_)
        silent_s = 1e-9 * (now_ns - progress.progress_ns)
        window = self._window(progress, now_ns - int(1e9 * KEPT_S), now_ns)
        if self._was_starved(progress, now_ns):
            kind = HangKind.STARVED
        elif silent_s >= BLOCKED_AFTER_S:
            kind = self._kind(window, blamed, progress, now_ns)
        else:
            kind = HangKind.OVERDUE
        return self._finding(kind, progress, blamed, window, now_ns)

    def _kind(self, window: Window | None, late: Sequence[OpenPhase], progress: Progress, now_ns: int) -> HangKind:
        """Say what kind of hang it is; whether it stands still, from the second half: it may have begun with work."""
        if window is None:
            return HangKind.OVERDUE
        half_ns = int(min(window.span_ns / 2, 1e9 * STILL_S))
        lately = self._window(progress, now_ns - half_ns, now_ns) or window
        kind = kind_of(window, lately, late)
        if kind is HangKind.BLOCKED and late:
            apart = progress.serving_tids(now_ns) | progress.tids_at_barriers
            return HangKind.OVERDUE if helper_may_end_it(lately, late, apart, self._rhythms) else kind
        return kind

    def _was_starved(self, progress: Progress, now_ns: int) -> bool:
        """Whether others had the CPUs most of the time: of the whole watch, or of a phase past its deadline."""
        waited = [(self._lost_ns, now_ns - self._begin_ns)]
        for phase in progress.phases:
            wall_ns = now_ns - progress.since_ns(phase)
            if wall_ns >= 1e9 * self._limit_s(phase):
                waited.append((self._lost_since(progress, phase), wall_ns))
        return any(lost_ns >= (1 - STARVED_SHARE) * wall_ns for lost_ns, wall_ns in waited)

    def _lost_since(self, progress: Progress, phase: OpenPhase) -> int:
        return self._lost_ns - self._lost_at.get(_key(progress, phase), self._lost_ns)

    def _own_ns(self, progress: Progress, phase: OpenPhase, now_ns: int) -> int:
        """Return how long ``phase`` has taken, without the time in which others had the CPUs."""
        return now_ns - progress.since_ns(phase) - self._lost_since(progress, phase)

    def _on_cpu_ns(self, progress: Progress, phase: OpenPhase) -> int:
        """Return how long the thread of ``phase`` has computed since the first look at it; 0 if it was never seen."""
        key, last = _key(progress, phase), self._snapshots[-1][0].threads.get(phase.tid) if self._snapshots else None
        return 0 if last is None or key not in self._on_cpu_at else last.on_cpu_ns - self._on_cpu_at[key]

    def _limit_s(self, phase: OpenPhase) -> float:
        return self._deadline.load_s if phase.phase in LOAD_PHASES else self._deadline.call_s

    def _window(self, progress: Progress, since_ns: int, now_ns: int) -> Window | None:
        kept = [snapshot for snapshot, _ in self._snapshots]
        seen = [snapshot for snapshot in kept if snapshot.ns >= since_ns] or kept[-1:]
        return window_of(seen, progress.serving_tids(now_ns)) if seen else None

    def _finding(
        self,
        kind: HangKind,
        progress: Progress,
        blamed: Sequence[OpenPhase],
        window: Window | None,
        now_ns: int,
        *,
        own_s: float = 0.0,
    ) -> Proven:
        notes = set(window.notes) if window is not None else {"the process could not be looked at"}
        if any(phase.tid == 0 for phase in blamed):
            notes.add("the worker did not say which of its threads is at work")
        proof = HangProof(
            kind=kind,
            silent_s=1e-9 * (now_ns - progress.progress_ns),
            window_s=1e-9 * window.span_ns if window is not None else 0.0,
            stalled_s=1e-9 * self._stalled_since_progress_ns if kind is HangKind.BLOCKED else 0.0,
            threads=threads_of(window, progress.phases) if window is not None else (),
            io_bytes=(window.io_bytes or 0) if window is not None else 0,
            own_s=own_s,
            note="; ".join(sorted(notes)),
        )
        return Proven(proof=proof, blamed=tuple(blamed))


def kind_of(window: Window, lately: Window, late: Sequence[OpenPhase]) -> HangKind:
    """Return what kind of hang it is that these phases are past their deadline; ``lately`` ends the window."""
    if window.span_ns == 0:
        return HangKind.OVERDUE
    at_work = {phase.tid for phase in late}
    helpers = (use.on_cpu_ns if use.polls else use.wanted_ns for use in window.threads.values())
    workers = (use.wanted_ns for tid, use in window.threads.items() if tid in at_work)
    children = (max(child.cpu_ns, int(child.awake_share * window.span_ns)) for child in window.children)
    if max((*helpers, *workers, *children), default=0) >= BUSY_SHARE * window.span_ns:
        return HangKind.BUSY
    waiting = [lately.threads[phase.tid] for phase in late if phase.tid in lately.threads]
    if 0 in at_work or not is_still(lately) or any(use.waits_for & waits.OUTSIDE for use in waiting):
        return HangKind.OVERDUE
    return HangKind.BLOCKED


def threads_of(window: Window, phases: Sequence[OpenPhase]) -> tuple[ThreadActivity, ...]:
    """Return the threads at work, then the main thread, whoever ran or queued, and children that are not idle."""
    threads = []
    for phase in sorted(phases, key=lambda phase: (phase.thread, phase.begin_ns)):
        use = window.threads.get(phase.tid)
        shown = activity_of(use) if use is not None else ThreadActivity(tid=phase.tid, state="Z")
        threads.append(
            replace(
                shown,
                thread=phase.thread,
                model=phase.model,
                phase=phase.phase,
                input_set=phase.input_set,
                call=phase.call,
            )
        )
    at_work = {phase.tid for phase in phases}
    for tid, use in sorted(window.threads.items()):
        moved = use.on_cpu_ns + use.queued_ns > 0.01 * window.span_ns or use.states & {"R", "D", "T", "t"}
        if tid not in at_work and (tid == window.pid or moved):
            threads.append(activity_of(use))
    for child in window.children:
        if child.cpu_ns > 0.01 * window.span_ns or child.states & {"R", "D"}:
            name = f"{child.name} (child process)"
            threads.append(ThreadActivity(tid=child.pid, name=name, state=child.state, on_cpu_s=child.cpu_ns * 1e-9))
    return tuple(threads)


def _key(progress: Progress, phase: OpenPhase) -> PhaseKey:
    return phase.thread, phase.phase, progress.since_ns(phase)
