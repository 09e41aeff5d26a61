"""Return addresses of threads as text -> threads; names are looked up later. The worker's own dump, and eu-stack's.

``eu-stack -q -b -m`` takes milliseconds where naming the frames takes it a second in a process with torch, so it is
asked for addresses only. The worker's own dump (``harness/native/stacks/stacks.hpp``) has the exported names already.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from harness.domain.hang import Frame, ThreadStack
from harness.hang.stack_formats import PYTHON, PythonThread

UNKNOWN: Final = "?"
SIGNAL_FRAME: Final = "<signal handler called>"

# (path of an image, address as its symbol table counts) -> name, mangled or not.
Names = Mapping[tuple[str, int], str]

LEFT_OUT: Final = " frames left out"
_HANDLER = re.compile(r"/libc[.-]|/libpthread|python")

_OWN_HEAD = re.compile(r"== gate stacks (\d+) (request|crash) (\w+) pid (\d+) tid (\d+)(?: address 0x([0-9a-f]+))?$")
_OWN_THREAD = re.compile(r"-- thread (\d+) (\S) 0x([0-9a-f]+) (.*?)(: no answer|: blocks signals)?$")
_OWN_FRAME = re.compile(r" *(\d+) 0x([0-9a-f]+) (\S+?)(?:\+0x[0-9a-f]+)? in (.+?)(?:\+0x([0-9a-f]+))?$")
_EU_THREAD = re.compile(r"TID (\d+):$")
_EU_FRAME = re.compile(r"#(\d+) +0x([0-9a-f]+)(?: (?!- )(.+?))?(?: - (/.+|\[.+\]))?$")
_EU_PLACE = re.compile(r" +\[[0-9a-f]*\]@0x[0-9a-f]+\+0x([0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class RawFrame:
    """One return address; ``image`` is empty and ``offset`` None where no file is mapped at it."""

    address: int
    image: str = ""
    offset: int | None = None
    symbol: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class RawThread:
    """One thread, innermost frame first; ``ident`` is its pthread_t, 0 if unknown; ``answered``: it has frames."""

    tid: int
    name: str = ""
    ident: int = 0
    frames: tuple[RawFrame, ...] = ()
    answered: bool = True


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump of the worker's own; ``complete`` once its last line has been written.

    Attributes:
        number: 1, 2, ... in this process.
        kind: ``"request"`` or ``"crash"``.
        tid: the thread that wrote it; of a crash the faulting one.
        address: of a crash: the address that could not be reached, 0 if none, all ones if the kernel does not say.
    """

    number: int
    kind: str
    signal: str
    tid: int
    address: int = 0
    threads: tuple[RawThread, ...] = ()
    complete: bool = False


def own_dumps(text: str) -> tuple[Dump, ...]:
    """Return the worker's own dumps in ``text``; lines of other writers (faulthandler) are left out."""
    dumps = []
    lines = text.splitlines()
    starts = [index for index, line in enumerate(lines) if _OWN_HEAD.match(line)]
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        match = _OWN_HEAD.match(lines[start])
        assert match is not None
        number, kind, signal, _pid, tid, address = match.groups()
        last = f"== gate stacks {number} end"
        body = lines[start + 1 : end]
        complete = last in body
        if complete:
            body = body[: body.index(last)]
        threads = tuple(_own_threads(body))
        dumps.append(Dump(int(number), kind, signal, int(tid), int(address or "0", 16), threads, complete))
    return tuple(dumps)


def _own_threads(lines: Iterable[str]) -> Iterable[RawThread]:
    head: re.Match[str] | None = None
    frames: list[RawFrame] = []
    for line in (*lines, "-- end"):
        if line.startswith("-- "):
            if head is not None:
                tid, _state, ident, name, silent = head.groups()
                yield RawThread(int(tid), name, int(ident, 16), tuple(frames), not silent)
            head, frames = _OWN_THREAD.match(line), []
        elif match := _OWN_FRAME.match(line):
            _index, address, symbol, image, offset = match.groups()
            known = offset is not None
            frames.append(
                RawFrame(
                    int(address, 16),
                    image if known else "",
                    int(offset, 16) if known else None,
                    symbol if symbol != UNKNOWN else "",
                )
            )
        elif line.lstrip() == SIGNAL_FRAME or line.endswith(LEFT_OUT):
            frames.append(RawFrame(0, note=line.strip().removeprefix("... ")))


def eu_stack(text: str) -> tuple[RawThread, ...]:
    """Return the threads of ``eu-stack -b -m``, with ``-q`` or without."""
    threads: list[RawThread] = []
    tid = 0
    frames: list[RawFrame] = []
    for line in (*text.splitlines(), "TID 0:"):
        if match := _EU_THREAD.match(line):
            if tid:
                threads.append(RawThread(tid, frames=tuple(frames), answered=bool(frames)))
            tid, frames = int(match.group(1)), []
        elif match := _EU_FRAME.match(line):
            frames.append(RawFrame(int(match.group(2), 16), match.group(4) or "", None, match.group(3) or ""))
        elif frames and (match := _EU_PLACE.match(line)):
            last = frames[-1]
            frames[-1] = RawFrame(last.address, last.image, int(match.group(1), 16), last.symbol)
    return tuple(threads)


def unnamed(threads: Iterable[RawThread]) -> dict[str, set[int]]:
    """Return, per image, the addresses of frames that have no name yet."""
    wanted: dict[str, set[int]] = {}
    for thread in threads:
        for frame in thread.frames:
            if frame.image.startswith("/") and frame.offset is not None and not frame.symbol:
                wanted.setdefault(frame.image, set()).add(frame.offset)
    return wanted


def with_names(thread: RawThread, names: Names) -> RawThread:
    """Return ``thread`` with the frames named that ``names`` knows."""
    frames = tuple(
        RawFrame(frame.address, frame.image, frame.offset, names[frame.image, frame.offset], frame.note)
        if not frame.symbol and frame.offset is not None and (frame.image, frame.offset) in names
        else frame
        for frame in thread.frames
    )
    return RawThread(thread.tid, thread.name, thread.ident, frames, thread.answered)


def symbols(threads: Iterable[RawThread]) -> set[str]:
    """Return all names, to be demangled together."""
    return {frame.symbol for thread in threads for frame in thread.frames if frame.symbol}


def thread_stack(thread: RawThread, readable: Mapping[str, str], *, moved: bool | None) -> ThreadStack:
    """Return the stack as the report has it: demangled names, files without their folders."""
    frames = tuple(
        Frame(
            function=frame.note or readable.get(frame.symbol, frame.symbol) or UNKNOWN,
            file=PurePosixPath(frame.image).name,
        )
        for frame in thread.frames
    )
    return ThreadStack(tid=thread.tid, name=thread.name, frames=frames, moved=moved)


def without_handlers(thread: RawThread) -> RawThread:
    """Return the faulting thread without the frames of a handler that ran before ours and raised the signal again.

    That is Python's faulthandler: nothing but the C library's and Python's own frames stand above the interrupted one.
    """
    for index, frame in enumerate(thread.frames[:6]):
        if frame.note == SIGNAL_FRAME:
            if all(_HANDLER.search(above.image) for above in thread.frames[:index]):
                return RawThread(thread.tid, thread.name, thread.ident, thread.frames[index + 1 :], thread.answered)
            break
    return thread


def depth(thread: RawThread) -> int:
    """Return how many frames the thread's stack has, those left out counted."""
    left_out = (frame.note.split()[0] for frame in thread.frames if frame.note.endswith(LEFT_OUT))
    return len(thread.frames) + sum(int(number) for number in left_out)


INTERPRETER_LOOP = ("_PyEval_EvalFrameDefault", "_PyEval_EvalFrame", "PyEval_EvalFrameEx")


def by_thread(threads: Iterable[RawThread]) -> dict[int, RawThread]:
    """Return the threads by number; of two views of one thread the later counts."""
    return {thread.tid: thread for thread in threads}


def merged(
    native: Sequence[ThreadStack],
    python: Sequence[PythonThread],
    *,
    idents: Mapping[int, int],
    main: int,
    moved: Mapping[int, bool],
    python_moved: Mapping[int, bool],
) -> tuple[ThreadStack, ...]:
    """Return one stack per thread, in the order of ``native``, then threads that only Python knows.

    Args:
        idents: pthread_t, by which Python names a thread -> the kernel's number.
        main: the thread that took the signal where Python calls it the current one and ``idents`` does not know it.
        moved, python_moved: by the kernel's number and by pthread_t.
    """
    known = {thread.tid: thread for thread in native}
    mixed = any(frame.language == PYTHON for thread in native for frame in thread.frames)
    views: dict[int, PythonThread] = {}
    for view in python:
        tid = idents.get(view.ident, main if view.current else 0)
        if tid == 0 and view.name == "" and len(python) == 1:
            tid = main
        if tid or not mixed:  # a mixed stack has these frames already
            views[tid or -len(views) - 1] = view
    stacks = []
    for tid in (*known, *(tid for tid in views if tid not in known)):
        stack = known.get(tid, ThreadStack(tid=max(tid, 0)))
        here: PythonThread | None = views.get(tid)
        frames = _interleaved(stack.frames, here.frames if here is not None else ())
        other = python_moved.get(here.ident) if here is not None else None
        told = [answer for answer in (moved.get(tid), other) if answer is not None]
        stacks.append(replace(stack, frames=frames, moved=any(told) if told else None))
    return tuple(stacks)


def _interleaved(native: Sequence[Frame], python: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return Python's frames in the place of the innermost interpreter loop; a mixed stack stays as it is."""
    if not python or any(frame.language == PYTHON for frame in native):
        return tuple(native)
    loops = [index for index, frame in enumerate(native) if frame.function in INTERPRETER_LOOP]
    if not loops:
        return (*native, *python)
    outer = (frame for frame in native[loops[0] :] if frame.function not in INTERPRETER_LOOP)
    return (*native[: loops[0]], *python, *outer)
