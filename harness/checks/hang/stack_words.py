"""Stacks and threads in words: the part of a hundred frames that a reader needs. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from harness.checks.hang.stack_formats import PYTHON
from harness.core.hang import Frame, HangProof, ThreadActivity, ThreadStack

MOST_LINES: Final = 24

# Where code lies that is on every stack and explains none.
_PLUMBING_FILES = re.compile(
    r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|ffi)[.-]|ld-linux|libpython|python3?(\.\d+)?$|_ctypes\.|libgate_stacks"
    r"|\./nptl|\./elf|\.\./sysdeps|\.\./csu|\./csu|\./?Modules/|Modules/|Objects/|Python/|\./Python|<frozen importlib)"
)
_PLUMBING_NAMES = re.compile(
    r"(\?|_start|_init|__libc_start_main.*|clone3?|start_thread|execute_native_thread_routine|operator\(\)"
    r"|.*\{lambda\}(::(operator\(\)|_FUN))?|_?Py[A-Z_]\w+|_bootstrap(_inner)?|_wrapped_call_impl|_call_impl"
    r"|method_vectorcall\w*|cfunction_\w+|slot_tp_call|thread_run|runAndInsertCall|jit::runAndInsertCall)$"
    r"|std::(__|_Function_handler|function|thread::_|invoke)|pybind11::(cpp_function|detail|object$)"
    r"|c10::(function_ref|KernelFunction|Dispatcher|impl::(wrap_kernel|make_boxed|call_functor|BoxedKernel|detail))"
)
_PLUMBING_PYTHON = re.compile(
    r"(threading\.py$|/socketserver\.py$|http/server\.py$|concurrent/futures/"
    r"|torch/nn/modules/module\.py$|<frozen importlib)"
)


class Wait(StrEnum):
    """What a thread waits for by its innermost frames, as reports write it; ``UNKNOWN`` where these do not say."""

    UNKNOWN = ""
    GIL = "Python's global lock (GIL)"
    PYTHON_LOCK = "a Python lock"
    STATIC_VARIABLE = "a static variable that another thread initializes"
    ALLOCATOR = "the allocator's lock"
    THREAD = "the end of another thread"
    MUTEX = "a mutex"
    READ_WRITE_LOCK = "a read-write lock"
    SEMAPHORE = "a semaphore"
    CONDITION = "a condition variable"
    GPU = "the GPU"
    PIPE = "a pipe or the network"
    TIMER = "a timer"


# The first that fits counts, so that what is built on a mutex precedes the mutex.
_WAITS: Final = {
    Wait.GIL: re.compile(r"^(take_gil|PyEval_RestoreThread|PyEval_AcquireThread|PyGILState_Ensure)\b"),
    Wait.PYTHON_LOCK: re.compile(r"^PyThread_acquire_lock_timed$"),
    Wait.STATIC_VARIABLE: re.compile(r"^__cxa_guard_acquire$"),
    Wait.ALLOCATOR: re.compile(r"^__lll_lock_wait_private$"),
    Wait.THREAD: re.compile(r"^(std::thread::join|__?pthread_(timed|clock)?join\w*)\b"),
    Wait.MUTEX: re.compile(r"(pthread_mutex_(timed)?lock|lll_lock_wait|^std::mutex::lock)\b"),
    Wait.READ_WRITE_LOCK: re.compile(r"pthread_rwlock_\w*lock\b"),
    Wait.SEMAPHORE: re.compile(r"^(sem_(timed|clock)?wait|__new_sem_wait)"),
    Wait.CONDITION: re.compile(r"(pthread_cond_(timed|clock)?wait|^std::condition_variable::wait)\b"),
    Wait.GPU: re.compile(r"^cu(da)?(Stream|Ctx|Device|Event)Synchronize"),
    Wait.PIPE: re.compile(r"^(__?)?(poll|ppoll|select|epoll_wait|recv\w*|accept4?|read)$"),
    Wait.TIMER: re.compile(r"^(__?)?(clock_)?nanosleep"),
}
INNERMOST: Final = 8
INTERPRETER: Final = re.compile(r"jit::InterpreterState(Impl)?::run\w*")
"""What runs the code of a TorchScript model; what it called is on the stack above it."""
# The handler of fatal signals in harness/native/stacks/stacks.hpp.
CRASHING: Final = "gate::stacks::detail::on_fatal"


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """One stack, possibly of several threads: ``lines`` are its telling frames, innermost first."""

    title: str
    lines: tuple[str, ...]


@lru_cache(maxsize=4096)
def short(function: str) -> str:
    """Return a C++ name without arguments, template arguments and return type."""
    name = re.sub(r"@@?\w[\w.]*$|\.(constprop|part|isra|cold)[.\d]*$|\[clone [^]]*\]", "", function).strip()
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "operator\0")
    name = (
        name.replace("operator<<", "operator\1").replace("operator->", "operator\2").replace("operator<", "operator\3")
    )
    name = _without_brackets(name)
    name = re.sub(r"\{lambda[^}]*\}", "{lambda}", name)
    name = re.split(r" const$| &&$| \[", name)[0].rstrip()
    if " " in name and "operator " not in name:
        name = name.rsplit(" ", 1)[-1]
    replaced = name.replace("\0", "()").replace("\1", "<<").replace("\2", "->").replace("\3", "<")
    return replaced.replace("torch::jit::", "jit::").strip() or function


def _without_brackets(name: str) -> str:
    kept, depth = [], 0
    for letter in name:
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)


def crashed(stack: ThreadStack) -> bool:
    """Return whether the thread is in the handler of a fatal signal: it crashed at the same moment as another."""
    return any(CRASHING in frame.function for frame in stack.frames)


def waits_for(stack: ThreadStack) -> Wait:
    if crashed(stack):
        return Wait.UNKNOWN
    innermost = takewhile(lambda frame: frame.language != PYTHON, stack.frames[:INNERMOST])
    names = [short(frame.function) for frame in innermost]
    matching = (wait for wait, pattern in _WAITS.items() if any(pattern.search(name) for name in names))
    return next(matching, Wait.UNKNOWN)


def relevant_frames(stack: ThreadStack) -> tuple[str, ...]:
    """Return the frames that say something, innermost first, each once; recursion becomes a count."""
    counts: dict[str, int] = {}
    handler = max((index for index, frame in enumerate(stack.frames) if CRASHING in frame.function), default=-1)
    for frame in stack.frames[handler + 1 :]:
        line = telling(frame)
        if line:
            counts[line] = counts.get(line, 0) + 1
    lines = [line if count == 1 else f"{line}  ({count} times)" for line, count in counts.items()]
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        lines = [*lines[: MOST_LINES // 2], f"... {left} more", *lines[-MOST_LINES // 2 :]]
    return tuple(lines)


def is_plumbing(frame: Frame) -> bool:
    """Whether a native frame belongs to the C library or to Python's own."""
    return bool(_PLUMBING_FILES.search(frame.file))


def telling(frame: Frame) -> str:
    """Return what a frame says, with its line where that is known; empty for plumbing."""
    if frame.language == PYTHON:
        if _PLUMBING_PYTHON.search(frame.file):
            return ""
        return f"{frame.function}  {frame.file}:{frame.line}"
    name = short(frame.function)
    if is_plumbing(frame) or _PLUMBING_NAMES.match(name):
        return ""
    place = f"  {frame.file}:{frame.line}" if frame.line else ""
    return name + place


def interesting(
    stacks: Sequence[ThreadStack], proof: HangProof | None, first: Sequence[int] = ()
) -> tuple[Folded, ...]:
    """Return each stack once, without what is on all: threads ``first``, then the worker's own, then others."""
    activities = _by_tid(proof)
    groups: dict[tuple[str, ...], list[ThreadStack]] = {}

    def order(stack: ThreadStack) -> tuple[float, float]:
        place = first.index(stack.tid) if stack.tid in first else len(first)
        return place, _rank(activities.get(stack.tid))

    for stack in sorted(stacks, key=order):
        waits = waits_for(stack)
        lines = relevant_frames(stack)
        key = ((f"waits for {waits}", *lines) if waits and lines else lines) or ("nothing but system code",)
        groups.setdefault(key, []).append(stack)
    return tuple(Folded(title=_title(members, activities), lines=key) for key, members in groups.items())


def _rank(activity: ThreadActivity | None) -> float:
    return float("inf") if activity is None or activity.thread is None else activity.thread


def _title(members: Sequence[ThreadStack], activities: Mapping[int, ThreadActivity]) -> str:
    names = [_who(stack, activities.get(stack.tid)) for stack in members]
    moves = {stack.moved for stack in members}
    words = ", moving" if moves == {True} else ", unchanged" if moves == {False} else ""
    if len(members) == 1:
        return f"{names[0]}{words}"
    return f"{len(members)} threads: {', '.join(dict.fromkeys(names))}{words}"


def who(stack: ThreadStack, proof: HangProof | None) -> str:
    """Return how a thread is called: the worker's index of it, else the kernel's name and number."""
    return _who(stack, _by_tid(proof).get(stack.tid))


def _who(stack: ThreadStack, activity: ThreadActivity | None) -> str:
    if activity is not None and activity.thread is not None:
        return f"thread {activity.thread}"
    name = (activity.name if activity is not None else "") or stack.name
    return f"{name} {stack.tid}".strip() if name else f"tid {stack.tid}"


def threads_in_words(proof: HangProof | None, stacks: Sequence[ThreadStack]) -> tuple[str, ...]:
    """Return one line per thread of the worker: index, what it was at, its state, what it waits for, whether it moves.

    Threads that torch or the runtime has made have a line only where they take part: on a CPU, or with a telling stack.
    """
    by_tid = {stack.tid: stack for stack in stacks}
    activities = _by_tid(proof)
    known = sorted(activities.values(), key=_rank)
    lines = [_line(activity, by_tid.get(activity.tid), proof) for activity in known if _takes_part(activity, by_tid)]
    silent = (stack for stack in stacks if stack.tid not in activities)
    lines += [
        _line(ThreadActivity(tid=stack.tid, name=stack.name), stack, proof)
        for stack in silent
        if relevant_frames(stack)
    ]
    return tuple(lines)


def _takes_part(activity: ThreadActivity, by_tid: Mapping[int, ThreadStack]) -> bool:
    if activity.thread is not None or activity.on_cpu_s > 0 or activity.state == "R":
        return True
    stack = by_tid.get(activity.tid)
    return stack is not None and bool(relevant_frames(stack))


def _line(activity: ThreadActivity, stack: ThreadStack | None, proof: HangProof | None) -> str:
    who = _who(stack or ThreadStack(tid=activity.tid), activity)
    parts = [_at(activity), _state(activity, stack, proof)]
    if stack is not None and stack.moved is not None:
        parts.append("the stack moves" if stack.moved else "the stack stands")
    return f"{who}: {', '.join(part for part in parts if part)}"


def _at(activity: ThreadActivity) -> str:
    if not activity.phase:
        return ""
    call = f" {activity.call} of {activity.input_set}" if activity.call is not None else ""
    model = f" {activity.model}" if activity.model else ""
    return f"{activity.phase}{call}{' of' if model and not call else ',' if model else ''}{model}"


def _state(activity: ThreadActivity, stack: ThreadStack | None, proof: HangProof | None) -> str:
    waits = (waits_for(stack) if stack is not None else "") or activity.waits_for
    if proof is not None and proof.window_s > 0:
        busy, queued = activity.on_cpu_s / proof.window_s, activity.run_delay_s / proof.window_s
        if busy >= 0.05 or (queued >= 0.05 and not waits):  # a wait with a limit wakes up again and again
            queue = f" and waits {queued:.0%} of it for one" if queued >= 0.05 else ""
            return f"on a CPU {busy:.0%} of the time{queue}"
    if stack is not None and crashed(stack):
        return "crashed too"
    if waits:
        return f"waits for {waits}"
    words = {"R": "runs", "S": "sleeps", "D": "waits in the kernel", "T": "is stopped", "Z": "has ended"}
    return words.get(activity.state, "")


def _by_tid(proof: HangProof | None) -> dict[int, ThreadActivity]:
    return {activity.tid: activity for activity in proof.threads} if proof is not None else {}


def in_words(items: Sequence[str]) -> str:
    """Return ``"a, b and c"``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
