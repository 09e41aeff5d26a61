"""What a process that does not go on, or has crashed, was doing: proof, stacks, and what could not be seen."""

from dataclasses import dataclass
from enum import StrEnum


class HangKind(StrEnum):
    """Why there is no progress; decided from events and the kernel's accounting, never from a deadline alone."""

    BLOCKED = "blocked"
    BUSY = "busy without progress"
    STARVED = "starved"
    OVERDUE = "past its deadline"


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadActivity:
    """One thread of the process over the window that the proof rests on.

    Attributes:
        tid: the kernel's thread id.
        name: as the kernel has it (``comm``).
        state: one letter: R runs, S sleeps, D waits in the kernel, T stopped, Z ended.
        on_cpu_s, run_delay_s: time on a CPU, and time spent waiting for one (``schedstat``), in the window.
        waits_for: in words: ``"a lock"``, ``"the network"``, ``"a device driver"``, ``"disk"``, ``"a timer"``,
            ``"another process"``, ``"a pipe"``; empty where it runs or nobody can tell.
        thread: index of the worker's thread, None for a thread that torch or the runtime has made.
        model, phase, input_set, call: what the worker said it was doing; empty where it said nothing.
    """

    tid: int
    name: str = ""
    state: str = ""
    on_cpu_s: float = 0.0
    run_delay_s: float = 0.0
    waits_for: str = ""
    thread: int | None = None
    model: str = ""
    phase: str = ""
    input_set: str | None = None
    call: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HangProof:
    """That a process did not go on, and how that is known.

    Attributes:
        silent_s: seconds since the last event that counts as progress.
        window_s: length of the window in which the threads were sampled.
        stalled_s: of the silence, what did not count, because this machine was too busy to show that nothing comes.
        own_s: seconds that the first phase past its deadline had taken, without those in which others had the CPUs; 0
            where no deadline of a phase ended it.
        note: what the proof could not see (no schedstat, say), in words.
    """

    kind: HangKind
    silent_s: float
    window_s: float
    stalled_s: float = 0.0
    threads: tuple[ThreadActivity, ...] = ()
    io_bytes: int = 0
    own_s: float = 0.0
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One frame of a stack, innermost first; ``file`` is a source file or a shared library, ``line`` 0 if unknown.

    ``image``, ``offset``: path of the library or program, and the return address in it, as ``addr2line`` takes them.
    """

    function: str
    file: str = ""
    line: int = 0
    language: str = "native"
    image: str = ""
    offset: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadStack:
    """The stack of one thread; ``moved`` says whether a second sample showed other frames (None: one sample only)."""

    tid: int
    name: str = ""
    frames: tuple[Frame, ...] = ()
    moved: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was found in a process that hangs, taken before the kill, or in one that crashed.

    Attributes:
        tool: what took the stacks: ``"eu-stack"``, ``"pystack"``, ``"py-spy"``, ``"the worker itself"``, ``"gdb"``.
        remarks: which tool was missing, forbidden or too slow, and how to allow it; in words.
        signal, faulting_tid: of a crash; ``at_work``: what its threads said they were doing.
    """

    tool: str = ""
    stacks: tuple[ThreadStack, ...] = ()
    remarks: tuple[str, ...] = ()
    proof: HangProof | None = None
    signal: str = ""
    faulting_tid: int | None = None
    at_work: tuple[ThreadActivity, ...] = ()
    files: tuple[str, ...] = ()
