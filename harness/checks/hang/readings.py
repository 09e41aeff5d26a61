"""Known hangs of torch and Python: what the stacks of all threads mean, and the source of that knowledge. Pure.

Each signature needs its frames and the states of the threads around them; a stack that only resembles one has none.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from harness.checks.hang.stack_formats import PYTHON
from harness.checks.hang.stack_words import INNERMOST, Wait, in_words, short, waits_for, who
from harness.core.hang import Frame, HangKind, HangProof, ThreadStack

LOCKS: Final = (Wait.MUTEX, Wait.READ_WRITE_LOCK, Wait.STATIC_VARIABLE)
WIDER_POOL: Final = "wide inter-op pool"
_RUNNING_SHARE: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a hang is, in plain language.

    Attributes:
        name: of the kind of hang, the same however it is worded; ``title``: what it is, in a few words.
        source: URL of an upstream issue or document that explains it.
        threads: ids of those that the words are about, the most telling first; empty where each is as good as another.
        mitigations: names of the mitigations in ``harness/serving/settings/table.py`` that avoid it.
    """

    name: str
    title: str
    words: str
    source: str
    threads: tuple[int, ...] = ()
    mitigations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HungProcess:
    """All threads of the process, and what is proven about them."""

    stacks: Sequence[ThreadStack]
    proof: HangProof | None

    def named(self, stacks: Iterable[ThreadStack]) -> str:
        """Return ``"thread 1 and thread 2"``."""
        return in_words([who(stack, self.proof) for stack in stacks])

    def do(self, stacks: Sequence[ThreadStack], verb: str) -> str:
        """Return ``"thread 1 waits"`` or ``"thread 1 and thread 2 wait"``."""
        return f"{self.named(stacks)} {verb}{'s' if len(stacks) == 1 else ''}"

    def runs(self, stack: ThreadStack) -> bool:
        if stack.moved:
            return True
        if self.proof is None:
            return False
        enough = _RUNNING_SHARE * self.proof.window_s
        return any(thread.tid == stack.tid and thread.on_cpu_s > enough for thread in self.proof.threads)


Signature = Callable[[HungProcess], Reading | None]


def has(stack: ThreadStack, pattern: str, *, first: int | None = None) -> bool:
    """Return whether one of the ``first`` innermost frames is a function whose short name the pattern finds."""
    compiled = re.compile(pattern)
    return any(compiled.search(short(frame.function)) for frame in stack.frames[:first])


def has_python(stack: ThreadStack) -> bool:
    return any(frame.language == PYTHON or "PyEval_EvalFrame" in frame.function for frame in stack.frames)


def is_system(frame: Frame) -> bool:
    return bool(re.search(r"^lib(c|pthread)[.-]|^\./nptl|sysdeps|^\./elf", frame.file))


_ALLOCATOR = re.compile(
    r"^(__libc_|__)?(malloc|free|calloc|realloc|memalign|aligned_alloc|_int_malloc|_int_free)$|^operator new"
)
_LOADER_NAMES = r"^(__)?(dlopen|dlclose|dlsym|dladdr|dl_iterate_phdr|_dl_\w+|call_init|_dl_init)$"
_LOADER_FILE = re.compile(r"^ld-linux|^\./elf/dl-")
_SIGNAL = "<signal handler called>"


def _allocator_lock(process: HungProcess) -> Reading | None:
    for stack in process.stacks:
        if process.runs(stack) or waits_for(stack) not in (Wait.ALLOCATOR, Wait.MUTEX):
            continue
        inner = next(
            (index for index, frame in enumerate(stack.frames) if _ALLOCATOR.search(short(frame.function))), None
        )
        if inner is None or not all(is_system(frame) or frame.function == "?" for frame in stack.frames[:inner]):
            continue
        handlers = [index for index, frame in enumerate(stack.frames) if frame.function in (_SIGNAL, "__restore_rt")]
        if handlers and handlers[0] > inner:
            return Reading(
                name="allocator-in-a-signal-handler",
                title="allocates inside a signal handler",
                words=(
                    f"{who(stack, process.proof)} allocates memory inside a signal handler that has interrupted the "
                    "allocator itself: it waits for a lock that it holds"
                ),
                source="https://manpages.ubuntu.com/manpages/plucky/man7/signal-safety.7.html",
            )
        if len(process.stacks) == 1:
            return Reading(
                name="allocator-after-fork",
                title="waits for the allocator's lock after a fork",
                words=(
                    f"{who(stack, process.proof)} waits for the allocator's lock, and there is no other thread that "
                    "could hold it: this process was forked while another thread was allocating"
                ),
                source="https://github.com/pytorch/pytorch/issues/2245",
            )
    return None


def _loader_lock(process: HungProcess) -> Reading | None:
    waiting = [stack for stack in process.stacks if _waits_for_loader(stack) and not process.runs(stack)]
    holding = [
        stack
        for stack in process.stacks
        if stack not in waiting and _inside_loader(stack) and waits_for(stack) and not process.runs(stack)
    ]
    if not waiting or not holding:
        return None
    return Reading(
        name="loader-lock",
        title="waits for the dynamic loader's lock",
        words=(
            f"{process.named(holding[:1])} is inside the dynamic loader (dlopen, a library's constructors, or "
            f"dl_iterate_phdr), holds its lock, and waits for {waits_for(holding[0])}; "
            f"{process.do(waiting, 'wait')} for the loader's lock"
        ),
        source="https://github.com/joblib/threadpoolctl/issues/239",
    )


def _waits_for_loader(stack: ThreadStack) -> bool:
    if waits_for(stack) is not Wait.MUTEX:
        return False
    for frame in stack.frames[:INNERMOST]:
        name = short(frame.function)
        if re.search(_LOADER_NAMES, name) or _LOADER_FILE.search(frame.file):
            return True
        if not is_system(frame):
            return False
    return False


def _inside_loader(stack: ThreadStack) -> bool:
    """Return whether the loader called code that is not its own: constructors, or a callback."""
    foreign = False
    for frame in stack.frames:
        loader = re.search(_LOADER_NAMES, short(frame.function)) or _LOADER_FILE.search(frame.file)
        if loader and foreign:
            return True
        foreign = foreign or not (loader or is_system(frame) or frame.file.startswith("libstdc++"))
    return False


def _static_initializers(process: HungProcess) -> Reading | None:
    stuck = [stack for stack in process.stacks if waits_for(stack) is Wait.STATIC_VARIABLE and not process.runs(stack)]
    for first, second in combinations(stuck, 2):
        if _guarded(first) in _callers(second) and _guarded(second) in _callers(first):
            return Reading(
                name="static-initializers",
                title="static variables that need each other",
                words=(
                    f"{process.named((first, second))} each initialize a static variable that needs the other's: "
                    f"{_guarded(first)} waits for {_guarded(second)} and the reverse"
                ),
                source="https://iamroman.org/blog/2017/04/cpp11-static-init/",
            )
    return None


def _after_guard(stack: ThreadStack) -> list[str]:
    names = [short(frame.function) for frame in stack.frames]
    return names[names.index("__cxa_guard_acquire") + 1 :] if "__cxa_guard_acquire" in names else []


def _guarded(stack: ThreadStack) -> str:
    return (_after_guard(stack) or [""])[0]


def _callers(stack: ThreadStack) -> list[str]:
    return [name for name in _after_guard(stack)[1:] if name != "?"]


_CUDA_LOADS = (
    r"^cu(da)?(Module(Load|GetFunction|GetGlobal)|Library(Load|Get)|Kernel(GetFunction|Load)|Func(Load|GetAttributes))"
)
_CUDA_WAITS = r"^cu(da)?(Stream|Ctx|Device|Event)Synchronize|^cuMemcpy"
_CUDA_HAZARDS = "https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/lazy-loading.html"


def _cuda_lazy_loading(process: HungProcess) -> Reading | None:
    loading = [
        stack for stack in process.stacks if has(stack, _CUDA_LOADS, first=2 * INNERMOST) and stack.moved is not True
    ]
    waiting = [stack for stack in process.stacks if has(stack, _CUDA_WAITS, first=INNERMOST) and stack not in loading]
    if not loading or not waiting:
        return None
    return Reading(
        name="lazy-kernel-loading",
        title="loads a kernel on its first use",
        words=(
            f"{process.do(loading, 'load')} a kernel on its first use, which may need the GPU to be idle, while "
            f"{process.do(waiting, 'wait')} for work on the GPU that may need that kernel. CUDA_MODULE_LOADING=EAGER "
            "loads all kernels at the start"
        ),
        source=_CUDA_HAZARDS,
    )


_PLAN = r"(getPlanFor|GraphExecutorImpl::getOrCompile\w*|GraphFunction::(get_executor|ensure_defined|optimized_graph))$"
_COMPILE = r"(getOptimizedPlanFor|GraphExecutorImpl::compileSpec)$"
# The fused expression as a tree: walking, copying, rewriting or destroying it recurses, the passes around it do not.
_NNC_TREE = r"jit::tensorexpr::(?!TensorExprKernel|LoopNest)"
_NNC_INTERPRETER = r"jit::tensorexpr::SimpleIREvaluator"


def _waiting_for_a_plan(process: HungProcess) -> list[ThreadStack]:
    return [
        stack
        for stack in process.stacks
        if waits_for(stack) is Wait.MUTEX and has(stack, _PLAN, first=INNERMOST) and not process.runs(stack)
    ]


def _fuser_runs_away(process: HungProcess) -> Reading | None:
    for stack in process.stacks:
        if has(stack, _NNC_INTERPRETER):
            continue  # it has been compiled
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
            name="fuser-runs-away",
            title="inside the tensor-expression fuser",
            words=(
                f"{who(stack, process.proof)} is inside the tensor-expression fuser, which copies the fused expression "
                f"once for each use of each value: the work grows exponentially with the length of the chain{others}. "
                "It is busy, not deadlocked, and does not end. Profiling off, the legacy executor, the fuser off or "
                "fusion depth 0 each avoid it"
            ),
            source="https://github.com/pytorch/pytorch/issues/75903",
        )
    return None


def _fuser_interprets(process: HungProcess) -> Reading | None:
    for stack in process.stacks:
        if process.runs(stack) and has(stack, _NNC_INTERPRETER):
            return Reading(
                name="fused-code-interpreted",
                title="inside the interpreter of fused code",
                words=(
                    f"{who(stack, process.proof)} is inside the interpreter of fused code, which torch uses where it "
                    "was built without LLVM, as its wheels are: it walks the fused expression for every element. Its "
                    "loops are bounded, so this is slow, hundreds of times as slow as without fusion, and not endless. "
                    "Profiling off, the legacy executor, the fuser off or fusion depth 0 each avoid it"
                ),
                source="https://github.com/pytorch/pytorch/blob/v2.6.0/torch/csrc/jit/tensorexpr/eval.cpp",
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
        name="compile-mutex",
        title="compiles the graph, holding the executor's compile_mutex",
        words=(
            f"{who(compiling[0], process.proof)} compiles the graph, holding the executor's compile_mutex, {doing}; "
            f"{process.do(waiting, 'wait')} for that mutex in getPlanFor, without which nobody can call this function"
        ),
        source="https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/runtime/profiling_graph_executor_impl.cpp",
    )


_WAITS_FOR_TASK = r"^(c10::)?ivalue::Future::wait|^jit::InterpreterState::run$|^torch::jit::wait|Future::wait$"
_POOL_LOOP = r"^c10::ThreadPool::main_loop$"


def _inter_op_pool_after_fork(process: HungProcess) -> Reading | None:
    """Where models fork tasks the pool has threads from the first one on, unless the process is forked later.

    Its only thread waits for a task, or already as it hands one over: the state of the pool's condition variable says
    that somebody is about to wake up.
    """
    if len(process.stacks) != 1:
        return None
    (stack,) = process.stacks
    waits = has(stack, _WAITS_FOR_TASK) and waits_for(stack) is Wait.CONDITION
    if process.runs(stack) or not (waits or has(stack, r"^c10::ThreadPool::run$")):
        return None
    return Reading(
        name="inter-op-pool-after-fork",
        title="needs the inter-op pool after a fork",
        words=(
            f"{who(stack, process.proof)} needs the inter-op pool (torch.jit.fork), and this process has no other "
            "thread: it was forked after the pool had been used, and a child does not inherit its threads"
        ),
        source="https://github.com/pytorch/pytorch/issues/17199",
    )


def _inter_op_pool_exhausted(process: HungProcess) -> Reading | None:
    pool = [stack for stack in process.stacks if has(stack, _POOL_LOOP)]
    if not pool or any(process.runs(stack) for stack in pool):
        return None
    if not all(has(stack, _WAITS_FOR_TASK) and waits_for(stack) is Wait.CONDITION for stack in pool):
        return None
    size = "the only thread" if len(pool) == 1 else f"each of the {len(pool)} threads"
    return Reading(
        name="inter-op-pool-exhausted",
        title="the inter-op pool is exhausted",
        words=(
            f"the inter-op pool is exhausted: {size} of it runs a task that waits for another task, which only a "
            "thread of the same pool could run (torch.jit.fork and wait inside a task). A larger inter-op pool hides it"
        ),
        source="https://github.com/pytorch/pytorch/issues/109782",
        mitigations=(WIDER_POOL,),
    )


_LOADING = r"^(jit::)?(import_ir_module|ScriptModuleDeserializer::deserialize)$"


def _load_waits_with_gil(process: HungProcess) -> Reading | None:
    """``torch.jit.load`` keeps the GIL from begin to end, also in ``__setstate__`` (docs/evidence.md#gil)."""
    loading = [
        stack
        for stack in process.stacks
        if has(stack, _LOADING) and has_python(stack) and waits_for(stack) in (*LOCKS, Wait.CONDITION)
    ]
    takers = [stack for stack in process.stacks if waits_for(stack) is Wait.GIL and has(stack, _POOL_LOOP)]
    if len(loading) != 1 or not takers or any(process.runs(stack) for stack in process.stacks):
        return None
    tensor = any(has(stack, r"decref|TensorImpl") for stack in takers)
    why = "to let go of a tensor that Python refers to as well" if tensor else "before it can take another task"
    return Reading(
        name="load-holds-gil",
        title="torch.jit.load holds the GIL while __setstate__ waits",
        words=(
            "torch.jit.load holds Python's global lock (GIL) while __setstate__ waits for the inter-op pool: "
            f"{who(loading[0], process.proof)} waits for {waits_for(loading[0])}, and {process.do(takers, 'need')} the "
            f"GIL {why}. A larger inter-op pool hides it, a __setstate__ that neither forks nor waits avoids it"
        ),
        source="https://github.com/pytorch/pytorch/issues/56701",
        threads=tuple(stack.tid for stack in (*loading, *takers)),
        mitigations=(WIDER_POOL,),
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
        name="import-lock",
        title="the body of a module waits for a thread that imports",
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
        name="openmp-after-fork",
        title="waits in OpenMP after a fork",
        words=(
            f"{who(stack, process.proof)} waits in OpenMP for the other threads of its team, and this process has "
            "none, as after a fork from a process in which OpenMP had run, whose threads a child does not inherit"
        ),
        source="https://github.com/pytorch/pytorch/issues/41197",
        mitigations=("one thread after the fork",),
    )


def _whole(stack: ThreadStack) -> bool:
    """Return whether the stack reaches back to the thread's begin; code without unwind tables cuts it short."""
    return bool(stack.frames) and (is_system(stack.frames[-1]) or stack.frames[-1].function in ("_start", "clone"))


def _gil_inversion(process: HungProcess) -> Reading | None:
    takers = [stack for stack in process.stacks if waits_for(stack) is Wait.GIL and _takes_gil_in_foreign_code(stack)]
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
        name="gil-inversion",
        title="the GIL and a lock of C++ are taken in opposite orders",
        words=(
            f"{process.do(takers, 'wait')} for Python's global lock (GIL) inside of C++ code that may hold a lock of "
            f"its own; {process.do(holders, 'wait')} for {waits_for(holders[0])} of C++ with the GIL held, and nothing "
            "else runs: the two locks are taken in opposite orders"
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


def only_want_the_gil(stacks: Iterable[ThreadStack]) -> frozenset[int]:
    """Return the threads that want to go on in Python and can hold nobody up: whoever has the GIL holds them up."""
    return frozenset(
        stack.tid for stack in stacks if waits_for(stack) is Wait.GIL and not _takes_gil_in_foreign_code(stack)
    )


def _first_calls_of_a_package(process: HungProcess) -> Reading | None:
    called = {  # thread -> the library of the package that it calls
        stack: frame.file
        for stack in process.stacks
        for frame in reversed(stack.frames)
        if short(frame.function).endswith("AOTInductorModelContainer::run")
    }
    writers = [stack for stack in called if waits_for(stack) is Wait.READ_WRITE_LOCK]
    readers = [
        stack
        for stack in called
        if waits_for(stack) is Wait.CONDITION and called[stack] in {called[writer] for writer in writers}
    ]
    if not readers or any(process.runs(stack) for stack in called):
        return None
    return Reading(
        name="first-calls-of-a-package",
        title="first calls of a package wait for each other",
        words=(
            f"{process.do(readers, 'wait')} for a free model of a package, with its read lock in hand; "
            f"{process.named(writers)} took the model for a first call and cannot have the write lock that makes its "
            "constants ready"
        ),
        source="https://github.com/pytorch/pytorch/pull/181941",
        threads=tuple(stack.tid for stack in (*writers, *readers)),
        mitigations=("serialized first calls",),
    )


SIGNATURES: Final[tuple[Signature, ...]] = (
    _fuser_runs_away,
    _fuser_interprets,
    _compile_blocks_others,
    _inter_op_pool_exhausted,
    _inter_op_pool_after_fork,
    _load_waits_with_gil,
    _import_lock,
    _openmp_after_fork,
    _gil_inversion,
    _static_initializers,
    _allocator_lock,
    _loader_lock,
    _cuda_lazy_loading,
    _first_calls_of_a_package,
)


def reading(stacks: Sequence[ThreadStack], proof: HangProof | None) -> Reading | None:
    """Return what is known about this hang, None if it resembles nothing known; the most specific signature counts."""
    process = HungProcess(stacks, proof)
    return next((known for signature in SIGNATURES if (known := signature(process)) is not None), None)
