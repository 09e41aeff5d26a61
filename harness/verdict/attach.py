"""What a running process comes to, by what was seen of it over a window; pure. The first rule that holds says it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.checks.hang import waits
from harness.checks.hang.stack_formats import PYTHON
from harness.checks.hang.stack_words import Wait
from harness.core.attach import HUNG, Attached, Attachment, Lock, LockKind, ProcessState, ThreadFacts, Why

HEALTHY = frozenset({ProcessState.WORKING, ProcessState.IDLE})
# Of the window: a thread on a CPU for longer computes, one for less only waits.
COMPUTES = 0.5
STANDS = 0.05
# Whoever got less than this of the time that it wanted a CPU is starved (4 loops beside it on one core leave 0.2).
STARVED_SHARE = 0.4
STARVED_AND_MOVING = 0.25
# Its own threads have the CPUs for at least this part of what these can give.
OWN_SHARE = 0.6
THROTTLED_SHARE = 0.2
# So many threads for each CPU that want one: more than a pool that is twice as large as it should be.
CROWD = 3.0
# With so many they are to blame whatever else runs beside them.
OVERRUN = 8.0
IN_DISK = 0.35
# Of a thread that waits for nothing else, where it queues for CPUs as well.
SOME_DISK = 0.15
# What a log line or a helper moves in a window; more is work.
IDLE_IO_BYTES = 65_536
# A thread that has slept so often in a second takes part in something; one in an endless loop hardly ever sleeps, in
# Python when another thread that looks twice in a second asks for the GIL.
TURNS_PER_S = 10.0
# The kernel's PF_EXITING.
EXITING_FLAG = 0x4
# What threads wait for that a request ends, and what another process ends.
REQUESTS = frozenset({waits.NETWORK, waits.EVENT, waits.SOME_SOCKET})
CHILD = frozenset({waits.PROCESS, waits.PIPE, waits.FILE_LOCK})
# Who waits for the GIL looks 200 times in a second.
LOOKS_FOR_GIL_PER_S = 50
# Pools to which event loops of Python give what blocks; there, in a queue or in C such a thread waits for work.
POOL_FILE = re.compile(r"(^|/)(concurrent/futures/thread|anyio/_backends/\w+)\.py$")
IDLE_FILE = re.compile(rf"(^|/)queue\.py$|{POOL_FILE.pattern}")
IDLE_FUNCTION = re.compile(r"SimpleQueue_get")
PLUMBING_FILE = re.compile(r"(^|/)threading\.py$")
# Whoever has answered a client so lately is not hung as a whole, whatever one of its requests waits for.
ANSWERS_S = 5.0
# What is not sure of a server that answers others.
UNSURE = (Why.UNANSWERED, Why.OWNER_WAITS, Why.GIL)
IN_A_CALL = ("call", "compile", "load", "capture")
MOST_LINKS = 100


@dataclass(frozen=True, slots=True)
class _Finding:
    state: ProcessState
    why: Why
    culprits: tuple[int, ...] = ()


def judged(process: Attached) -> Attached:
    """Return the process with its state, why, and the threads that matter, the most telling first."""
    found = next(found for rule in RULES if (found := rule(process)) is not None)
    return replace(process, state=found.state, why=found.why, culprits=found.culprits)


def worst_first(processes: Sequence[Attached]) -> tuple[Attached, ...]:
    """Return the processes of one answer; who only waits for those that it has forked is idle.

    Of several, those that have ended come last: the others are what serves.
    """
    order, parents = list(ProcessState), {process.parent for process in processes}
    together = [
        replace(process, state=ProcessState.IDLE, why=Why.FORKED)
        if process.pid in parents and process.why in (Why.CHILD, Why.NO_EVIDENCE) and not _forking(process)
        else process
        for process in processes
    ]
    ended = ProcessState.ZOMBIE
    return tuple(sorted(together, key=lambda one: (one.state is ended, order.index(one.state), one.pid)))


def hung(attachment: Attachment) -> bool:
    """Whether one of them hangs; a probe, which restarts servers, wants a request that waits for what a pool may do.

    Idle threads of a pool may stand in line for its lock, which the first has while it waits for work. Nor does a probe
    restart what answers others on the same port, itself or by another of the processes.
    """
    hanging = [process for process in _serving(attachment) if process.state in HUNG]
    if attachment.probe:
        answering = {port for process in attachment.processes if _answers(process) for port in _ports(process)}
        hanging = [
            one
            for one in hanging
            if (one.why not in UNSURE or answering.isdisjoint(_ports(one)))
            and (one.why is not Why.OWNER_WAITS or _asked(one) or not _waits_for_requests(one))
        ]
    return bool(hanging)


def well(attachment: Attachment) -> bool:
    return all(process.state in HEALTHY for process in _serving(attachment))


def _serving(attachment: Attachment) -> Sequence[Attached]:
    """Return the processes without those that have ended, unless all have."""
    living = [process for process in attachment.processes if process.state is not ProcessState.ZOMBIE]
    return living or attachment.processes


def _waits_for_requests(process: Attached) -> bool:
    return any(thread.waits & REQUESTS for thread in process.threads)


def _ended(process: Attached) -> _Finding | None:
    return _Finding(ProcessState.ZOMBIE, Why.ENDED) if not process.threads else None


def _stopped(process: Attached) -> _Finding | None:
    states = {thread.state for thread in process.threads}
    if process.frozen:
        return _Finding(ProcessState.STOPPED, Why.FROZEN)
    if states <= {"T", "t"}:
        return _Finding(ProcessState.STOPPED, Why.TRACED if process.tracer or "t" in states else Why.SIGNAL)
    return None


def _exiting(process: Attached) -> _Finding | None:
    if process.flags & EXITING_FLAG and not process.leader_ended:
        return _Finding(ProcessState.EXITING, Why.KERNEL)
    leaving = tuple(thread.tid for thread in process.threads if thread.phase == "exit")
    return _Finding(ProcessState.EXITING, Why.HANDLERS, leaving) if leaving else None


def _locked(process: Attached) -> _Finding | None:
    """Follow each lock that was waited for all the time to whoever is at the end of the chain."""
    threads = {thread.tid: thread for thread in process.threads}
    held = {tid: thread.lock for tid, thread in threads.items() if thread.lock is not None}
    candidates = []
    for tid in held:
        chain, why = _chain(tid, held)
        end = threads.get(chain[-1])
        if why is not None:
            return _Finding(ProcessState.BLOCKED, why, chain)
        if end is not None and end.tid not in held and end.on_cpu < STANDS and end.waits:
            candidates.append((chain, end))
    for chain, end in candidates:
        if end.waits <= waits.UNTIMED and end.runs == 0 and held[chain[-2]].kind is not LockKind.THREAD_END:
            return _Finding(ProcessState.BLOCKED, Why.OWNER_WAITS, chain)
    return None


def _chain(tid: int, held: dict[int, Lock]) -> tuple[tuple[int, ...], Why | None]:
    chain = [tid]
    while chain[-1] in held and len(chain) < MOST_LINKS:
        lock = held[chain[-1]]
        if lock.owner in chain:
            return tuple(chain[chain.index(lock.owner) :]), Why.CYCLE
        chain.append(lock.owner)
        if not lock.lives:
            return tuple(chain), Why.OWNER_ENDED
    return tuple(chain), None


def _moves(process: Attached) -> bool:
    traffic = process.traffic
    return bool(traffic is not None and traffic.moved_bytes) or (process.io_bytes or 0) > IDLE_IO_BYTES


def _quiet(process: Attached) -> bool:
    return process.total_on_cpu < STANDS * max(1.0, len(process.threads) ** 0.5) and not _moves(process)


def _in_the_kernel(process: Attached) -> _Finding | None:
    disk = tuple(
        thread.tid
        for thread in process.threads
        if waits.DISK in thread.waits and thread.in_disk >= (SOME_DISK if thread.waits == {waits.DISK} else IN_DISK)
    )
    if disk:
        return _Finding(ProcessState.DISK, Why.UNINTERRUPTIBLE, disk)
    if forking := _forking(process):
        return _Finding(ProcessState.OUTSIDE, Why.CHILD, forking)
    waiting = tuple(thread.tid for thread in process.threads if thread.stack_wait == Wait.GPU)
    if waiting and not _moves(process):
        return _Finding(ProcessState.DEVICE, Why.GPU, waiting)
    driver = tuple(
        thread.tid
        for thread in process.threads
        if thread.waits == {waits.DEVICE} and not thread.runs and not thread.name.startswith("cuda")
    )
    return _Finding(ProcessState.DEVICE, Why.DRIVER, driver) if driver and _quiet(process) else None


def _forking(process: Attached) -> tuple[int, ...]:
    """Return the threads that cannot go on before a child has begun its own program."""
    return tuple(thread.tid for thread in process.threads if thread.in_disk >= IN_DISK and thread.waits & CHILD)


def _short_of_cpus(process: Attached) -> _Finding | None:
    if process.throttled_s > THROTTLED_SHARE * process.window_s:
        return _Finding(ProcessState.STARVED, Why.QUOTA)
    wanting = [thread for thread in process.threads if thread.wanted >= COMPUTES]
    if not wanting:
        return None
    demand = sum(thread.wanted for thread in process.threads)
    tids = tuple(thread.tid for thread in sorted(wanting, key=lambda thread: -thread.queued))
    own = process.total_on_cpu >= OWN_SHARE * process.cpus
    crowded = own and demand >= CROWD * process.cpus
    if (crowded or demand >= OVERRUN * process.cpus) and not _moves(process):
        return _Finding(ProcessState.OVERSUBSCRIBED, Why.OWN_THREADS, tids)
    share = sum(thread.on_cpu for thread in wanting) / sum(thread.wanted for thread in wanting)
    alone = min(1.0, process.cpus / demand)  # what it would have had without others
    if share < (STARVED_SHARE if not _moves(process) else STARVED_AND_MOVING) * alone and not own:
        return _Finding(ProcessState.STARVED, Why.OTHERS, tids)
    return None


def _computes(process: Attached) -> _Finding | None:
    busy = sorted(
        (thread for thread in process.threads if thread.wanted >= COMPUTES), key=lambda thread: -thread.on_cpu
    )
    tids = tuple(thread.tid for thread in busy)
    if not busy and process.total_on_cpu < COMPUTES:
        return _Finding(ProcessState.WORKING, Why.MOVES) if _moves(process) and not _quiet(process) else None
    if _moves(process):
        return _Finding(ProcessState.WORKING, Why.MOVES, tids)
    if all((thread.sleeps or 0) >= TURNS_PER_S * process.window_s for thread in busy) and not _asked(process):
        return _Finding(ProcessState.WORKING, Why.TURNS, tids)
    return _Finding(ProcessState.BUSY, Why.COMPUTES, tids)


def _asked(process: Attached) -> int:
    """Return how many requests wait: unanswered, or not even accepted."""
    return process.traffic.unanswered + process.traffic.waiting if process.traffic is not None else 0


def _answers(process: Attached) -> bool:
    """Whether somebody has had an answer on one of its ports just now, and since the oldest request waits."""
    traffic = process.traffic
    if traffic is None or traffic.answered_s is None:
        return False
    return traffic.answered_s < min(ANSWERS_S, traffic.oldest_s or ANSWERS_S)


def _all_wait(process: Attached) -> _Finding | None:
    if not process.all_wait or any(_may_go_on(thread, process) for thread in process.threads):
        return None
    at_work = [thread for thread in process.threads if thread.lock is not None or thread.phase in IN_A_CALL]
    return _Finding(ProcessState.BLOCKED, Why.ALL_WAIT, _tids(at_work or process.threads))


def _wants_gil(process: Attached) -> _Finding | None:
    holder = tuple(thread.tid for thread in process.threads if thread.tid == process.gil_holder and not thread.runs)
    tight = [thread for thread in asks_for_gil(process) if thread.stack_wait == Wait.GIL or holder]
    if not tight:
        return None
    return _Finding(ProcessState.BLOCKED, Why.GIL, (*holder, *(tid for tid in _tids(tight) if tid not in holder)))


def asks_for_gil(process: Attached) -> Sequence[ThreadFacts]:
    """Return the threads that look for a lock as often as who waits for the GIL does, where nothing computes."""
    if not _quiet(process):
        return ()
    looks = LOOKS_FOR_GIL_PER_S * process.window_s
    return [thread for thread in process.threads if waits.TIMED_LOCK in thread.waits and (thread.runs or 0) >= looks]


def _known(process: Attached) -> _Finding | None:
    return _Finding(ProcessState.BLOCKED, Why.KNOWN) if process.known is not None and _quiet(process) else None


def _in_a_call(process: Attached) -> _Finding | None:
    """Threads that are inside of a call of a model and wait for others, while nothing computes."""
    if not _quiet(process):
        return None
    called = [thread for thread in process.threads if thread.phase in IN_A_CALL]
    stands = called and all(
        thread.runs == 0
        and thread.waits <= waits.UNTIMED
        and thread.waits
        and thread.stack
        and thread.stack.moved is False
        for thread in called
    )
    others = any(thread.waits & CHILD or waits.DEVICE in thread.waits for thread in process.threads)
    upstream = process.traffic is not None and process.traffic.upstream
    if not stands or others or upstream:
        return None
    return _Finding(ProcessState.BLOCKED, Why.IN_A_CALL, _tids(called))


def _asked_for_nothing(process: Attached) -> _Finding | None:
    """Say what requests wait for while nothing computes: its own requests to others, else it is blocked.

    Where others are answered it may be a long poll or a batch that fills, or one handler is stuck.
    """
    begun = process.traffic.begun if process.traffic is not None else 0
    if not (_asked(process) or begun) or not _quiet(process):
        return None
    upstream = [thread for thread in process.threads if thread.upstream]
    if upstream or (process.traffic is not None and process.traffic.upstream):
        return _Finding(ProcessState.OUTSIDE, Why.UPSTREAM, _tids(upstream))
    children = [thread for thread in process.threads if thread.waits & CHILD]
    if children:
        return _Finding(ProcessState.OUTSIDE, Why.CHILD, _tids(children))
    waiting = [
        thread for thread in process.threads if thread.waits and thread.waits <= waits.UNTIMED and not thread.runs
    ]
    if _answers(process):
        return _Finding(ProcessState.UNKNOWN, Why.OTHERS_ANSWERED, _tids(sorted(waiting, key=_is_idle)))
    if takers := _takers(process, waiting):
        rest = (thread for thread in waiting if thread not in takers)
        return _Finding(ProcessState.BLOCKED, Why.UNANSWERED, _tids([*takers, *rest]))
    return _Finding(ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER, _tids(waiting))


def _takers(process: Attached, waiting: Sequence[ThreadFacts]) -> Sequence[ThreadFacts]:
    """Return those of the threads in a wait without end that have a request in hand; empty: none surely has.

    Any may have one that no event loop watches. One that a loop does watch may have come by half: a worker of the
    loop's pool has it that is inside of its work. None has where another wait may end by itself.
    """
    traffic = process.traffic
    if traffic is None or any(_may_go_on(thread, process) for thread in process.threads):
        return ()
    surely = traffic.unanswered - traffic.looped + traffic.waiting > 0
    takers = [thread for thread in waiting if surely or _works_for_a_loop(thread)]
    return sorted(takers, key=_is_idle)


def _is_idle(thread: ThreadFacts) -> bool:
    """Whether its frames are known as a wait for work."""
    frames = thread.stack.frames if thread.stack is not None else ()
    files = [frame.file for frame in frames if frame.language == PYTHON and not PLUMBING_FILE.search(frame.file)]
    return any(IDLE_FILE.search(file) for file in files[:1]) or any(
        IDLE_FUNCTION.search(one.function) for one in frames
    )


def _works_for_a_loop(thread: ThreadFacts) -> bool:
    files = [frame.file for frame in thread.stack.frames] if thread.stack is not None else []
    return any(map(POOL_FILE.search, files)) and not _is_idle(thread)


def _may_go_on(thread: ThreadFacts, process: Attached) -> bool:
    """Whether what a thread waits for ends at some time by itself; who only looks for the GIL does not count."""
    if waits.TIMED_LOCK in thread.waits:
        return (thread.runs or 0) < LOOKS_FOR_GIL_PER_S * process.window_s
    return waits.TIMER in thread.waits or (thread.limited and not thread.runs)


def _listens(process: Attached) -> _Finding | None:
    listening = [thread for thread in process.threads if thread.waits & REQUESTS]
    if not listening:
        return None
    upstream = any(thread.upstream for thread in process.threads)
    if (upstream or (process.traffic is not None and process.traffic.upstream)) and not _ports(process):
        return _Finding(ProcessState.OUTSIDE, Why.UPSTREAM, _tids(listening))
    return _Finding(ProcessState.IDLE, Why.LISTENS, _tids(listening))


def _ports(process: Attached) -> tuple[int, ...]:
    return process.traffic.ports if process.traffic is not None else ()


def _unknown(process: Attached) -> _Finding:
    children = [thread for thread in process.threads if thread.waits & CHILD]
    if children:
        return _Finding(ProcessState.OUTSIDE, Why.CHILD, _tids(children))
    seen = any(thread.waits for thread in process.threads)
    return _Finding(ProcessState.UNKNOWN, Why.NO_EVIDENCE if seen else Why.NO_RIGHTS)


def _tids(threads: Sequence[ThreadFacts]) -> tuple[int, ...]:
    return tuple(thread.tid for thread in threads)


RULES: Sequence[Callable[[Attached], _Finding | None]] = (
    _ended,
    _stopped,
    _exiting,
    _locked,
    _in_the_kernel,
    _short_of_cpus,
    _computes,
    _all_wait,
    _wants_gil,
    _known,
    _in_a_call,
    _asked_for_nothing,
    _listens,
    _unknown,
)
