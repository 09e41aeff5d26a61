"""Known hangs of the C library, of C++ and of CUDA. Pure."""

import re
from typing import Final

from harness.domain.hang import ThreadStack
from harness.hang.hung_process import LOCKS, HungProcess, Reading, Signature, has, is_system
from harness.hang.stack_words import INNERMOST, short, waits_for, who

_ALLOCATOR = re.compile(
    r"^(__libc_|__)?(malloc|free|calloc|realloc|memalign|aligned_alloc|_int_malloc|_int_free)$|^operator new"
)
_LOADER_NAMES = r"^(__)?(dlopen|dlclose|dlsym|dladdr|dl_iterate_phdr|_dl_\w+|call_init|_dl_init)$"
_LOADER_FILE = re.compile(r"^ld-linux|^\./elf/dl-")
_SIGNAL = "<signal handler called>"


def _allocator_lock(process: HungProcess) -> Reading | None:
    for stack in process.stacks:
        if process.runs(stack) or waits_for(stack) not in ("the allocator's lock", "a mutex"):
            continue
        inner = next(
            (index for index, frame in enumerate(stack.frames) if _ALLOCATOR.search(short(frame.function))), None
        )
        if inner is None or not all(is_system(frame) or frame.function == "?" for frame in stack.frames[:inner]):
            continue
        handlers = [index for index, frame in enumerate(stack.frames) if frame.function in (_SIGNAL, "__restore_rt")]
        if handlers and handlers[0] > inner:
            return Reading(
                words=(
                    f"{who(stack, process.proof)} allocates memory inside a signal handler that has interrupted the "
                    "allocator itself: it waits for a lock that it holds"
                ),
                source="https://manpages.ubuntu.com/manpages/plucky/man7/signal-safety.7.html",
            )
        if len(process.stacks) == 1:
            return Reading(
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
        words=(
            f"{process.named(holding[:1])} is inside the dynamic loader (dlopen, a library's constructors, or "
            f"dl_iterate_phdr), holds its lock, and waits for {waits_for(holding[0])}; {process.do(waiting, 'wait')} "
            "for "
            "the loader's lock"
        ),
        source="https://github.com/joblib/threadpoolctl/issues/239",
    )


def _waits_for_loader(stack: ThreadStack) -> bool:
    """Return whether the code that waits for a mutex is the loader's own."""
    if waits_for(stack) != "a mutex":
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
    waits = LOCKS[2]
    stuck = [stack for stack in process.stacks if waits_for(stack) == waits and not process.runs(stack)]
    for one in stuck:
        for other in stuck:
            if one is not other and _guarded(one) in _callers(other) and _guarded(other) in _callers(one):
                return Reading(
                    words=(
                        f"{process.named((one, other))} each initialize a static variable that needs the other's: "
                        f"{_guarded(one)} waits for {_guarded(other)} and the reverse"
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
        words=(
            f"{process.do(loading, 'load')} a kernel on its first use, which may need the GPU to be idle, while "
            f"{process.do(waiting, 'wait')} for work on the GPU that may need that kernel. CUDA_MODULE_LOADING=EAGER "
            "loads all kernels at the start"
        ),
        source=_CUDA_HAZARDS,
    )


SIGNATURES: Final[tuple[Signature, ...]] = (_static_initializers, _allocator_lock, _loader_lock, _cuda_lazy_loading)
