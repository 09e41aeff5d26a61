"""Collects what a process was doing, before it is killed for hanging or after it crashed.

Two samples, 0.3 s apart. First choice is the process's own dump (``harness/native/stacks/stacks.hpp``): it takes
milliseconds, needs no rights and works in any process whose threads still take signals. Where it was not armed or a
thread did not answer, the first debugger that works: eu-stack, which sees every thread in milliseconds when it need
not name frames; for Python then pystack and py-spy; gdb only where nothing else has shown anything, since it takes
10 s. Python's own view, from faulthandler, is added to the native frames of the same thread.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.checks.hang import debuggers, stack_formats, symbols
from harness.checks.hang.debuggers import EU_STACK, GDB, PY_SPY, PY_SPY_ASIDE, PYSTACK, PYSTACK_ASIDE, Debugger
from harness.checks.hang.stack_formats import Dump, PythonThread, RawThread, merged
from harness.core.hang import Evidence, HangProof, ThreadStack
from harness.probing import processes
from harness.store.json import DAMAGE, from_json
from harness.worker import wire

GAP_S: Final = 0.3
OWN_DUMP_S: Final = 1.0
OWN: Final = "the worker itself"
POLL_S: Final = 0.005
NULL_PAGE: Final = 0x10000
UNKNOWN_ADDRESS: Final = 0xFFFFFFFFFFFFFFFF
OVERFLOW_FRAMES: Final = 2000
MOST_TEXT_BYTES: Final = 64 << 20
_ARMED = re.compile(r"== gate stacks armed (\w+) pid (\d+)$", re.MULTILINE)
_FATAL: Final = "Fatal Python error: "

CHOICES: Final[dict[str, tuple[Debugger, ...]]] = {
    "python": (EU_STACK, PYSTACK, PY_SPY),
    "libtorch": (EU_STACK,),
}


@dataclass
class _Views:
    own: list[tuple[RawThread, ...]] = field(default_factory=list)
    python: list[tuple[PythonThread, ...]] = field(default_factory=list)
    raw: list[tuple[RawThread, ...]] = field(default_factory=list)
    whole: list[tuple[ThreadStack, ...]] = field(default_factory=list)
    debugger: str = ""
    files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    forbidden: bool = False
    idents: dict[int, int] = field(default_factory=dict)
    stops_s: list[float] = field(default_factory=list)
    gil_holder: int = 0

    def native(self) -> bool:
        return bool(self.raw or self.whole or any(thread.answered for sample in self.own for thread in sample))


def investigate(pid: int, run_dir: Path, proof: HangProof | None, *, runtime: str) -> Evidence:
    """Return what the threads of ``pid`` do; it lives on. About 0.6 s, 2 s with a debugger, more only with gdb.

    ``run_dir``: the probe's folder, with the worker's ``stacks.txt`` and ``events.jsonl``; raw texts are added to it;
    ``proof``: becomes part of the evidence.
    """
    views = _Views()
    begin = time.monotonic()
    _ask_the_worker(pid, run_dir, views, runtime)
    is_complete = bool(views.own) and all(thread.answered for thread in views.own[0])
    chosen = None if is_complete else _first_that_works(pid, run_dir, views, runtime)
    time.sleep(max(0.0, begin + GAP_S - time.monotonic()))
    if views.own or views.python:
        _ask_the_worker(pid, run_dir, views, runtime)
    if chosen is not None and chosen[0].again:
        _look(pid, run_dir, views, *chosen, number=2)
    gdb = debuggers.find(GDB.name)
    if not views.native() and gdb is not None and not views.forbidden:
        _look(pid, run_dir, views, GDB, gdb, number=1)
    return Evidence(
        tool=_tool(views),
        stacks=_stacks(views, run_dir, pid),
        remarks=tuple(dict.fromkeys(views.problems)),
        proof=proof,
        files=tuple(views.files),
    )


@dataclass(frozen=True, kw_only=True)
class SeenFromOutside:
    """What debuggers saw; ``stops_s``: for how long each stopped the process; ``gil_holder``: 0 if unknown."""

    evidence: Evidence
    stops_s: tuple[float, ...]
    gil_holder: int


def look_from_outside(
    pid: int, folder: Path, *, python: bool, may_stop: bool, may_stop_long: bool, gdb: bool = False
) -> SeenFromOutside:
    """Return what the threads of a process do that the gate did not start: nothing is sent to it.

    ``may_stop``: by debuggers that stop it, else only by those that read its memory; ``may_stop_long``: also by those
    that stop it for longer, where no other shows native frames; ``gdb``: by that as well, which takes 15 s where
    LibTorch is mapped.
    """
    views = _Views()
    aside = _first_aside(pid, folder, views) if python else None
    program = debuggers.find(EU_STACK.name)
    if program is not None and may_stop:
        begin = time.monotonic()
        if _look(pid, folder, views, EU_STACK, program, number=1):
            time.sleep(max(0.0, begin + GAP_S - time.monotonic()))
            _look(pid, folder, views, EU_STACK, program, number=2)
    if may_stop and not views.native() and not views.forbidden:
        slow = (*((PYSTACK, PY_SPY) if python else ()), *([GDB] if gdb else ()))
        for debugger in slow if may_stop_long else ():
            found = debuggers.find(debugger.name)
            if found is not None and _look(pid, folder, views, debugger, found, number=3):
                break
    missing = [EU_STACK] if program is None and may_stop and not views.native() else []
    missing += [PY_SPY] if python and aside is None and not views.problems else []
    if missing and not views.forbidden:
        views.problems.append(f"more frames with: {' and '.join(debugger.install for debugger in missing)}")
    if aside is not None:
        _look_aside(pid, folder, views, *aside, number=2)
    return SeenFromOutside(
        evidence=Evidence(
            tool=", ".join(filter(None, (views.debugger, aside[0].name if aside is not None else ""))),
            stacks=_stacks(views, folder, pid),
            remarks=tuple(dict.fromkeys(views.problems)),
        ),
        stops_s=tuple(views.stops_s),
        gil_holder=views.gil_holder,
    )


def _first_aside(pid: int, folder: Path, views: _Views) -> tuple[Debugger, str] | None:
    for debugger in (PY_SPY_ASIDE, PYSTACK_ASIDE):
        program = debuggers.find(debugger.name)
        if program is not None and _look_aside(pid, folder, views, debugger, program, number=1):
            return debugger, program
    return None


def _look_aside(pid: int, folder: Path, views: _Views, debugger: Debugger, program: str, *, number: int) -> bool:
    """Add Python's view of each thread, by a tool that does not stop the process."""
    sample = debuggers.sample(debugger, program, pid, folder, 10 + number)
    threads = tuple(
        PythonThread(stack.tid, stack.frames, stack.name)
        for stack in stack_formats.READERS[debugger.name](sample.text)
        if stack.frames
    )
    if not threads:
        if sample.problem and not sample.forbidden:
            views.problems.append(sample.problem)
        return False
    views.python.append(threads)
    views.idents.update({thread.ident: thread.ident for thread in threads})
    views.gil_holder = stack_formats.gil_holder(sample.text) or views.gil_holder
    return True


def crash_evidence(run_dir: Path, signal_name: str) -> Evidence:
    """Return what a crashed process wrote about itself in its last moment."""
    file = _crashed(run_dir)
    text = _read(run_dir / file)
    dumps = _crash_dumps(text)
    python = stack_formats.faulthandler(text[text.rindex(_FATAL) :]) if _FATAL in text else ()
    files = (file,) if dumps or python else ()
    if not dumps:
        stacks = merged((), python, idents=_idents(run_dir), main=0, moved={}, python_moved={})
        first = [thread.ident for thread in python if thread.current]
        tid = _idents(run_dir).get(first[0]) if first else None
        killed = "SIGKILL leaves no stack; the kernel sends it when memory runs out (dmesg)"
        why = killed if signal_name == "SIGKILL" else "the process ended before it could write a stack"
        return Evidence(
            tool=OWN if stacks else "",
            stacks=stacks,
            remarks=() if stacks else (why,),
            signal=signal_name,
            faulting_tid=tid,
            files=files,
        )
    dump = dumps[-1]
    readable, threads = _named(dump.threads)
    faulting = tuple(stack_formats.without_handlers(thread) for thread in threads if thread.tid == dump.tid)
    others = tuple(thread for thread in threads if thread.tid != dump.tid)
    native = [stack_formats.thread_stack(thread, readable, moved=None) for thread in (*faulting, *others)]
    idents = {**_idents(run_dir), **{thread.ident: thread.tid for thread in threads if thread.ident}}
    return Evidence(
        tool=OWN,
        stacks=merged(native, python, idents=idents, main=dump.tid, moved={}, python_moved={}),
        remarks=tuple(_crash_in_words(dump)),
        signal=signal_name or dump.signal,
        faulting_tid=dump.tid,
        files=files,
    )


def _crashed(run_dir: Path) -> str:
    """Return the stacks of what crashed: the worker, or a process that it has forked."""
    files = [wire.STACKS, *sorted(path.name for path in run_dir.glob(f"{wire.STACKS}.*"))]
    texts = {file: _read(run_dir / file) for file in files}
    whole = (file for file, text in texts.items() if any(dump.complete for dump in _crash_dumps(text)))
    begun = (file for file, text in texts.items() if _FATAL in text or _crash_dumps(text))
    return next(whole, next(begun, wire.STACKS))


def _crash_dumps(text: str) -> list[Dump]:
    return [dump for dump in stack_formats.own_dumps(text) if dump.kind == "crash"]


def _crash_in_words(dump: Dump) -> Iterator[str]:
    if dump.signal in ("SIGSEGV", "SIGBUS") and dump.address != UNKNOWN_ADDRESS:
        near_null = ", a null pointer" if dump.address < NULL_PAGE else ""
        yield f"the address that could not be reached is {dump.address:#x}{near_null}"
    deepest = max((stack_formats.depth(thread) for thread in dump.threads if thread.tid == dump.tid), default=0)
    if deepest >= OVERFLOW_FRAMES:
        yield f"the stack is {deepest} frames deep: it has probably overflowed"


def _ask_the_worker(pid: int, run_dir: Path, views: _Views, runtime: str) -> None:
    stacks = processes.stacks_of(pid, run_dir)
    text = _read(stacks)
    caught = _caught_signals(pid)
    armed = [name for name, owner in _ARMED.findall(text) if int(owner) == pid]
    number = signal.Signals[armed[-1]] if armed and armed[-1] in signal.Signals.__members__ else None
    if runtime == "python" and signal.SIGUSR1 in caught and number != signal.SIGUSR1:
        processes.request_stack_dump(pid, stacks)
        if threads := stack_formats.faulthandler(_read(stacks)[len(text) :]):
            views.python.append(threads)
    if number is not None and number in caught:
        dump = _own_dump(pid, stacks, number)
        if dump:
            views.own.append(dump)
    if (views.own or views.python) and stacks.name not in views.files:
        views.files.append(stacks.name)


def _own_dump(pid: int, stacks: Path, number: signal.Signals) -> tuple[RawThread, ...] | None:
    done = len(stack_formats.own_dumps(_read(stacks)))
    limit = time.monotonic() + OWN_DUMP_S
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return None
    while time.monotonic() < limit:
        time.sleep(POLL_S)
        dumps = stack_formats.own_dumps(_read(stacks))
        if len(dumps) > done and dumps[-1].complete:
            return dumps[-1].threads
    return None


def _first_that_works(pid: int, run_dir: Path, views: _Views, runtime: str) -> tuple[Debugger, str] | None:
    missing = []
    for debugger in CHOICES[runtime]:
        program = debuggers.find(debugger.name)
        if program is None:
            missing.append(debugger)
        elif _look(pid, run_dir, views, debugger, program, number=1):
            views.problems.clear()
            views.forbidden = False
            return debugger, program
    views.problems.extend(f"{debugger.name} is not installed: {debugger.install}" for debugger in missing)
    if views.native():
        views.problems.insert(0, "some threads did not answer the worker's own request for stacks")
    return None


def _look(pid: int, run_dir: Path, views: _Views, debugger: Debugger, program: str, *, number: int) -> bool:
    sample = debuggers.sample(debugger, program, pid, run_dir, number)
    if sample.stopped_s:
        views.stops_s.append(sample.stopped_s)
    if sample.file:
        views.files.append(sample.file)
    if debugger.name == EU_STACK.name:
        threads = tuple(thread for thread in stack_formats.eu_stack(sample.text) if thread.frames)
        if threads:
            views.raw.append(threads)
    else:
        threads = ()
        stacks = tuple(stack for stack in stack_formats.READERS[debugger.name](sample.text) if stack.frames)
        if stacks:
            views.whole.append(stacks)
    if threads or views.whole:
        views.debugger = debugger.name
        return True
    if sample.forbidden:
        views.forbidden = True
        views.problems.append(debuggers.why_forbidden())
    elif sample.problem and Path(f"/proc/{pid}").exists():
        views.problems.append(sample.problem)
    return False


def _stacks(views: _Views, run_dir: Path, pid: int) -> tuple[ThreadStack, ...]:
    answered = tuple(thread for thread in (views.own[0] if views.own else ()) if thread.answered)
    raw = {thread.tid: thread for thread in (*(views.raw[0] if views.raw else ()), *answered)}
    moved: dict[int, bool] = {}
    for samples in (views.raw, views.own):
        moved |= _movement([{t.tid: [f.address for f in t.frames] for t in s if t.answered} for s in samples])
    moved |= _movement([{stack.tid: stack.frames for stack in sample} for sample in views.whole])
    readable, named = _named(tuple(raw.values()))
    native = [stack_formats.thread_stack(thread, readable, moved=None) for thread in named]
    if views.whole:
        seen = {stack.tid for stack in native}
        native += [stack for stack in views.whole[0] if stack.tid not in seen]
    idents = {
        **_idents(run_dir, pid),
        **views.idents,
        **{thread.ident: thread.tid for thread in answered if thread.ident},
    }
    python = views.python[0] if views.python else ()
    python_moved = _movement([{thread.ident: thread.frames for thread in sample} for sample in views.python])
    return merged(native, python, idents=idents, main=pid, moved=moved, python_moved=python_moved)


def _movement(samples: Sequence[Mapping[int, object]]) -> dict[int, bool]:
    if len(samples) < 2:
        return {}
    first, second = samples[0], samples[-1]
    return {key: first[key] != second[key] for key in first if key in second}


def _named(threads: Sequence[RawThread]) -> tuple[Mapping[str, str], tuple[RawThread, ...]]:
    names = symbols.look_up(stack_formats.unnamed(threads))
    named = tuple(stack_formats.with_names(thread, names) for thread in threads)
    return debuggers.demangled(stack_formats.symbols(named)), named


def _tool(views: _Views) -> str:
    if views.native() and not views.debugger:
        return OWN
    if views.debugger:
        return f"{OWN}, {views.debugger}" if views.own else views.debugger
    return "faulthandler" if views.python else ""


def _idents(run_dir: Path, pid: int | None = None) -> dict[int, int]:
    """Return pthread_t -> kernel thread id; of processes forked with one pthread_t, ``pid``'s main thread counts."""
    pairs: dict[int, set[int]] = {}
    for line in _read(run_dir / wire.EVENTS).splitlines():
        with contextlib.suppress(*DAMAGE):
            event = from_json(line.encode(), dict[str, Any])
            pairs.setdefault(int(event["ident"]), set()).add(int(event["tid"]))
    main = {ident: pid for ident, tids in pairs.items() if pid is not None and pid in tids}
    return {**{ident: tid for ident, (tid, *others) in pairs.items() if not others}, **main}


def _caught_signals(pid: int) -> set[int]:
    """Return the signals that ``pid`` handles; asking with another one would end it."""
    match = re.search(r"^SigCgt:\s*([0-9a-f]+)$", _read(Path(f"/proc/{pid}/status")), re.MULTILINE)
    mask = int(match.group(1), 16) if match else 0
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(MOST_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
