"""Decides from events and from the kernel's accounting whether a process hangs, and how; pure.

BLOCKED is proven long before any deadline: for a while no event came, and every thread that is at work stood still,
waiting for something that only another thread of the same process could give. All else is told by deadlines, and
those run fair: time in which the process waited for CPUs that others had does not count, and while other work of the
process gets on, a late phase is slow and not hung, up to a cap.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.domain.hang import HangKind, HangProof, ThreadActivity
from harness.domain.probe import Deadline
from harness.hang import use, waits
from harness.hang.activity import Snapshot
from harness.hang.stillness import Rhythms, blocked_phases, helper_may_end_it, is_still, ran
from harness.probing.events import EventLog, OpenPhase
from harness.worker import wire

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
# So many looks in each second of that; half of those that POLL_S allows, so that a loaded machine is not blind.
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
# A watcher that was itself kept from looking for so long (a suspended machine) does not count that time.
UNWATCHED_S = 1.0
# The window that a proof by deadline shows.
KEPT_S = 10.0

PhaseKey = tuple[int, str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What the worker has said: open phases, the last event that was not a beat, the last beat by thread."""

    phases: tuple[OpenPhase, ...] = ()
    progress_ns: int = 0
    beat_ns: Mapping[int, int]

    @classmethod
    def of(cls, event_log: EventLog, begin_ns: int) -> "Progress":
        """Read the event log; before its first event, silence began with the watch."""
        phases = tuple(event_log.open.values())
        return cls(phases=phases, progress_ns=max(event_log.progress_ns, begin_ns), beat_ns=dict(event_log.beat_ns))

    def since_ns(self, phase: OpenPhase) -> int:
        """Return from when the deadline of ``phase`` counts: its begin; where a thread serves, its last beat."""
        return max(phase.begin_ns, self.beat_ns.get(phase.thread, 0)) if phase.phase == wire.SERVE else phase.begin_ns

    def beats(self, phase: OpenPhase, now_ns: int) -> bool:
        """Whether this is a serving thread that has beaten lately."""
        return phase.phase == wire.SERVE and now_ns - self.since_ns(phase) < 1e9 * BEAT_STALE_S

    def serving_tids(self, now_ns: int) -> frozenset[int]:
        """Return the threads that serve and beat: they are neither at fault nor able to disprove anything."""
        return frozenset(phase.tid for phase in self.phases if self.beats(phase, now_ns))


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A proof, and the phases that it blames."""

    proof: HangProof
    blamed: tuple[OpenPhase, ...]


class History:
    """Snapshots of one process with what they mean for its deadlines; feed it every look, ask it after each."""

    def __init__(self, begin_ns: int, deadline: Deadline) -> None:
        self._begin_ns = begin_ns
        self._deadline = deadline
        self._snapshots: deque[Snapshot] = deque()
        self._rhythms = Rhythms()
        self._lost_ns = 0
        self._lost_at: dict[PhaseKey, int] = {}
        self._progress_ns = 0
        self._lost_at_progress = 0
        self.patience = 1.0

    def add(self, progress: Progress, snapshot: Snapshot) -> None:
        """Take a look into account."""
        before_ns = self._snapshots[-1].ns if self._snapshots else self._begin_ns
        lost_ns = max(snapshot.ns - before_ns - int(1e9 * UNWATCHED_S), 0)
        if self._snapshots:
            lost_ns = max(use.lost_between(self._snapshots[-1], snapshot), lost_ns)
        self._lost_ns += lost_ns

        def lost_at(ns: int) -> int:
            """Return what had been lost at a moment since the look before, if nothing was until then."""
            return self._lost_ns - min(lost_ns, max(snapshot.ns - ns, 0))

        self._rhythms.add(snapshot)
        self._snapshots.append(snapshot)
        while snapshot.ns - self._snapshots[0].ns > 1e9 * KEPT_S:
            self._snapshots.popleft()
        keys = [_key(progress, phase) for phase in progress.phases]
        self._lost_at = {key: self._lost_at.get(key, lost_at(key[2])) for key in keys}
        if progress.progress_ns != self._progress_ns:
            self._progress_ns, self._lost_at_progress = progress.progress_ns, lost_at(progress.progress_ns)

    def wants_detail(self, progress: Progress, now_ns: int) -> bool:
        """Whether the next look should ask threads what they wait for: after some silence, and before a deadline."""
        return now_ns - progress.progress_ns > 1e9 * DETAIL_AFTER_S or any(
            2 * self._own_ns(progress, phase, now_ns) > 1e9 * self._limit_s(phase) for phase in progress.phases
        )

    def judge(self, progress: Progress, now_ns: int) -> Finding | None:
        """Return the proof that the process hangs; None while it may still go on."""
        return self._blocked(progress, now_ns) or self._late(progress, now_ns) or self._spent(progress, now_ns)

    def _blocked(self, progress: Progress, now_ns: int) -> Finding | None:
        return self._stood(progress, now_ns, BLOCKED_AFTER_S, STILL_S, retries=False) or self._stood(
            progress, now_ns, RETRIES_AFTER_S, RETRIES_STILL_S, retries=True
        )

    def _stood(
        self, progress: Progress, now_ns: int, after_s: float, still_s: float, *, retries: bool
    ) -> Finding | None:
        if now_ns - progress.progress_ns < 1e9 * after_s * self.patience:
            return None
        since = max(progress.progress_ns, now_ns - int(1e9 * still_s * self.patience))
        seen = [snapshot for snapshot in self._snapshots if snapshot.ns >= since and snapshot.detailed]
        if len(seen) < LEAST_LOOKS_PER_S * still_s:
            return None
        serving = progress.serving_tids(now_ns)
        at_work = [phase for phase in progress.phases if phase.phase != wire.BARRIER and phase.tid not in serving]
        if ran(seen, at_work):  # the common case of a long call, for little
            return None
        if retries and any(snapshot.threads.keys() - seen[-1].threads.keys() for snapshot in seen):
            return None  # a thread has ended: the next look of those that retry may find that
        window = use.window_of(seen, serving)
        blamed = blocked_phases(window, at_work, serving, seen[-1], self._rhythms, retries=retries)
        if blamed is None:
            return None
        return self._finding(HangKind.BLOCKED, progress, blamed, window, now_ns)

    def _late(self, progress: Progress, now_ns: int) -> Finding | None:
        silent_ns = now_ns - progress.progress_ns - (self._lost_ns - self._lost_at_progress)
        late = []
        for phase in progress.phases:
            if phase.phase == wire.BARRIER or progress.beats(phase, now_ns):
                continue
            own_ns, limit_ns = self._own_ns(progress, phase, now_ns), 1e9 * self._limit_s(phase)
            if own_ns >= limit_ns and (silent_ns >= limit_ns or own_ns >= SLOW_CAP * limit_ns):
                late.append(phase)
        if not late:
            return None
        since_ns = max(min(progress.since_ns(phase) for phase in late), now_ns - int(1e9 * KEPT_S))
        window = self._window(progress, since_ns, now_ns)
        return self._finding(self._kind(window, late, progress, now_ns), progress, tuple(late), window, now_ns)

    def _spent(self, progress: Progress, now_ns: int) -> Finding | None:
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

    def _kind(self, window: use.Window | None, late: Sequence[OpenPhase], progress: Progress, now_ns: int) -> HangKind:
        """Say what kind of hang it is; whether it stands still, from the second half: it may have begun with work."""
        if window is None:
            return HangKind.OVERDUE
        half_ns = int(min(window.span_ns / 2, 1e9 * STILL_S))
        lately = self._window(progress, now_ns - half_ns, now_ns) or window
        kind = kind_of(window, lately, late)
        if kind is HangKind.BLOCKED and late:
            serving = progress.serving_tids(now_ns)
            return HangKind.OVERDUE if helper_may_end_it(lately, late, serving, self._rhythms) else kind
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

    def _limit_s(self, phase: OpenPhase) -> float:
        return self._deadline.load_s if phase.phase in LOAD_PHASES else self._deadline.call_s

    def _window(self, progress: Progress, since_ns: int, now_ns: int) -> use.Window | None:
        seen = [snapshot for snapshot in self._snapshots if snapshot.ns >= since_ns] or list(self._snapshots)[-1:]
        return use.window_of(seen, progress.serving_tids(now_ns)) if seen else None

    def _finding(
        self,
        kind: HangKind,
        progress: Progress,
        blamed: Sequence[OpenPhase],
        window: use.Window | None,
        now_ns: int,
    ) -> Finding:
        notes = set(window.notes) if window is not None else {"the process could not be looked at"}
        if any(phase.tid == 0 for phase in blamed):
            notes.add("the worker did not say which of its threads is at work")
        proof = HangProof(
            kind=kind,
            silent_s=1e-9 * (now_ns - progress.progress_ns),
            window_s=1e-9 * window.span_ns if window is not None else 0.0,
            threads=threads_of(window, progress.phases) if window is not None else (),
            io_bytes=(window.io_bytes or 0) if window is not None else 0,
            note="; ".join(sorted(notes)),
        )
        return Finding(proof=proof, blamed=tuple(blamed))


def kind_of(window: use.Window, lately: use.Window, late: Sequence[OpenPhase]) -> HangKind:
    """Return what kind of hang it is that these phases are past their deadline; ``lately`` ends the window."""
    if window.span_ns == 0:
        return HangKind.OVERDUE
    at_work = {phase.tid for phase in late}
    helpers = (one.on_cpu_ns if one.polls else one.wanted_ns for one in window.threads.values())
    workers = (one.wanted_ns for tid, one in window.threads.items() if tid in at_work)
    children = (max(child.cpu_ns, int(child.awake_share * window.span_ns)) for child in window.children)
    if max((*helpers, *workers, *children), default=0) >= BUSY_SHARE * window.span_ns:
        return HangKind.BUSY
    found = [lately.threads[phase.tid] for phase in late if phase.tid in lately.threads]
    if 0 in at_work or not is_still(lately) or any(one.waits_for & waits.OUTSIDE for one in found):
        return HangKind.OVERDUE
    return HangKind.BLOCKED


def threads_of(window: use.Window, phases: Sequence[OpenPhase]) -> tuple[ThreadActivity, ...]:
    """Return the threads at work in the order of the worker's, then those of the others that a reader should see.

    Those are the main thread, whoever ran or waited for a CPU, and child processes that are not idle.
    """
    found = []
    for phase in sorted(phases, key=lambda phase: (phase.thread, phase.begin_ns)):
        one = window.threads.get(phase.tid)
        shown = use.activity_of(one) if one is not None else ThreadActivity(tid=phase.tid, state="Z")
        found.append(
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
    for tid, one in sorted(window.threads.items()):
        moved = one.on_cpu_ns + one.queued_ns > 0.01 * window.span_ns or one.states & {"R", "D", "T", "t"}
        if tid not in at_work and (tid == window.pid or moved):
            found.append(use.activity_of(one))
    for child in window.children:
        if child.cpu_ns > 0.01 * window.span_ns or child.states & {"R", "D"}:
            name = f"{child.name} (child process)"
            found.append(ThreadActivity(tid=child.pid, name=name, state=child.state, on_cpu_s=child.cpu_ns * 1e-9))
    return tuple(found)


def _key(progress: Progress, phase: OpenPhase) -> PhaseKey:
    return phase.thread, phase.phase, progress.since_ns(phase)
