"""What debuggers print -> stacks, innermost frame first. Pure; one function per tool.

A text that ends in the middle (the tool was killed) yields what it has; a text of another tool yields nothing.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from harness.domain.hang import Frame, ThreadStack

PYTHON: Final = "python"
NATIVE: Final = "native"
_PYTHON_SOURCE: Final = (".py", ".pyx")

_PYSTACK_THREAD = re.compile(r"Traceback for thread (\d+) \((.*?)\) \[.*\] \(most recent call last\):$")
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


def pystack(text: str) -> tuple[ThreadStack, ...]:
    """Return the threads of ``pystack remote --native``."""
    threads: list[ThreadStack] = []
    head: tuple[int, str] | None = None
    frames: list[Frame] = []
    for line in (*text.splitlines(), "Traceback for thread 0 () [] (most recent call last):"):
        if match := _PYSTACK_THREAD.match(line):
            if head is not None:
                threads.append(ThreadStack(tid=head[0], name=head[1], frames=tuple(reversed(frames))))
            head, frames = (int(match.group(1)), match.group(2)), []
        elif match := _PYSTACK_FRAME.match(line):
            frames.append(_pystack_frame(*match.groups()))
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
        threads = json.loads(text)
        return tuple(
            ThreadStack(
                tid=int(thread["os_thread_id"]),
                name=thread.get("thread_name") or "",
                frames=tuple(_py_spy_frame(frame) for frame in thread["frames"]),
            )
            for thread in threads
            if thread.get("os_thread_id")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _py_spy_frame(frame: Mapping[str, Any]) -> Frame:
    name, file = str(frame["name"]), str(frame["filename"])
    if file.endswith(_PYTHON_SOURCE) or frame.get("module") is None:
        return Frame(function=name, file=file, line=int(frame["line"]), language=PYTHON)
    return Frame(function="?" if name.startswith("0x") else name, file=PurePosixPath(file).name)


def gdb(text: str) -> tuple[ThreadStack, ...]:
    """Return the threads of ``gdb -batch -ex "thread apply all bt"``."""
    threads: list[ThreadStack] = []
    head: tuple[int, str] | None = None
    frames: list[Frame] = []
    for line in (*text.splitlines(), 'Thread 0 (LWP 0 ""):'):
        if match := _GDB_THREAD.match(line):
            if head is not None:
                threads.append(ThreadStack(tid=head[0], name=head[1], frames=tuple(frames)))
            head, frames = (int(match.group(2)), match.group(3) or ""), []
        elif match := _GDB_FRAME.match(line):
            name, file, number, library = match.groups()
            name = _GDB_ARGUMENTS.sub("", name)
            place = file or PurePosixPath(library or "").name
            frames.append(Frame(function="?" if name == "??" else name, file=place, line=int(number or 0)))
    return tuple(threads)


def faulthandler(text: str) -> tuple[PythonThread, ...]:
    """Return the threads of Python's own dump; with several dumps in ``text``, those of the last."""
    threads: dict[int, PythonThread] = {}
    head: re.Match[str] | None = None
    frames: list[Frame] = []
    for line in (*text.splitlines(), ""):
        if match := _DUMP_FRAME.match(line):
            file, number, function = match.groups()
            frames.append(Frame(function=function, file=file, line=_number(number), language=PYTHON))
            continue
        if head is not None and not line.startswith("  "):
            ident = int(head.group(2), 16)
            current = head.group(1) == "Current thread"
            threads[ident] = PythonThread(ident, tuple(frames), head.group(3) or "", current)
            head = None
        if match := _DUMP_THREAD.match(line):
            head, frames = match, []
    return tuple(threads.values())


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


# Tools that print whole stacks with names; the others' texts are read by ``raw_stacks``.
READERS: Final[Mapping[str, Callable[[str], tuple[ThreadStack, ...]]]] = {
    "pystack": pystack,
    "py-spy": py_spy,
    "gdb": gdb,
}
