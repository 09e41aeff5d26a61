"""Who did what, and when, in one process that brought models up; and the same of a whole run, for a trace."""

from dataclasses import dataclass

from harness.core.hang import HangKind
from harness.core.outcome import Outcome
from harness.core.probe import Span


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """The phases of one process, thread by thread.

    Attributes:
        scenario: of the initialization, or ``"alone"``.
        group: the server group; of a model that was alone its name.
        round: which one it was, from 0: the first that something failed in, else the first of all.
        hang: why it did not go on; None where it did, or nothing proves it.
        spans: by begin, on a clock that starts with the first of them.
    """

    scenario: str
    group: str
    side: str
    round: int
    outcome: Outcome
    hang: HangKind | None = None
    spans: tuple[Span, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class HangSample:
    """One thread of a process that did not go on, as it was seen before the kill.

    Attributes:
        tid: the kernel's thread id.
        thread: index of the worker's thread, None for a thread of torch or the runtime.
        frames: its stack, innermost first.
    """

    tid: int
    thread: int | None
    words: str
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessTrace:
    """One process of a run.

    Attributes:
        name: its folder; ``title``: what it was asked, in words.
        spans: on the machine's monotonic clock.
        samples: of its threads, where it hung or crashed, as they were when the last span ended.
        hang: why it did not go on, in words; empty where it did.
        contexts: how many it has made on a device; none where it shares one, or where they cost nothing.
    """

    name: str
    side: str
    title: str
    outcome: Outcome
    spans: tuple[Span, ...] = ()
    samples: tuple[HangSample, ...] = ()
    hang: str = ""
    contexts: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTrace:
    """All processes of a run that left phases; ``run`` is the name of its folder."""

    run: str
    processes: tuple[ProcessTrace, ...]
