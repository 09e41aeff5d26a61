"""Looks at one process for some seconds, without rights that it does not have, and returns what it saw."""

import contextlib
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.checks.attach import locks, mapped, sockets
from harness.checks.hang import waits
from harness.checks.hang.activity import (
    NO_SYSCALL,
    Sampler,
    Snapshot,
    ThreadUse,
    Window,
    living,
    peek,
    window_of,
)
from harness.checks.hang.proof import Rhythms, blocked_phases
from harness.core.attach import Attached, Lock, ThreadFacts
from harness.machine import control_groups
from harness.machine.files import text_of
from harness.machine.load import quota
from harness.machine.proc_files import numbers_in, read, status_in

WINDOW_S: Final = 2.0
EVERY_S: Final = 0.1
# A look costs 50 us for each thread; of a process with thousands fewer are taken.
MOST_OF_A_CORE: Final = 0.2
MOST_COMMAND: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class _Moment:
    """What is compared between the begin and the end of the window."""

    sleeps: Mapping[int, int]
    locks: Mapping[int, Lock]
    watches: Mapping[int, waits.Watch]
    upstream: frozenset[int]
    read: frozenset[int]
    looped: frozenset[int]
    connections: dict[int, sockets.Connection] | None
    throttled_s: float
    closed: Mapping[int, float] = field(default_factory=dict)


class Gone(Exception):
    """The process is not there, or has ended meanwhile."""


def observe(pid: int, window_s: float = WINDOW_S) -> Attached:
    """Return what ``/proc`` shows of a process over a window; nothing notices it.

    Raises:
        Gone: there is no such process, or it ended meanwhile.
    """
    sampler, rhythms = Sampler(pid), Rhythms()
    looks: list[Snapshot] = []
    begin = time.monotonic()
    before: _Moment | None = None
    answered_at: dict[int, float] = {}
    with contextlib.closing(sockets.Closings()) as closings:
        while True:
            began = time.monotonic()
            look = sampler.sample(detailed=True)
            if look is None:
                raise Gone(pid)
            looks.append(look)
            rhythms.add(look)
            if before is None:
                before = _moment(pid, look, sampler)
            answered_at.update(dict.fromkeys(closings.answered(), began))
            cost = time.monotonic() - began
            if time.monotonic() - begin >= window_s:
                break
            time.sleep(max(EVERY_S - cost, cost * (1 / MOST_OF_A_CORE - 1)))
    now = _moment(pid, looks[-1], sampler)
    if before is None or not Path(f"/proc/{pid}").exists():
        raise Gone(pid)
    closed = {port: time.monotonic() - at for port, at in answered_at.items()}
    return _attached(pid, looks, rhythms, before, replace(now, closed=closed))


def _attached(pid: int, looks: Sequence[Snapshot], rhythms: Rhythms, before: _Moment, now: _Moment) -> Attached:
    window, last = window_of(looks), looks[-1]
    span_s = max(1e-9 * window.span_ns, 1e-3)
    root = f"/proc/{pid}"
    shared = living(root, last.threads)
    files = mapped.mapped_files(shared)
    arguments = text_of(Path(f"{shared}/cmdline")).rstrip("\0").split("\0")
    alive = [tid for tid, thread in last.threads.items() if thread.state not in "ZX"]
    threads = tuple(_thread(use, looks, before, now, span_s) for tid, use in window.threads.items() if tid in alive)
    status, kernel = _status(root), status_in(read(f"{root}/stat"))
    return Attached(
        pid=pid,
        command=" ".join(arguments)[:MOST_COMMAND] or text_of(Path(f"{root}/comm")).strip(),
        age_s=max(time.monotonic() - 1e-9 * last.threads[pid].started_ns, 0.0) if pid in last.threads else 0.0,
        window_s=span_s,
        threads=threads,
        cpus=_cpus(pid, last.cpus),
        throttled_s=max(now.throttled_s - before.throttled_s, 0.0),
        total_on_cpu=sum(thread.on_cpu for thread in threads),
        io_bytes=window.io_bytes,
        parent=_prefork_parent(int(status.get("PPid", "0")), root),
        tracer=int(status.get("TracerPid", "0")),
        flags=kernel.flags if kernel is not None else 0,
        frozen=_is_frozen(root),
        leader_ended=bool(alive) and pid not in alive,
        all_wait=bool(alive) and _all_wait(window, last, rhythms),
        traffic=sockets.traffic_of(
            before.connections,
            now.connections,
            span_s,
            read=before.read & now.read,
            looped=before.looped & now.looped,
            closed=now.closed,
        ),
        torch=mapped.torch_of(files, f"{shared}/root"),
        openmp=mapped.openmp_of(files),
        artifacts=mapped.artifacts_of(shared, files, arguments),
        remarks=tuple(sorted(window.notes)) if alive else (),
    )


def _all_wait(window: Window, last: Snapshot, rhythms: Rhythms) -> bool:
    return blocked_phases(window, (), (), last, rhythms) is not None


def _cpus(pid: int, usable: int) -> float:
    cores = quota(own=Path(f"/proc/{pid}/cgroup")).cores
    return min(usable, cores) if cores is not None else usable


def _is_frozen(folder: str) -> bool:
    """Whether the control group of a process is frozen, as far as it can be seen here: in either version's files."""
    if text_of(Path(f"{folder}/wchan")).startswith("do_freezer_trap"):
        return True
    groups = control_groups.folders("freezer", own=Path(f"{folder}/cgroup"))
    texts = (text_of(group / "freezer.state") + text_of(group / "cgroup.events") for group in groups)
    return any("FROZEN" in text or "frozen 1" in text for text in texts)


def _status(folder: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text_of(Path(f"{folder}/status")).splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _prefork_parent(parent: int, folder: str) -> int:
    """Return the parent if it was forked from there: both stacks begin at the same place, which a program draws."""
    own, other = (status_in(read(f"{one}/stat")) for one in (folder, f"/proc/{parent}"))
    if parent <= 1 or own is None or other is None or own.stack_begin <= 1:
        return 0
    return parent if other.stack_begin == own.stack_begin else 0


def _moment(pid: int, look: Snapshot, sampler: Sampler) -> _Moment:
    shared = living(f"/proc/{pid}", look.threads)
    connections = sockets.connections_of(shared, sockets.inodes_of(shared))
    around = sampler.surroundings()
    watches = {
        tid: waits.watch(platform.machine(), text_of(Path(f"/proc/{pid}/task/{tid}/syscall")), around)
        for tid, thread in look.threads.items()
        if thread.state == "S"
    }
    inodes = {tid: [sockets.inode_of(f"{shared}/fd/{fd}") for fd in one.descriptors] for tid, one in watches.items()}
    return _Moment(
        sleeps=_sleeps(pid, look.threads),
        locks=_locks(pid, shared, [tid for tid, thread in look.threads.items() if thread.state == "S"]),
        watches=watches,
        upstream=frozenset(
            tid
            for tid, (inode, *others) in ((tid, some) for tid, some in inodes.items() if some)
            if inode and not others and not watches[tid].together and not sockets.serves(inode, connections or {})
        ),
        read=frozenset(one for tid, some in inodes.items() if not watches[tid].together for one in some),
        looped=frozenset(one for tid, some in inodes.items() if watches[tid].together for one in some),
        connections=connections,
        throttled_s=quota(own=Path(f"/proc/{pid}/cgroup")).throttled_s,
    )


def _sleeps(pid: int, tids: Mapping[int, object]) -> dict[int, int]:
    found = {}
    for tid in tids:
        switches = _status(f"/proc/{pid}/task/{tid}").get("voluntary_ctxt_switches", "")
        if switches.isdigit():
            found[tid] = int(switches)
    return found


def _locks(pid: int, shared: str, waiting: Sequence[int]) -> dict[int, Lock]:
    """Return what threads wait for and who holds it; numbers in memory are those of the process's own namespace."""
    outside = {}
    for entry in _tids(pid):
        inside = _status(f"/proc/{pid}/task/{entry}").get("NSpid", str(entry)).split()[-1]
        outside[int(inside)] = entry
    inner = {tid: inside for inside, tid in outside.items()}
    found = {}
    for tid in waiting:
        lock = locks.lock_of(
            platform.machine(),
            text_of(Path(f"/proc/{pid}/task/{tid}/syscall")),
            lambda address, length: peek(shared, address, length),
            outside.__contains__,
            inner.get(tid, tid),
        )
        if lock is not None:
            parents = Path(f"/proc/{_status(f'/proc/{pid}').get('PPid')}/task/{lock.owner}")
            found[tid] = replace(
                lock, owner=outside.get(lock.owner, lock.owner), forked=not lock.lives and parents.exists()
            )
    return found


def _tids(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return numbers_in(f"/proc/{pid}/task")
    return []


def _thread(use: ThreadUse, looks: Sequence[Snapshot], before: _Moment, now: _Moment, span_s: float) -> ThreadFacts:
    seen = [look.threads[use.tid] for look in looks if use.tid in look.threads]
    sleeps = (before.sleeps.get(use.tid), now.sleeps.get(use.tid))
    lock = now.locks.get(use.tid)
    return ThreadFacts(
        tid=use.tid,
        name=use.name,
        state=use.state,
        on_cpu=1e-9 * use.on_cpu_ns / span_s,
        queued=1e-9 * use.queued_ns / span_s,
        runs=use.runs,
        sleeps=sleeps[1] - sleeps[0] if sleeps[0] is not None and sleeps[1] is not None else None,
        waits_for=use.usual_wait,
        waits=use.waits_for,
        in_disk=sum(sample.state == "D" for sample in seen) / len(seen),
        upstream=use.tid in before.upstream and use.tid in now.upstream and use.runs == 0,
        limited=use.tid in now.watches and now.watches[use.tid].limited,
        lock=lock if lock is not None and lock == before.locks.get(use.tid) and use.runs == 0 else None,
    )


def may_trace(process: Attached) -> bool:
    return NO_SYSCALL not in process.remarks
