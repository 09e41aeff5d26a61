"""How threads and child processes have spent the time between two or more snapshots; pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.domain.hang import ThreadActivity
from harness.hang import waits
from harness.hang.activity import Snapshot, ThreadSample


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadUse:
    """One thread over a window.

    Attributes:
        started_ns: as in ``ThreadSample``.
        on_cpu_ns, queued_ns: time on a CPU and time spent waiting for one.
        runs: how often it got a CPU; None if the kernel does not count.
        looks: in how many detailed snapshots it was seen.
        awake: in how many of those it ran or waited for a CPU, or could not be asked because it had just run.
        states: the letters that it was seen in.
        waits_for: what it was seen waiting for.
        usual_wait: the most frequent of those.
    """

    tid: int
    name: str
    state: str
    started_ns: int
    on_cpu_ns: int
    queued_ns: int
    runs: int | None
    looks: int
    awake: int
    states: frozenset[str]
    waits_for: frozenset[str]
    usual_wait: str
    io_bytes: int

    @property
    def wanted_ns(self) -> int:
        """Time in which it ran, or would have."""
        return self.on_cpu_ns + self.queued_ns

    @property
    def polls(self) -> bool:
        """Whether it was seen in a wait with a limit: it wakes up, looks, and waits again."""
        return waits.TIMED_LOCK in self.waits_for


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildUse:
    """One child process over a window; ``constant`` is False if it started or ended in it."""

    pid: int
    name: str
    state: str
    cpu_ns: int
    io_bytes: int
    states: frozenset[str]
    awake_share: float
    constant: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A process over a window.

    Attributes:
        pid: of the process, and of its main thread.
        looks: how many detailed snapshots there are.
        io_bytes: what the process has read and written, without the threads that stand apart; None if unknown.
    """

    pid: int
    span_ns: int
    looks: int
    threads: dict[int, ThreadUse]
    children: tuple[ChildUse, ...]
    io_bytes: int | None
    notes: frozenset[str]


def queued_between(before: ThreadSample, now: ThreadSample, span_ns: int) -> int:
    """Return how long the thread waited for a CPU between two looks.

    The kernel adds a wait to ``run_delay`` when it ends: so a thread that is runnable and has not run since the
    last look has waited all the time, and a wait that is counted now may have begun before it.
    """
    if now.state == before.state == "R" and now.runs is not None and now.runs == before.runs:
        still_on_its_cpu = now.on_cpu_ns > before.on_cpu_ns
        return 0 if still_on_its_cpu else span_ns
    return min(now.run_delay_ns - before.run_delay_ns, span_ns)


def lost_between(before: Snapshot, now: Snapshot) -> int:
    """Return for how long others kept the process from getting on, in ns.

    That is the longest time that one of its threads waited for a CPU, less what its own other threads had of the
    CPUs meanwhile: threads that keep each other waiting are nobody else's fault.
    """
    span_ns = now.ns - before.ns
    both = [(before.threads[tid], thread) for tid, thread in now.threads.items() if tid in before.threads]
    used_ns = sum(thread.on_cpu_ns - earlier.on_cpu_ns for earlier, thread in both)
    lost_ns = 0.0
    for earlier, thread in both:
        ran_ns = thread.on_cpu_ns - earlier.on_cpu_ns
        own_share = min(max(used_ns - ran_ns, 0) / max(span_ns * now.cpus, 1), 1.0)
        queued_ns = queued_between(earlier, thread, span_ns)
        if earlier.state == thread.state == "R" and thread.runs is not None:
            queued_ns = max(queued_ns, span_ns - ran_ns)  # the wait that it is in is not counted yet
        lost_ns = max(lost_ns, queued_ns * (1.0 - own_share))
    return int(lost_ns)


def window_of(snapshots: Sequence[Snapshot], apart: Collection[int] = ()) -> Window:
    """Fold at least one snapshot; ``apart`` are threads whose input and output is left out."""
    first, last = snapshots[0], snapshots[-1]
    detailed = [snapshot for snapshot in snapshots if snapshot.detailed]
    return Window(
        pid=last.pid,
        span_ns=last.ns - first.ns,
        looks=len(detailed),
        threads={tid: _thread_use(tid, snapshots) for tid in last.threads},
        children=tuple(_child_uses(detailed)),
        io_bytes=_moved(detailed, apart),
        notes=frozenset().union(*(snapshot.notes for snapshot in snapshots)),
    )


def _thread_use(tid: int, snapshots: Sequence[Snapshot]) -> ThreadUse:
    seen = [(snapshot, snapshot.threads[tid]) for snapshot in snapshots if tid in snapshot.threads]
    looked = [sample for snapshot, sample in seen if snapshot.detailed]
    first, last = seen[0][1], seen[-1][1]
    words = Counter(sample.waits_for for sample in looked if sample.waits_for)
    return ThreadUse(
        tid=tid,
        name=last.name,
        state=last.state,
        started_ns=last.started_ns,
        on_cpu_ns=last.on_cpu_ns - first.on_cpu_ns,
        queued_ns=sum(queued_between(before, now, at.ns - since.ns) for (since, before), (at, now) in pairwise(seen)),
        runs=None if last.runs is None or first.runs is None else last.runs - first.runs,
        looks=len(looked),
        awake=sum(not sample.waits_for for sample in looked),
        states=frozenset(sample.state for _, sample in seen),
        waits_for=frozenset(words),
        usual_wait=words.most_common(1)[0][0] if words else "",
        io_bytes=(looked[-1].io_bytes or 0) - (looked[0].io_bytes or 0) if looked else 0,
    )


def _child_uses(detailed: Sequence[Snapshot]) -> Iterable[ChildUse]:
    by_pid: dict[int, list[tuple[int, str, str, int, int]]] = {}
    for at, snapshot in enumerate(detailed):
        for child in snapshot.children:
            row = (at, child.name, child.state, child.cpu_ns, child.io_bytes)
            by_pid.setdefault(child.pid, []).append(row)
    for pid, rows in by_pid.items():
        _, name, state, cpu_ns, io_bytes = rows[-1]
        yield ChildUse(
            pid=pid,
            name=name,
            state=state,
            cpu_ns=cpu_ns - rows[0][3],
            io_bytes=io_bytes - rows[0][4],
            states=frozenset(row[2] for row in rows),
            awake_share=sum(row[2] == "R" for row in rows) / len(rows),
            constant=len(rows) == len(detailed),
        )


def _moved(detailed: Sequence[Snapshot], apart: Collection[int]) -> int | None:
    """Return the bytes that moved between the first and the last look; a thread's that ended are still counted."""
    if not detailed or detailed[0].io_bytes is None or detailed[-1].io_bytes is None:
        return None
    first, last = detailed[0], detailed[-1]
    moved = detailed[-1].io_bytes - detailed[0].io_bytes
    for tid in apart:
        if tid in first.threads and tid in last.threads:
            moved -= (last.threads[tid].io_bytes or 0) - (first.threads[tid].io_bytes or 0)
    return moved


def activity_of(use: ThreadUse) -> ThreadActivity:
    """Return what a report says of this thread, without what the worker said it was doing."""
    return ThreadActivity(
        tid=use.tid,
        name=use.name,
        state=use.state,
        on_cpu_s=use.on_cpu_ns * 1e-9,
        run_delay_s=use.queued_ns * 1e-9,
        waits_for=use.usual_wait,
    )
