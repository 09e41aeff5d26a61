"""What running processes do as a document: the state of each, why, the threads that matter, what to set."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from harness.checks.hang.stack_words import Wait, is_plumbing, relevant_frames, telling
from harness.checks.hang.waits import DISK, LOCK, PROCESS
from harness.core.attach import (
    HUNG,
    Attached,
    Attachment,
    LoadedLibrary,
    LockKind,
    ProcessState,
    ThreadFacts,
    ThreadGroup,
    Why,
)
from harness.core.hang import Frame
from harness.core.text import counted, first_few
from harness.report.document import (
    ALWAYS,
    BAD,
    GOOD,
    OPEN,
    Block,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
    placed,
)
from harness.report.documents.causes import WAYS

MOST_GROUPS, MOST_FRAMES, MOST_PYTHON, MOST_NAMED, MOST_CHAIN = 6, 5, 2, 4, 5
PYTHON_LINE = re.compile(r"\.py:\d+$")
# So much more CPU was wanted than was had, before that is said of a process that works.
MUCH_MORE = 1.5
# Of a CPU: what uses less explains nothing by it.
A_LITTLE = 0.05
# A source file keeps its folder and its name.
LONG_PATH = re.compile(r"/\S*/([^/\s]+/[^/\s]+:\d+)")
# Without a stack the kernel's wait is all that is known.
CONDITION = "a lock or a condition variable"
NO_HOLDER = "a Python lock, whose holder is recorded nowhere"
IDLE = (ProcessState.IDLE, ProcessState.WORKING)
MEANS = {
    Why.CYCLE: "threads wait for each other's locks, which nothing ends",
    Why.OWNER_ENDED: "a thread waits for a lock whose holder is gone: it ended, or was left behind by a fork, with the"
    " lock in hand",
    Why.OWNER_WAITS: "a thread holds a lock that others want, and waits itself; nothing computes",
    Why.ALL_WAIT: "every thread waits for another one of this process, and nothing from outside can wake any",
    Why.GIL: "threads ask for Python's global lock (GIL) all the time, nobody lets it go, and nothing computes",
    Why.KNOWN: "its stacks are those of a known hang, and nothing computes",
    Why.IN_A_CALL: "calls of a model wait for other threads, and nothing computes",
    Why.UNANSWERED: "requests wait for an answer, nothing computes, and nothing that it asked of others is open",
    Why.OTHERS_ANSWERED: "requests wait while others are answered: a long poll, a batch that is not full, or one stuck"
    " handler",
    Why.CLIENT_OR_TIMER: "it waits for the client, which may not have sent all of its request, or for a timer",
    Why.ENDED: "it has ended; its parent has not waited for it, and holds its entry",
    Why.SIGNAL: "SIGSTOP or SIGTSTP; kill -CONT goes on",
    Why.TRACED: "a debugger or tracer holds it",
    Why.FROZEN: "its control group is frozen: docker pause, or a freezer of the host",
    Why.HANDLERS: "its exit handlers and destructors run",
    Why.KERNEL: "the kernel is ending it: it gives memory back, or writes a core dump",
    Why.UNINTERRUPTIBLE: "threads are in the kernel's uninterruptible sleep",
    Why.DRIVER: "a thread is in a device driver, and nothing else gets on",
    Why.GPU: "a thread waits for work on the GPU",
    Why.OTHERS: "its threads want CPUs that others have",
    Why.QUOTA: "its control group has used up its CPU quota",
    Why.OWN_THREADS: "its own threads compete for too few CPUs",
    Why.COMPUTES: "it computes, and no byte came or went meanwhile: a slow call looks the same as an endless one",
    Why.UPSTREAM: "it waits for the answer of another server",
    Why.CHILD: "it waits for a child process, a pipe or a file lock",
    Why.MOVES: "it computes or moves data, and bytes come and go",
    Why.TURNS: "its threads compute and sleep in turns",
    Why.LISTENS: "it waits for requests, and none is open",
    Why.FORKED: "it waits for the processes that it has forked",
    Why.NO_EVIDENCE: "nothing runs, and nothing shows whether something should",
    Why.NO_RIGHTS: "nothing runs, and this user may not see what it waits for",
}
BESIDE = (
    "with the server's own model (its path for MODEL.pt and its torch's release for RELEASE, where these stand), and"
    " beside it a request of production's size: a smaller one may pass (docs/guide/own-models.md#requests)"
)
ASK = (
    "send it one request, and attach again while that is open: a request without an answer tells a hang from an idle"
    " server"
)
AGAIN = {
    ProcessState.BUSY: "attach again in a minute: the same outermost frame and the same open request speak for an"
    " endless loop",
    ProcessState.STARVED: "the command below names who has the CPUs, as top -H does; in a container raise its CPU"
    " limit",
    ProcessState.OVERSUBSCRIBED: "fewer intra-op threads (OMP_NUM_THREADS, torch.set_num_threads), or more CPUs",
    ProcessState.UNKNOWN: ASK,
    ProcessState.ZOMBIE: "end or mend its parent: nothing can be done to the process itself",
}

STUCK = "a handler of yours on the same line for longer than its time limits is stuck"
NEXT = {
    Why.NO_RIGHTS: "",
    Why.QUOTA: "raise the CPU limit of its container",
    Why.OTHERS_ANSWERED: f"attach again in a minute: {STUCK}",
    Why.FROZEN: "docker unpause, or thaw its control group",
    Why.CLIENT_OR_TIMER: f"attach again in a minute, with py-spy and eu-stack installed: {STUCK}",
}


def attach_document(attachment: Attachment) -> Document:
    """Return the document."""
    worst = attachment.processes[0]
    return Document(
        title=f"Attach: {attachment.asked}",
        verdict=Verdict(word=worst.state.value, tone=_tone(worst.state), means=_means(worst, attachment)),
        full="--format json",
        parts=()
        if attachment.probe
        else (
            *([_overview(attachment)] if len(attachment.processes) > 1 else []),
            *(_process(process) for process in _telling(attachment)),
        ),
    )


def _telling(attachment: Attachment) -> Iterator[Attached]:
    """Yield the processes that have a part of their own: the worst, and what is as bad."""
    worst, *others = attachment.processes
    yield worst
    told = (worst.state, worst.why, worst.known and worst.known.name)
    alike = [one for one in others if one.state is worst.state and one.state not in IDLE]
    yield from [one for one in alike if (one.state, one.why, one.known and one.known.name) != told][:1]


def _tone(state: ProcessState) -> str:
    return BAD if state in HUNG else GOOD if state in IDLE else OPEN


def _means(worst: Attached, attachment: Attachment) -> str:
    others = [str(process.pid) for process in attachment.processes[1:]]
    more = f", of {len(others) + 1} with {first_few(others, MOST_NAMED)}" if others else ""
    which = f"process {worst.pid}{more}: " if others or attachment.probe else ""
    known = worst.known.title if worst.known is not None and worst.state is ProcessState.BLOCKED else ""
    return f"{which}{known or MEANS[worst.why]}"


def _overview(attachment: Attachment) -> Part:
    rows = tuple(
        Row(
            cells=(
                str(process.pid),
                process.state.value,
                str(len(process.threads)),
                f"{process.total_on_cpu:.2f}",
                process.phase,
            ),
            importance=placed(ALWAYS, at),
        )
        for at, process in enumerate(attachment.processes)
    )
    heads = ("process", "state", "threads", "CPUs", "phase")
    return Part(title="Processes", blocks=(Table(heads=heads, rows=rows, numbers=(0, 2, 3), noun="process"),))


def _process(process: Attached) -> Part:
    return Part(
        title=f"Process {process.pid}",
        word=process.state.value,
        tone=_tone(process.state),
        blocks=(
            *facts(_about(process)),
            *_threads(process),
            *facts([("next", _next(process))]),
            *([Fact("next", process.next_command, ALWAYS, "command")] if process.next_command else []),
            *facts(_stopped(process)),
            *_known(process),
            *([Fact("again", process.again, ALWAYS, "command"), *facts([("again", BESIDE)])] if process.again else []),
            *facts([("seen", remark) for remark in process.remarks]),
        ),
    )


def _about(process: Attached) -> Iterator[tuple[str, str]]:
    parent = f", forked by {process.parent}" if process.parent else ""
    yield "process", f"{process.command} (for {_time(process.age_s)}{parent})"
    if process.leader_ended:
        yield "leader", "its main thread has ended: a zombie leader, whose other threads go on"
    if process.phase:
        yield "phase", process.phase
    yield "because", _because(process)
    yield "requests", _requests(process)
    yield "model", "; ".join(process.artifacts)
    yield "LibTorch", "; ".join(_library(library) for library in process.torch)
    if len(process.torch) > 1:
        yield "LibTorch", "two in one process: each has its own operators, pools and settings"
    if len(process.openmp) > 1:
        yield "OpenMP", "two runtimes, two pools: " + " and ".join(_library(library) for library in process.openmp)
    elif process.torch:
        yield "OpenMP", "; ".join(PurePosixPath(library.path).name for library in process.openmp)


def _because(process: Attached) -> str:
    threads = {thread.tid: thread for thread in process.threads}
    chain = [threads[tid] for tid in process.culprits if tid in threads]
    if process.why in (Why.CYCLE, Why.OWNER_ENDED, Why.OWNER_WAITS):
        lines = [f"{_who(thread)} waits for the {_lock(thread)}" for thread in chain[:MOST_CHAIN] if thread.lock]
        end = chain[-1] if process.why is Why.OWNER_WAITS and chain else None
        return "; ".join(lines) + (f", which waits for {_wait(end)}" if end is not None else "")
    if process.why is Why.QUOTA:
        return f"throttled {process.throttled_s:.1f} s of {process.window_s:.1f} s"
    wanting = sum(thread.wanted for thread in process.threads)
    if process.why in (Why.OTHERS, Why.OWN_THREADS) or wanting > MUCH_MORE * max(process.total_on_cpu, 0.5):
        return f"its threads wanted {wanting:.1f} CPUs and had {process.total_on_cpu:.1f} of {process.cpus:g}"
    if process.why is Why.TRACED and process.tracer:
        return f"process {process.tracer} traces it"
    if process.why is Why.GIL and process.gil_holder in threads:
        holder = threads[process.gil_holder]
        return f"{_who(holder)} has the GIL and waits for {_wait(holder)}"
    if process.why is Why.UPSTREAM and process.traffic is not None and process.traffic.upstream:
        return ", ".join(process.traffic.upstream)
    share = f"{process.total_on_cpu:.2f} CPUs used in {process.window_s:.1f} s"
    return f"{share} by {counted(len(process.threads), 'thread')}" if process.total_on_cpu >= A_LITTLE else ""


def _requests(process: Attached) -> str:
    traffic = process.traffic
    if traffic is None:
        return ""
    parts = []
    if traffic.unanswered:
        age = f", the oldest for {_time(traffic.oldest_s)}" if traffic.oldest_s else ""
        parts.append(f"{counted(traffic.unanswered, 'request')} without an answer{age}")
        if traffic.answered_s is not None:
            parts.append(f"the last answer to another went {_time(traffic.answered_s)} ago")
    if traffic.waiting:
        parts.append(f"{counted(traffic.waiting, 'connection')} not accepted")
    if traffic.ports and not parts and not traffic.maybe:
        parts.append(f"none open, {counted(traffic.connections, 'connection')}")
    if traffic.maybe:
        last = "where the client sent last: a request, or what HTTP/2 sends after an answer"
        parts.append(f"{counted(traffic.maybe, 'connection')} {last}")
    ports = f" (port {', '.join(map(str, traffic.ports[:MOST_NAMED]))})" if traffic.ports else ""
    return "; ".join(parts) + ports if parts else ""


def _threads(process: Attached) -> Iterator[Block]:
    threads = {thread.tid: thread for thread in process.threads}
    shown = process.groups[:MOST_GROUPS]
    for at, group in enumerate(shown):
        yield Fact("threads", _group(process, group, threads[group.like], framed=at < 3))
    rest = sum(len(group.tids) for group in process.groups[MOST_GROUPS:])
    if rest:
        yield Fact("threads", f"{counted(rest, 'other')}")


def _group(process: Attached, group: ThreadGroup, like: ThreadFacts, *, framed: bool) -> str:
    count = len(group.tids)
    title = _who(like) if count == 1 else f"{count} threads like {_who(like)}"
    if like.tid == process.gil_holder:
        title += " (has the GIL)"
    frames = f": {_frames(group)}" if framed and group.frames else ""
    phase = f", in {like.phase}" if like.phase else ""
    return f"{title}: {_doing(like)}{phase}{frames}"


def _frames(group: ThreadGroup) -> str:
    frames = [LONG_PATH.sub(r"\1", frame) for frame in group.frames]
    python = [frame for frame in frames[MOST_FRAMES:] if PYTHON_LINE.search(frame)][:MOST_PYTHON]
    return " < ".join([*frames[:MOST_FRAMES], *(["..."] if python else []), *python])


def _who(thread: ThreadFacts) -> str:
    return f"{thread.name} {thread.tid}".strip()


def _doing(thread: ThreadFacts) -> str:
    if thread.wanted >= 0.05 and thread.on_cpu + thread.queued > 0.05:
        queued = f", {thread.queued:.0%} waiting for one" if thread.queued >= 0.05 else ""
        busy = f"on a CPU {thread.on_cpu:.0%} of the time{queued}"
        return busy if thread.wanted >= 0.5 else f"{busy}; waits for {_wait(thread)}"
    if thread.lock is not None:
        return f"waits for the {_lock(thread)}"
    return f"waits for {_wait(thread)}"


def _lock(thread: ThreadFacts) -> str:
    lock = thread.lock
    if lock is None:
        return _wait(thread)
    if lock.kind is LockKind.THREAD_END:
        return f"end of thread {lock.owner}"
    gone = ", a thread of its parent: it was forked while that had the lock" if lock.forked else ", which has ended"
    holder = f"thread {lock.owner}" + ("" if lock.lives else gone)
    return f"{lock.kind} {lock.address:#x}, held by {holder}"


def _wait(thread: ThreadFacts) -> str:
    if thread.in_disk >= 0.35 and thread.waits_for in (DISK, PROCESS):
        return f"{thread.waits_for} (uninterruptible)"
    words = {"T": "being continued", "t": "a debugger", "D": "the kernel", "R": "its turn"}
    frames = relevant_frames(thread.stack)[:1] if thread.stack is not None else ()
    if thread.waits_for == LOCK and (thread.stack_wait == Wait.PYTHON_LOCK or any(map(PYTHON_LINE.search, frames))):
        return NO_HOLDER
    waits_for = CONDITION if thread.waits_for == LOCK else thread.waits_for
    return thread.stack_wait or waits_for or words.get(thread.state, "something that cannot be seen")


def _stopped(process: Attached) -> Iterator[tuple[str, str]]:
    if process.tool:
        stops = " and ".join(f"{max(stop, 0.01):.2f} s" for stop in process.stops_s)
        yield "stopped", f"no thread for more than {stops or '0.01 s'}, by {process.tool}"


def _next(process: Attached) -> str:
    if process.state is ProcessState.BLOCKED:
        return _after_a_hang(process)
    if process.why is Why.SIGNAL:
        return f"kill -CONT {process.pid}"
    if process.why is Why.NO_EVIDENCE and process.traffic is not None and not process.traffic.ports:
        return "this listens on no port: is it the right PID? Try --port"
    return NEXT.get(process.why, AGAIN.get(process.state, ""))


def _after_a_hang(process: Attached) -> str:
    threads = {thread.tid: thread for thread in process.threads}
    places: list[str] = []
    for tid in process.culprits:
        stack = threads[tid].stack if tid in threads else None
        frames = stack.frames if stack is not None else ()
        lines = [f"{frame.file}:{frame.line}" for frame in frames if frame.line and telling(frame)]
        places += [LONG_PATH.sub(r"\1", line) for line in lines[:1]] or _addresses(frames, process)[:1]
    look = " and ".join(dict.fromkeys(places[:2]))
    circle = ", which take the same two locks" if process.why is Why.CYCLE and " and " in look else ""
    keep = "keep the evidence, by the command below; then restart this replica"
    return f"{keep}; look at {look}{circle}" if look else keep


def _addresses(frames: Sequence[Frame], process: Attached) -> Sequence[str]:
    """Return how to find the lines of native frames, the server's own first; a lambda's has no telling name."""
    torch = {PurePosixPath(library.path).parent for library in process.torch}
    native = [frame for frame in frames if frame.offset and not is_plumbing(frame)]
    own = sorted(native, key=lambda frame: PurePosixPath(frame.image).parent in torch)
    # A return address is that of the line after the call.
    return [f"addr2line -Cfpie {frame.image} {frame.offset - 1:#x}" for frame in own]


def _known(process: Attached) -> Iterator[Fact]:
    known = process.known
    if known is None:
        return
    yield Fact("meaning", f"{known.words} ({known.source})")
    for name, ways in known.lines.items():
        yield Fact("cure", f"{name}: the server's settings are in docs/guide/mitigating.md")
        yield from (Fact(words, ways[way], ALWAYS, "command") for way, words in WAYS.items() if way in ways)


def _library(library: LoadedLibrary) -> str:
    replaced = ", replaced on disk since" if library.replaced else ""
    version = f"{library.version}, " if library.version else ""
    return f"{version}{library.path}{replaced}"


def _time(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
