"""In which phase of a server's life a thread is, by the functions on its stack; pure."""

import re
from collections.abc import Iterable

from harness.checks.hang.stack_words import short
from harness.core.hang import ThreadStack

# The first that is on the stack counts: what runs inside another phase precedes it.
PHASES = (
    ("exit", r"^(__run_exit_handlers|_dl_fini|__cxa_finalize|Py_Finalize(Ex)?|Py_Exit|exit|_exit_function)$"),
    ("capture", r"CUDAGraph::(capture_begin|capture_end)|^cudaStreamBeginCapture|^capture_(begin|end)$"),
    ("compile", r"(getOptimizedPlanFor|GraphExecutorImpl::compileSpec|runOptimization|TensorExprKernel::compile\w*)$"),
    ("load", r"^(jit::)?(import_ir_module|ScriptModuleDeserializer::deserialize|jit::load|Unpickler::\w+)$"),
    ("import", r"^(_find_and_load|_call_with_frames_removed|PyImport_\w+)$"),
    ("warm-up", r"warm_?up"),
    ("call", r"InterpreterState(Impl)?::run|GraphFunction::run|AOTInductorModelContainer::run|^_call_impl$"),
)
_COMPILED = tuple((phase, re.compile(pattern)) for phase, pattern in PHASES)
# A main thread that has returned and waits for others, as some servers do all their life, inside Py_FinalizeEx.
_WAITS_FOR_THREADS = {"wait_for_thread_shutdown", "_shutdown"}
_LOADER = re.compile(r"torch/jit/_serialization\.py$|torch/serialization\.py$")


def phase_of(stack: ThreadStack) -> str:
    """Return the phase, empty where no frame says one."""
    names = [short(frame.function) for frame in stack.frames]
    for phase, pattern in _COMPILED:
        if phase == "exit" and _WAITS_FOR_THREADS.intersection(names):
            continue
        if any(pattern.search(name) for name in names):
            return phase
        if phase == "load" and any(_LOADER.search(frame.file) for frame in stack.frames):
            return phase
    return ""


def phase_of_process(phases: Iterable[str]) -> str:
    """Return the phase that explains most among those of its threads."""
    seen = set(phases)
    return next((phase for phase, _ in PHASES if phase in seen), "")
