"""What a running process that the gate did not start is doing: facts of each thread, and what they come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.core.hang import ThreadStack


class ProcessState(StrEnum):
    """What a process comes to, the gravest first."""

    BLOCKED = "blocked"
    ZOMBIE = "zombie"
    STOPPED = "stopped"
    EXITING = "exiting"
    DISK = "waits for a disk"
    DEVICE = "waits for a device"
    STARVED = "starved"
    OVERSUBSCRIBED = "too many threads"
    BUSY = "busy without visible progress"
    OUTSIDE = "waits for another process"
    UNKNOWN = "cannot be told"
    WORKING = "works"
    IDLE = "idle"


HUNG = frozenset({ProcessState.BLOCKED, ProcessState.ZOMBIE, ProcessState.STOPPED})
"""What a probe calls hung: nothing of the process itself ends it."""


class Why(StrEnum):
    """By which observation a process is in its state."""

    CYCLE = "locks in a circle"
    OWNER_ENDED = "a lock whose holder has ended"
    OWNER_WAITS = "a lock whose holder waits"
    ALL_WAIT = "every thread waits for another"
    GIL = "the GIL is not released"
    KNOWN = "stacks of a known hang"
    IN_A_CALL = "a call waits and nothing computes"
    UNANSWERED = "requests without an answer"
    OTHERS_ANSWERED = "other requests are answered"
    CLIENT_OR_TIMER = "for its client or a timer"
    ENDED = "ended, not waited for"
    SIGNAL = "by a signal"
    TRACED = "by a tracer"
    FROZEN = "by its control group"
    HANDLERS = "exit handlers run"
    KERNEL = "the kernel ends it"
    UNINTERRUPTIBLE = "uninterruptible in the kernel"
    DRIVER = "in a device driver"
    GPU = "for the GPU"
    OTHERS = "others have its CPUs"
    QUOTA = "its CPU quota is spent"
    OWN_THREADS = "its own threads compete"
    COMPUTES = "computes, nothing answered"
    UPSTREAM = "its own request is not answered"
    CHILD = "for a child process or pipe"
    MOVES = "bytes move"
    TURNS = "threads compute and sleep in turns"
    LISTENS = "waits for requests"
    FORKED = "waits for what it has forked"
    NO_EVIDENCE = "nothing runs, and nothing says whether it should"
    NO_RIGHTS = "the kernel does not let it be seen"


class LockKind(StrEnum):
    """What is held, by what the C library keeps of it."""

    MUTEX = "mutex"
    KERNEL_MUTEX = "robust or PI mutex"
    READ_WRITE = "read-write lock"
    THREAD_END = "end of a thread"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """What a thread has waited for all the time, and who holds it.

    Attributes:
        owner: thread id; ``lives``: whether the process has it; ``forked``: its parent has, so that the lock was taken
            before a fork.
    """

    kind: LockKind
    address: int
    owner: int
    lives: bool
    forked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadFacts:
    """One thread over the window.

    Attributes:
        state: one letter, as in ``HangProof``.
        on_cpu, queued: shares of the window: on a CPU, and waiting for one.
        runs: how often it got a CPU; None: the kernel does not count.
        sleeps: how often it gave up its CPU by itself; None: unknown.
        waits_for: what it usually waited for, as in ``checks/hang/waits.py``; ``waits``: everything that it waited for.
        in_disk: share of looks in state D.
        upstream: it waits for a socket that no client of this process has connected to.
        limited: its wait for descriptors has a time limit.
        stack_wait: what its innermost frames wait for, empty without a stack.
        phase: in the server's life, by its stack: ``"load"``, ``"compile"``, ...; empty where it does not say.
    """

    tid: int
    name: str = ""
    state: str = "S"
    on_cpu: float = 0.0
    queued: float = 0.0
    runs: int | None = None
    sleeps: int | None = None
    waits_for: str = ""
    waits: frozenset[str] = frozenset()
    in_disk: float = 0.0
    upstream: bool = False
    limited: bool = False
    lock: Lock | None = None
    stack: ThreadStack | None = None
    stack_wait: str = ""
    phase: str = ""

    @property
    def wanted(self) -> float:
        """Share of the window in which it ran, or would have."""
        return self.on_cpu + self.queued


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """The TCP connections of a process.

    Attributes:
        ports: on which it listens.
        waiting: connections that have waited to be accepted since before the window.
        unanswered: incoming connections whose last bytes came before the window and were never answered.
        oldest_s: for how long the oldest of these has waited.
        looped: how many of these an event loop watches that has read all of them: maybe half a request.
        begun: as ``unanswered``, but a thread waits to read more from it.
        answered_s: how long ago bytes were last sent to a client that has no request open, by this process or another
            that listens on the same port; None: to none that is still connected or has gone in the window.
        maybe: others where the client sent last, right after an answer: a request, or what HTTP/2 says after one.
        upstream: where it has asked something itself before the window, and has received nothing since.
        moved_bytes: received and sent in the window; None: cannot be seen.
    """

    ports: tuple[int, ...] = ()
    connections: int = 0
    waiting: int = 0
    unanswered: int = 0
    oldest_s: float = 0.0
    looped: int = 0
    begun: int = 0
    answered_s: float | None = None
    maybe: int = 0
    upstream: tuple[str, ...] = ()
    moved_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedLibrary:
    """LibTorch or an OpenMP runtime as the process has it mapped.

    ``version``: empty where nothing beside it says; ``replaced``: the file on disk is another by now.
    """

    path: str
    version: str = ""
    replaced: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadGroup:
    """Threads that do the same; ``like``: one of them, ``frames``: its telling ones, innermost first."""

    tids: tuple[int, ...]
    like: int
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownHang:
    """What the stacks are known to mean, from ``checks/hang/readings.py``.

    Attributes:
        threads: ids of those that it is about, the most telling first; empty where each is as good as another.
        lines: name of a mitigation -> way (``"python"``, ``"c++"``, ``"triton"``, ``"environment"``) -> what to paste.
    """

    name: str
    title: str
    words: str
    source: str
    threads: tuple[int, ...] = ()
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attached:
    """One process.

    Attributes:
        command: its command line, shortened.
        age_s: since its start.
        window_s: for how long it was looked at.
        stops_s: for how long each tool that took stacks ran: the process stood still for that long at most.
        cpus: those that it may use; ``throttled_s``: of the window, out of CPU quota.
        total_on_cpu: of all threads, in CPUs.
        parent: its parent's id where it was forked from there and runs no program of its own; else 0.
        tracer: what traces it, 0 where nothing does.
        leader_ended: its main thread has ended and others go on.
        all_wait: no thread runs or can be woken from outside.
        artifacts: files of models that it has open, mapped or among its arguments, as ``"how: path"``.
        scenario: of the gate, in which such a hang happens again; ``again``: the command.
        next_command: which to run now: it keeps the evidence, or looks for who has the CPUs; empty where there is none.
        gil_holder: thread id, 0 where nobody told.
        tool: what took the stacks; ``remarks``: what could not be seen, and how to allow it.
    """

    pid: int
    command: str
    age_s: float
    window_s: float
    state: ProcessState = ProcessState.UNKNOWN
    why: Why = Why.NO_EVIDENCE
    culprits: tuple[int, ...] = ()
    phase: str = ""
    threads: tuple[ThreadFacts, ...] = ()
    groups: tuple[ThreadGroup, ...] = ()
    stops_s: tuple[float, ...] = ()
    cpus: float = 1
    throttled_s: float = 0.0
    total_on_cpu: float = 0.0
    io_bytes: int | None = None
    parent: int = 0
    tracer: int = 0
    flags: int = 0
    frozen: bool = False
    leader_ended: bool = False
    all_wait: bool = False
    traffic: Traffic | None = None
    torch: tuple[LoadedLibrary, ...] = ()
    openmp: tuple[LoadedLibrary, ...] = ()
    artifacts: tuple[str, ...] = ()
    gil_holder: int = 0
    known: KnownHang | None = None
    scenario: str = ""
    again: str = ""
    next_command: str = ""
    tool: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """The processes that were asked about, the worst first; ``wall_s``: how long it took to look at all of them."""

    asked: str
    processes: tuple[Attached, ...]
    wall_s: float = 0.0
    probe: bool = False
