"""Known hangs of torch and Python: what the stacks of all threads mean, and the source of that knowledge. Pure.

Each signature needs its frames and the states of the threads around them; a stack that only resembles one has none.
Those of the C library, C++ and CUDA are in ``system_readings``.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from harness.domain.hang import HangKind, HangProof, ThreadStack
from harness.hang import system_readings
from harness.hang.hung_process import LOCKS, HungProcess, Reading, Signature, has, has_python, is_system
from harness.hang.stack_words import (
    INNERMOST,
    PYTHON,
    interesting,
    short,
    threads_in_words,
    waits_for,
    waits_for_gil,
    who,
)

__all__ = ["Reading", "interesting", "reading", "threads_in_words"]


def reading(stacks: Sequence[ThreadStack], proof: HangProof | None) -> Reading | None:
    """Return what is known about this hang, None if it resembles nothing known; the most specific signature counts."""
    process = HungProcess(stacks, proof)
    signatures = (*SIGNATURES, *system_readings.SIGNATURES)
    return next((found for signature in signatures if (found := signature(process)) is not None), None)


_PLAN = r"(getPlanFor|GraphExecutorImpl::getOrCompile\w*|GraphFunction::(get_executor|ensure_defined|optimized_graph))$"
_COMPILE = r"(getOptimizedPlanFor|GraphExecutorImpl::compileSpec)$"
# The fused expression as a tree: walking, copying, rewriting or destroying it recurses, the passes around it do not.
_NNC_TREE = r"jit::tensorexpr::(?!TensorExprKernel|LoopNest)"


def _waiting_for_a_plan(process: HungProcess) -> list[ThreadStack]:
    return [
        stack
        for stack in process.stacks
        if waits_for(stack) == "a mutex" and has(stack, _PLAN, first=INNERMOST) and not process.runs(stack)
    ]


def _fuser_runs_away(process: HungProcess) -> Reading | None:
    for stack in process.stacks:
        inside = sum(1 for frame in stack.frames if re.search(_NNC_TREE, short(frame.function)))
        if not (inside >= 8 or (inside and process.runs(stack))) or not has(
            stack, r"tensorexpr::(TensorExprKernel|LoopNest)|createTensorExprOp|" + _COMPILE
        ):
            continue
        blocked = process.proof is not None and process.proof.kind is HangKind.BLOCKED
        if blocked or (stack.moved is False and not process.runs(stack)):
            continue
        waiting = _waiting_for_a_plan(process)
        others = f"; {process.do(waiting, 'wait')} for the same plan (getPlanFor)" if waiting else ""
        return Reading(
            words=(
                f"{who(stack, process.proof)} is inside the tensor-expression fuser, which copies the fused expression "
                "once for each use of each value: the work grows exponentially with the length of the chain"
                f"{others}. "
                "It is busy, not deadlocked, and does not end. Profiling off, the legacy executor, the fuser off or "
                "fusion depth 0 each avoid it"
            ),
            source="https://github.com/pytorch/pytorch/issues/75903",
        )
    return None


def _compile_blocks_others(process: HungProcess) -> Reading | None:
    waiting = _waiting_for_a_plan(process)
    compiling = [stack for stack in process.stacks if has(stack, _COMPILE) and stack not in waiting]
    if not waiting or not compiling:
        return None
    stands = compiling[0].moved is False and not process.runs(compiling[0])
    wait = waits_for(compiling[0])
    doing = f"and itself waits for {wait}" if stands and wait else "and is still at it"
    return Reading(
        words=(
            f"{who(compiling[0], process.proof)} compiles the graph, holding the executor's compile_mutex, {doing}; "
            f"{process.do(waiting, 'wait')} for that mutex in getPlanFor, without which nobody "
            "can call this function"
        ),
        source="https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/runtime/profiling_graph_executor_impl.cpp",
    )


def _inter_op_pool_exhausted(process: HungProcess) -> Reading | None:
    pool = [stack for stack in process.stacks if has(stack, r"^c10::ThreadPool::main_loop$")]
    wait = r"^(c10::)?ivalue::Future::wait|^jit::InterpreterState::run$|^torch::jit::wait|Future::wait$"
    if not pool or any(process.runs(stack) for stack in pool):
        return None
    if not all(has(stack, wait) and waits_for(stack) == "a condition variable" for stack in pool):
        return None
    size = "the only thread" if len(pool) == 1 else f"each of the {len(pool)} threads"
    return Reading(
        words=(
            f"the inter-op pool is exhausted: {size} of it runs a task that waits for another task, which only a "
            "thread of the same pool could run (torch.jit.fork and wait inside a task). A larger inter-op pool hides it"
        ),
        source="https://github.com/pytorch/pytorch/issues/109782",
    )


def _import_lock(process: HungProcess) -> Reading | None:
    def waits(stack: ThreadStack) -> bool:
        python = [frame for frame in stack.frames if frame.language == PYTHON]
        inside = bool(python) and "importlib" in python[0].file and python[0].function in ("acquire", "__enter__")
        return inside and not process.runs(stack)

    def imports(stack: ThreadStack) -> str:
        python = [frame for frame in stack.frames if frame.language == PYTHON]
        for inner, outer in pairwise(python):
            if outer.function in ("_call_with_frames_removed", "exec_module") and "importlib" in outer.file:
                return inner.file
        return ""

    waiting = [stack for stack in process.stacks if waits(stack)]
    importing = [stack for stack in process.stacks if imports(stack) and not process.runs(stack) and waits_for(stack)]
    importing = [stack for stack in importing if stack not in waiting or len(waiting) > 1]
    if not waiting or not importing:
        return None
    holder = importing[0]
    return Reading(
        words=(
            f"{who(holder, process.proof)} is importing {imports(holder)}, and the body of that module waits for "
            f"{waits_for(holder)}; {process.do(waiting, 'wait')} for the lock of a module that is being imported: the "
            "body of a module must not wait for a thread that imports"
        ),
        source="https://github.com/python/cpython/issues/125037",
    )


def _openmp_after_fork(process: HungProcess) -> Reading | None:
    library = re.compile(r"lib(gomp|iomp|omp)\d*[-.]")
    inside = [stack for stack in process.stacks if any(library.search(frame.file) for frame in stack.frames)]
    if len(inside) != 1 or not inside[0].frames:
        return None
    stack = inside[0]
    places = [index for index, frame in enumerate(stack.frames) if library.search(frame.file)]
    waits = places[0] <= 3 and all(is_system(frame) for frame in stack.frames[: places[0]])
    caller = next((frame for frame in stack.frames[places[-1] + 1 :] if not is_system(frame)), None)
    if not waits or caller is None:  # a thread of a team has nothing but OpenMP's own frames
        return None
    others = [other for other in process.stacks if other is not stack]
    if any(process.runs(other) or not _whole(other) for other in others):  # it may be the rest of the team
        return None
    return Reading(
        words=(
            f"{who(stack, process.proof)} waits in OpenMP for the other threads of its team, and this process has "
            "none, "
            "as after a fork from a process in which OpenMP had run, whose threads a child does not inherit"
        ),
        source="https://github.com/pytorch/pytorch/issues/41197",
    )


def _whole(stack: ThreadStack) -> bool:
    """Return whether the stack reaches back to the thread's begin; code without unwind tables cuts it short."""
    return bool(stack.frames) and (is_system(stack.frames[-1]) or stack.frames[-1].function in ("_start", "clone"))


def _gil_inversion(process: HungProcess) -> Reading | None:
    takers = [stack for stack in process.stacks if waits_for_gil(stack) and _takes_gil_in_foreign_code(stack)]
    holders = [
        stack
        for stack in process.stacks
        if waits_for(stack) in LOCKS
        and has_python(stack)
        and not has(stack, r"^PyThread_acquire_lock", first=INNERMOST)
    ]
    if not takers or not holders or any(process.runs(stack) for stack in process.stacks):
        return None
    return Reading(
        words=(
            f"{process.do(takers, 'wait')} for Python's global lock (GIL) inside of C++ code that may hold a lock of "
            "its "
            f"own; {process.do(holders, 'wait')} for {waits_for(holders[0])} of C++ with the GIL held, and nothing "
            "else "
            "runs: the two locks are taken in opposite orders"
        ),
        source="https://github.com/pytorch/pytorch/pull/58382",
    )


_TAKES_GIL = re.compile(
    r"^(take_gil|PyEval_(RestoreThread|AcquireThread)|PyGILState_Ensure|pybind11::gil_scoped_acquire)"
)


def _takes_gil_in_foreign_code(stack: ThreadStack) -> bool:
    """Return whether code that is not Python's own asked for the lock: Python's own holds no other one meanwhile."""
    native = [frame for frame in stack.frames if frame.language != PYTHON]
    taking = [index for index, frame in enumerate(native) if _TAKES_GIL.search(short(frame.function))]
    if not taking or taking[-1] + 1 >= len(native):
        return False
    caller = native[taking[-1] + 1]
    return not re.search(r"python|\.cpython-|^(\./)?(Python|Modules|Objects)/|libffi|_ctypes", caller.file)


SIGNATURES: Final[tuple[Signature, ...]] = (
    _fuser_runs_away,
    _compile_blocks_others,
    _inter_op_pool_exhausted,
    _import_lock,
    _openmp_after_fork,
    _gil_inversion,
)
