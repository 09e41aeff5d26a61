"""In which phase of a server's life a stack is."""

import pytest

from harness.checks.attach.phases import phase_of
from harness.core.hang import Frame, ThreadStack

INTERPRETER = "torch::jit::InterpreterState::run(std::vector<c10::IValue>&)"


@pytest.mark.parametrize(
    ("functions", "phase"),
    [
        ((INTERPRETER, "main"), "call"),
        (("torch::jit::ProfilingGraphExecutorImpl::getOptimizedPlanFor()", INTERPRETER), "compile"),
        (("torch::jit::import_ir_module(std::shared_ptr<X>)", "main"), "load"),
        ((INTERPRETER, "(anonymous namespace)::warm_up(Model&)"), "warm-up"),
        (("pthread_cond_wait", "std::thread::join()", "__run_exit_handlers", "exit"), "exit"),
        (("at::cuda::CUDAGraph::capture_begin(int)", "main"), "capture"),
        (("epoll_wait", "serve"), ""),
        (("sem_wait", "wait_for_thread_shutdown", "Py_FinalizeEx", "main"), ""),
    ],
)
def test_the_phase_is_read_from_the_functions(functions: tuple[str, ...], phase: str) -> None:
    assert phase_of(ThreadStack(tid=1, frames=tuple(Frame(function=name) for name in functions))) == phase


def test_a_load_in_python_is_known_by_its_file() -> None:
    frame = Frame(function="load", file="/opt/site-packages/torch/jit/_serialization.py", line=3, language="python")
    assert phase_of(ThreadStack(tid=1, frames=(frame,))) == "load"
