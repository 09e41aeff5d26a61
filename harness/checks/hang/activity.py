"""Looks at a process from outside, through ``/proc``: which of its threads run, queue for a CPU, or wait for what.

Nothing here disturbs the process, and nothing raises: it may end at any time, and any file may be missing (a kernel
without ``schedstat``) or forbidden (``syscall`` and ``io`` need the right to trace it). What could not be seen is
said in ``Snapshot.notes``.
"""

import contextlib
import os
import platform
import re
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from harness.checks.hang import waits
from harness.core.hang import ThreadActivity
from harness.machine.proc_files import accounts_in, links_in, numbers_in, read, status_in

# A thread that used less of the time since the last look is asked what it waits for; the others are at work.
QUIET_SHARE = 0.05
# Who holds a pipe is asked of every process of the machine, so not at every look.
PIPE_HOLDERS_S = 1.0
# A look that came later than this share of the interval was itself kept waiting for a CPU; and what seems to stand may
# be several such waits away from its next event: a child that ends, a helper that reads it, the thread that is freed.
ON_TIME = 0.25
WAKE_UPS = 4
# While others wait for CPUs all the time, the time counts half.
PRESSURE_SHARE = 0.5
# However loud the machine is, this share of the time counts.
LEAST_COUNTED = 0.2
# A watcher that was itself kept from looking for so long (a suspended machine) does not count that time.
UNWATCHED_NS = 1_000_000_000
_NO_SCHEDSTAT = "this kernel does not count the time that a thread waits for a CPU"
NO_SYSCALL = "what its threads wait for cannot be seen: this needs the right to trace the process (ptrace)"
# EPOLLIN | EPOLLOUT: what an EPOLLONESHOT has switched off until its handler is done has neither.
_IN_OR_OUT = 0x5
_NO_IO = "its input and output cannot be counted"


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadSample:
    """One thread at one moment.

    Attributes:
        state: one letter, as in ``HangProof``.
        started_ns: CLOCK_MONOTONIC, up to a tick (10 ms) before it did.
        on_cpu_ns, run_delay_ns: since its start; ``run_delay_ns`` grows only when it gets a CPU again.
        runs: how often it has got a CPU; None if the kernel does not count.
        waits_for: as in ``waits``; empty if it was not asked, runs, or nobody can tell.
        io_bytes: read and written; None if it was not asked.
    """

    tid: int
    name: str = ""
    state: str = "S"
    started_ns: int = 0
    on_cpu_ns: int = 0
    run_delay_ns: int = 0
    runs: int | None = 0
    waits_for: str = ""
    io_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildSample:
    """One process that the process has started, directly or not; its CPU time includes that of its dead children.

    ``state``: of its main thread, or R where any of its threads is; ``run_delay_ns``: how long its threads have waited
    for CPUs, all together.
    """

    pid: int
    name: str = ""
    state: str = "S"
    cpu_ns: int = 0
    run_delay_ns: int = 0
    io_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A process at one moment.

    Attributes:
        ns: CLOCK_MONOTONIC.
        detailed: whether ``waits_for``, children and ``io_bytes`` were asked for.
        io_bytes: what its system calls and its page faults have read and written; None if unknown.
        pressure_ns: for how long, since the machine's start, somebody on it waited for a CPU; None if unknown.
    """

    ns: int
    pid: int = 0
    threads: Mapping[int, ThreadSample]
    children: tuple[ChildSample, ...] = ()
    io_bytes: int | None = None
    cpus: int = 1
    pressure_ns: int | None = None
    detailed: bool = False
    notes: frozenset[str] = field(default_factory=frozenset)


class Sampler:
    """Takes snapshots of one process. About 20 us per thread, 50 us with detail, measured on a 2 GHz machine."""

    def __init__(self, pid: int, *, proc: str = "/proc", machine: str = platform.machine()) -> None:
        self._pid = pid
        self._proc = proc
        self._root = f"{proc}/{pid}"
        self._shared = self._root
        self._machine = machine
        self._slept_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        self._before: Mapping[int, ThreadSample] = {}
        self._before_ns = 0
        self._notes: set[str] = set()
        self._shared_pipes: dict[str, tuple[int, bool]] = {}

    def sample(self, *, detailed: bool, apart: Collection[int] = ()) -> Snapshot | None:
        """Return the process now, None if it is gone; ``apart``: threads whose input and output is counted singly."""
        self._notes = set()
        now_ns = time.monotonic_ns()
        try:
            tids = numbers_in(f"{self._root}/task")
        except OSError:
            return None
        self._shared = living(self._root, tids)
        around = self.surroundings(tids)
        threads = {}
        for tid in tids:
            sample = self._thread(tid, now_ns, around if detailed else None, count_io=detailed and tid in apart)
            if sample is not None:
                threads[tid] = sample
        self._before, self._before_ns = threads, now_ns
        return Snapshot(
            ns=now_ns,
            pid=self._pid,
            threads=threads,
            children=tuple(self._children(tids)) if detailed else (),
            io_bytes=self._io(self._root) if detailed else None,
            cpus=self._cpus(),
            pressure_ns=self._pressure_ns(),
            detailed=detailed,
            notes=frozenset(self._notes),
        )

    def _thread(
        self, tid: int, now_ns: int, around: waits.Surroundings | None, *, count_io: bool
    ) -> ThreadSample | None:
        folder = f"{self._root}/task/{tid}"
        status = status_in(read(f"{folder}/stat"))
        if status is None:
            return None
        accounts = (read(f"{folder}/schedstat") or b"").split()
        runs: int | None = None
        if len(accounts) >= 3 and (accounts[2] != b"0" or status.state == "R"):
            on_cpu_ns, run_delay_ns, runs = int(accounts[0]), int(accounts[1]), int(accounts[2])
        else:  # all zero, in a thread that must have run: the kernel is configured not to count
            self._notes.add(_NO_SCHEDSTAT)
            on_cpu_ns, run_delay_ns = status.cpu_ns, 0
        words = ""
        if around is not None and self._is_quiet(tid, on_cpu_ns, now_ns):
            words = self._waits_for(folder, status.state, around)
        return ThreadSample(
            tid=tid,
            name=status.name,
            state=status.state,
            started_ns=status.started_ns - self._slept_ns,
            on_cpu_ns=on_cpu_ns,
            run_delay_ns=run_delay_ns,
            runs=runs,
            waits_for=words,
            io_bytes=self._io(folder) if count_io else None,
        )

    def _pressure_ns(self) -> int | None:
        total = re.match(rb"some .*total=(\d+)", read(f"{self._proc}/pressure/cpu") or b"")
        return 1000 * int(total[1]) if total is not None else None

    def _cpus(self) -> int:
        with contextlib.suppress(OSError):
            return len(os.sched_getaffinity(self._pid))
        return os.cpu_count() or 1

    def _is_quiet(self, tid: int, on_cpu_ns: int, now_ns: int) -> bool:
        before = self._before.get(tid)
        return before is None or on_cpu_ns - before.on_cpu_ns <= QUIET_SHARE * (now_ns - self._before_ns)

    def _waits_for(self, folder: str, state: str, around: waits.Surroundings) -> str:
        if state in "Tt":
            return waits.STOPPED if state == "T" else waits.DEBUGGER
        if state not in "SD":
            return ""
        call = read(f"{folder}/syscall")
        wchan = (read(f"{folder}/wchan") or b"").decode("ascii", "replace")
        if call is None:
            if Path(folder).exists():
                self._notes.add(NO_SYSCALL)
            return waits.DISK if state == "D" else waits.without_rights(wchan)
        words = waits.in_words(self._machine, call.decode("ascii", "replace"), wchan, around)
        return waits.DISK if state == "D" and words not in (waits.DEVICE, waits.PROCESS) else words

    def _io(self, folder: str) -> int | None:
        """Sum up what was read and written: by system calls, and by page faults in mapped files."""
        text = read(f"{folder}/io")
        if not text:
            if Path(folder).exists():
                self._notes.add(_NO_IO)
            return None
        counts = dict(line.split(b": ") for line in text.splitlines() if b": " in line)
        return sum(int(counts.get(name, 0)) for name in (b"rchar", b"wchar", b"read_bytes", b"write_bytes"))

    def _children(self, tids: list[int]) -> Iterator[ChildSample]:
        """Walk down the processes that it has started; a process whose parent has ended is not found."""
        parents = [(self._pid, tid) for tid in tids]
        while parents:
            pid, tid = parents.pop()
            for child in map(int, (read(f"{self._proc}/{pid}/task/{tid}/children") or b"").split()):
                folder = f"{self._proc}/{child}"
                status = status_in(read(f"{folder}/stat"))
                if status is None:
                    continue
                threads: list[int] = []
                with contextlib.suppress(OSError):
                    threads = numbers_in(f"{folder}/task")
                states, delays_ns = zip(
                    *(_queue(f"{folder}/task/{thread}") for thread in (threads or [child])), strict=True
                )
                yield ChildSample(
                    pid=child,
                    name=status.name,
                    state="R" if "R" in states else status.state,
                    cpu_ns=status.cpu_ns + status.dead_children_cpu_ns,
                    run_delay_ns=sum(delays_ns),
                    io_bytes=self._io(folder) or 0,
                )
                parents += [(child, thread) for thread in threads]

    def surroundings(self, tids: Collection[int] = ()) -> waits.Surroundings:
        """Return in what the arguments of its system calls are looked up; ``tids``: its threads."""
        return waits.Surroundings(self._kind_of, self._watched_by, self._peek, set(tids).__contains__)

    def _kind_of(self, fd: int) -> str:
        path = Path(f"{self._shared}/fd/{fd}")
        try:
            mode = path.stat().st_mode
            link = str(path.readlink())
        except OSError:
            return ""
        if stat.S_ISSOCK(mode):
            return waits.NETWORK
        if stat.S_ISFIFO(mode):
            return waits.PIPE if self._is_shared(link) else waits.OWN_PIPE
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            return waits.DEVICE
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return waits.DISK
        if "timerfd" in link:
            return waits.TIMER
        return waits.PROCESS if "pidfd" in link else waits.EVENT

    def _is_shared(self, link: str) -> bool:
        """Whether another process holds this pipe too. Processes of other users cannot be asked."""
        now_ns = time.monotonic_ns()
        asked_ns, shared = self._shared_pipes.get(link, (0, False))
        if now_ns - asked_ns > 1e9 * PIPE_HOLDERS_S:
            others = (pid for pid in numbers_in(self._proc) if pid != self._pid)
            shared = any(link in links_in(f"{self._proc}/{pid}/fd") for pid in others)
            self._shared_pipes[link] = now_ns, shared
        return shared

    def _watched_by(self, fd: int) -> tuple[int, ...]:
        lines = (read(f"{self._shared}/fdinfo/{fd}") or b"").splitlines()
        words = (line.split() for line in lines if line.startswith(b"tfd:"))
        return tuple(int(fd) for _, fd, _, events, *_ in words if int(events, 16) & _IN_OR_OUT)

    def _peek(self, address: int, length: int) -> bytes:
        return peek(self._shared, address, length)


class WorkerSampler:
    """Takes snapshots of a worker: its process and those that it has forked for its script, as if they were one."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._samplers: dict[int, Sampler] = {}

    def sample(self, forked: Collection[int], *, detailed: bool, apart: Collection[int] = ()) -> Snapshot | None:
        """Return the worker now, None if it is gone; of the processes it has ``forked``, those that have not ended."""
        looks = [self._look(pid, detailed=detailed, apart=apart) for pid in (self._pid, *forked)]
        first = looks[0]
        if first is None:
            return None
        others = [look for look in looks[1:] if look is not None]
        alive = [thread for look in others for thread in look.threads.values() if thread.state not in "ZX"]
        children = [child for look in (first, *others) for child in look.children if child.pid not in forked]
        moved = [look.io_bytes for look in (first, *others)]
        return replace(
            first,
            threads={**first.threads, **{thread.tid: thread for thread in alive}},
            children=tuple({child.pid: child for child in children}.values()),
            io_bytes=None if None in moved else sum(filter(None, moved)),
            notes=first.notes.union(*(look.notes for look in others)),
        )

    def _look(self, pid: int, *, detailed: bool, apart: Collection[int]) -> Snapshot | None:
        return self._samplers.setdefault(pid, Sampler(pid)).sample(detailed=detailed, apart=apart)


def living(folder: str, tids: Iterable[int]) -> str:
    """Return where a process's files and memory are seen: its own folder, or a thread's that outlives the first."""
    status = status_in(read(f"{folder}/stat"))
    if status is None or status.state not in "ZX":
        return folder
    threads = (f"{folder}/task/{tid}" for tid in tids)
    alive = ((thread, status_in(read(f"{thread}/stat"))) for thread in threads)
    return next((thread for thread, seen in alive if seen is not None and seen.state not in "ZX"), folder)


def peek(folder: str, address: int, length: int) -> bytes:
    """Return the memory of a process there; empty where it cannot be read."""
    with contextlib.suppress(OSError, OverflowError), Path(f"{folder}/mem").open("rb", 0) as memory:
        return os.pread(memory.fileno(), length, address)
    return b""


def _queue(folder: str) -> tuple[str, int]:
    status = status_in(read(f"{folder}/stat"))
    return status.state if status is not None else "", accounts_in(read(f"{folder}/schedstat"))[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadUse:
    """One thread over a window.

    ``looks`` are the detailed snapshots that it was seen in; ``awake``: those in which it ran, waited for a CPU, or
    could not be asked because it had just run. ``runs`` is None if the kernel does not count.
    """

    tid: int
    name: str
    state: str
    on_cpu_ns: int
    queued_ns: int
    runs: int | None
    looks: int
    awake: int
    states: frozenset[str]
    waits_for: frozenset[str]
    usual_wait: str

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
    """A process over a window; ``io_bytes`` leaves out threads that stand apart, None if unknown."""

    pid: int
    span_ns: int
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
    CPUs meanwhile: threads that keep each other waiting are nobody else's fault. Or what a child process waited.
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
    waited = {child.pid: child.run_delay_ns for child in before.children}
    for child in now.children:
        lost_ns = max(lost_ns, min(child.run_delay_ns - waited.get(child.pid, child.run_delay_ns), span_ns))
    return int(lost_ns)


def stalled_between(before: Snapshot, now: Snapshot, look_every_ns: int) -> int:
    """Return the part of the time between two looks in which the machine did not demonstrably give CPUs, in ns.

    Three things show that: threads and child processes of the process that waited for a CPU, a look that came late, and
    the kernel's account of others that waited. None of them alone says how long a thread that is woken now would wait
    for its turn: so time counts less, and never nothing, that a process which hangs is named on any machine. Time in
    which nobody looked does not count at all.
    """
    span_ns = now.ns - before.ns
    if span_ns > UNWATCHED_NS:
        return span_ns
    late_ns = WAKE_UPS * max(span_ns - (1 + ON_TIME) * look_every_ns, 0)
    pressure = (before.pressure_ns, now.pressure_ns)
    wanted_ns = pressure[1] - pressure[0] if pressure[0] is not None and pressure[1] is not None else 0
    stalled_ns = max(lost_between(before, now), late_ns, PRESSURE_SHARE * min(wanted_ns, span_ns))
    return int(min(stalled_ns, (1 - LEAST_COUNTED) * span_ns))


def window_of(snapshots: Sequence[Snapshot], apart: Collection[int] = ()) -> Window:
    """Fold at least one snapshot; ``apart`` are threads whose input and output is left out."""
    first, last = snapshots[0], snapshots[-1]
    detailed = [snapshot for snapshot in snapshots if snapshot.detailed]
    return Window(
        pid=last.pid,
        span_ns=last.ns - first.ns,
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
        on_cpu_ns=last.on_cpu_ns - first.on_cpu_ns,
        queued_ns=sum(queued_between(before, now, at.ns - since.ns) for (since, before), (at, now) in pairwise(seen)),
        runs=None if last.runs is None or first.runs is None else last.runs - first.runs,
        looks=len(looked),
        awake=sum(not sample.waits_for for sample in looked),
        states=frozenset(sample.state for _, sample in seen),
        waits_for=frozenset(words),
        usual_wait=words.most_common(1)[0][0] if words else "",
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
