"""Native frames and Python's own view of the same thread -> one stack. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.domain.hang import Frame, ThreadStack
from harness.runtime.raw_stacks import RawThread
from harness.runtime.stack_formats import PYTHON, PythonThread

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
