"""What debuggers and the worker's own dump print -> stacks, innermost frame first. Pure.

A text that ends in the middle (the tool was killed) yields what it has; a text of another tool yields nothing.

``eu-stack -q -b -m`` takes milliseconds where naming the frames takes it a second in a process with torch, so it is
asked for addresses only, and names are looked up later. The worker's own dump has the exported names already
(``harness/native/stacks/stacks.hpp``).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, Final

from harness.core.hang import Frame, ThreadStack
from harness.store.json import from_json

PYTHON: Final = "python"
_PYTHON_SOURCE: Final = (".py", ".pyx")

_PYSTACK_THREAD = re.compile(r"Traceback for thread (\d+) \((.*?)\) \[.*\] \(most recent call last\):$", re.MULTILINE)
_PYSTACK_FRAME = re.compile(r" +\((\w+)\) File \"(.*?)\", line (\d+), in (.*)$")
_PYSTACK_LIBRARY = re.compile(r"(?: \(inlined\))? \((/[^()]*|[^()]*\.so[^()]*)\)$")
_GDB_THREAD = re.compile(r"Thread \d+ \((?:Thread 0x([0-9a-f]+) )?\(?LWP (\d+)\)?(?: \"(.*?)\")?\):$")
_GDB_FRAME = re.compile(r"#\d+ +(?:0x[0-9a-f]+ in )?(.+?)(?: at (\S+):(\d+)| from (\S+))?$")
_GDB_ARGUMENTS = re.compile(r" \((?:[\w.]+=\.\.\.(?:, )?|\.\.\.)*\)$")
_DUMP_THREAD = re.compile(r"(Current thread|Thread) 0x([0-9a-f]+)(?: \[(.*)\])? \(most recent call first\):$")
_DUMP_FRAME = re.compile(r"  File \"(.*)\", line (\d+|\?\?\?) in (.*)$")


@dataclass(frozen=True, slots=True)
class PythonThread:
    """One thread of faulthandler's dump; ``ident`` is its pthread_t; ``current``: the one that got the signal."""

    ident: int
    frames: tuple[Frame, ...]
    name: str = ""
    current: bool = False


def _sections(text: str, head: re.Pattern[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield each line that begins a thread, as matched, and the lines that follow it."""
    sections: list[tuple[re.Match[str], list[str]]] = []
    for line in text.splitlines():
        if match := head.match(line):
            sections.append((match, []))
        elif sections:
            sections[-1][1].append(line)
    yield from sections


def _frames(lines: Iterable[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    return (match.groups() for line in lines if (match := pattern.match(line)))


def pystack(text: str) -> tuple[ThreadStack, ...]:
    """Return the threads of ``pystack remote --native``."""
    threads = []
    for head, lines in _sections(text, _PYSTACK_THREAD):
        frames = [_pystack_frame(*fields) for fields in _frames(lines, _PYSTACK_FRAME)]
        threads.append(ThreadStack(tid=int(head[1]), name=head[2], frames=tuple(reversed(frames))))
    return tuple(threads)


def _pystack_frame(kind: str, file: str, line: str, function: str) -> Frame:
    if kind == "Python":
        return Frame(function=function, file=file, line=int(line), language=PYTHON)
    library = _PYSTACK_LIBRARY.search(function)
    name = function[: library.start()] if library else function
    known = "?" not in file
    if not known and library:
        file = PurePosixPath(library.group(1)).name
    return Frame(function=name, file=file if known or library else "", line=int(line) if known else 0)


def py_spy(text: str) -> tuple[ThreadStack, ...]:
    """Return the threads of ``py-spy dump --native --json``."""
    try:
        threads = from_json(text.encode())
        return tuple(
            ThreadStack(
                tid=int(thread["os_thread_id"]),
                name=thread.get("thread_name") or "",
                frames=tuple(_py_spy_frame(frame) for frame in thread["frames"]),
            )
            for thread in threads
            if thread.get("os_thread_id")
        )
    except (ValueError, KeyError, TypeError, AttributeError):  # it reads names in a process that a model may damage
        return ()


def gil_holder(text: str) -> int:
    """Return the thread that has the GIL by what py-spy (JSON) or pystack printed; 0 where they name none."""
    for head in _PYSTACK_THREAD.finditer(text):
        if "Has the GIL" in head[0]:
            return int(head[1])
    try:
        return next((int(thread["os_thread_id"]) for thread in from_json(text.encode()) if thread["owns_gil"]), 0)
    except (ValueError, KeyError, TypeError):
        return 0


def _py_spy_frame(frame: Mapping[str, Any]) -> Frame:
    name, file = str(frame["name"]), str(frame["filename"])
    if file.endswith(_PYTHON_SOURCE) or frame.get("module") is None:
        return Frame(function=name, file=file, line=int(frame["line"]), language=PYTHON)
    return Frame(function="?" if name.startswith("0x") else name, file=PurePosixPath(file).name)


def gdb(text: str) -> tuple[ThreadStack, ...]:
    """Return the threads of ``gdb -batch -ex "thread apply all bt"``."""
    return tuple(
        ThreadStack(
            tid=int(head[2]),
            name=head[3] or "",
            frames=tuple(_gdb_frame(*fields) for fields in _frames(lines, _GDB_FRAME)),
        )
        for head, lines in _sections(text, _GDB_THREAD)
    )


def _gdb_frame(name: str, file: str | None, number: str | None, library: str | None) -> Frame:
    function = _GDB_ARGUMENTS.sub("", name)
    place = file or PurePosixPath(library or "").name
    return Frame(function="?" if function == "??" else function, file=place, line=int(number or 0))


def faulthandler(text: str) -> tuple[PythonThread, ...]:
    """Return the threads of Python's own dump; with several dumps in ``text``, those of the last."""
    threads: dict[int, PythonThread] = {}
    for head, lines in _sections(text, _DUMP_THREAD):
        frames = tuple(
            Frame(function=function, file=file, line=int(number) if number.isdigit() else 0, language=PYTHON)
            for file, number, function in _frames(takewhile(lambda line: line.startswith("  "), lines), _DUMP_FRAME)
        )
        threads[int(head[2], 16)] = PythonThread(int(head[2], 16), frames, head[3] or "", head[1] == "Current thread")
    return tuple(threads.values())


# Tools that print whole stacks with names; the others' are read below.
READERS: Final[Mapping[str, Callable[[str], tuple[ThreadStack, ...]]]] = {
    "pystack": pystack,
    "py-spy": py_spy,
    "gdb": gdb,
}


UNKNOWN: Final = "?"
SIGNAL_FRAME: Final = "<signal handler called>"

# (path of an image, address as its symbol table counts) -> name, mangled or not.
Names = Mapping[tuple[str, int], str]

LEFT_OUT: Final = " frames left out"
_HANDLER = re.compile(r"/libc[.-]|/libpthread|python")

_OWN_HEAD = re.compile(r"== gate stacks (\d+) (request|crash) (\w+) pid (\d+) tid (\d+)(?: address 0x([0-9a-f]+))?$")
_OWN_THREAD = re.compile(r"-- thread (\d+) (\S) 0x([0-9a-f]+) (.*?)(: no answer|: blocks signals)?$")
_OWN_FRAME = re.compile(r" *\d+ 0x([0-9a-f]+) in (.+?)(?:\+0x([0-9a-f]+))?$")
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
            address, image, offset = match.groups()
            frame = RawFrame(int(address, 16))
            frames.append(frame if offset is None else replace(frame, image=image, offset=int(offset, 16)))
        elif line.lstrip() == SIGNAL_FRAME or line.endswith(LEFT_OUT):
            frames.append(RawFrame(0, note=line.strip().removeprefix("... ")))


def eu_stack(text: str) -> tuple[RawThread, ...]:
    """Return the threads of ``eu-stack -b -m``, with ``-q`` or without."""
    threads = []
    for head, lines in _sections(text, _EU_THREAD):
        frames: list[RawFrame] = []
        for line in lines:
            if match := _EU_FRAME.match(line):
                frames.append(RawFrame(int(match[2], 16), match[4] or "", None, match[3] or ""))
            elif frames and (match := _EU_PLACE.match(line)):
                frames[-1] = replace(frames[-1], offset=int(match[1], 16))
        threads.append(RawThread(int(head[1]), frames=tuple(frames), answered=bool(frames)))
    return tuple(threads)


def unnamed(threads: Iterable[RawThread]) -> dict[str, set[int]]:
    wanted: dict[str, set[int]] = {}
    for thread in threads:
        for frame in thread.frames:
            if frame.image.startswith("/") and frame.offset is not None and not frame.symbol:
                wanted.setdefault(frame.image, set()).add(frame.offset)
    return wanted


def with_names(thread: RawThread, names: Names) -> RawThread:
    frames = tuple(
        replace(frame, symbol=names[frame.image, frame.offset])
        if not frame.symbol and frame.offset is not None and (frame.image, frame.offset) in names
        else frame
        for frame in thread.frames
    )
    return replace(thread, frames=frames)


def symbols(threads: Iterable[RawThread]) -> set[str]:
    return {frame.symbol for thread in threads for frame in thread.frames if frame.symbol}


def thread_stack(thread: RawThread, readable: Mapping[str, str], *, moved: bool | None) -> ThreadStack:
    """Return the stack as the report has it: demangled names, files without their folders."""
    frames = tuple(
        Frame(
            function=frame.note or readable.get(frame.symbol, frame.symbol) or UNKNOWN,
            file=PurePosixPath(frame.image).name,
            image=frame.image,
            offset=frame.offset or 0,
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
                return replace(thread, frames=thread.frames[index + 1 :])
            break
    return thread


def depth(thread: RawThread) -> int:
    left_out = (frame.note.split()[0] for frame in thread.frames if frame.note.endswith(LEFT_OUT))
    return len(thread.frames) + sum(int(number) for number in left_out)


INTERPRETER_LOOP = ("_PyEval_EvalFrameDefault", "_PyEval_EvalFrame", "PyEval_EvalFrameEx")


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
        moves = [answer for answer in (moved.get(tid), other) if answer is not None]
        stacks.append(replace(stack, frames=frames, moved=any(moves) if moves else None))
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
