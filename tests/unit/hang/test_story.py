"""What the report shows of the stacks of a process that hangs."""

from harness.domain.hang import Evidence, Frame, ThreadStack
from harness.hang.story import hang_story

INTERPRETER = (
    "bool torch::jit::InterpreterStateImpl::runTemplate<false>(std::vector<c10::IValue>&)",
    "torch::jit::GraphFunction::run",
)


def frames_of(*functions: str) -> str:
    frames = tuple(Frame(function=name, file="libtorch_cpu.so") for name in functions)
    evidence = Evidence(tool="the worker itself", stacks=(ThreadStack(tid=7, frames=frames, moved=True),))
    return dict(hang_story(evidence))["frames"]


def test_a_deep_stack_ends_with_the_interpreter_and_what_it_called() -> None:
    kernel = [f"at::native::step_{number}" for number in range(9)]
    assert frames_of(*kernel, "at::_ops::add_Tensor::call", *INTERPRETER) == (
        "tid 7, moving: at::native::step_0 < at::native::step_1 < at::native::step_2 < at::native::step_3 < ... < "
        "at::_ops::add_Tensor::call < jit::InterpreterStateImpl::runTemplate"
    )


def test_a_short_stack_and_one_without_an_interpreter_end_with_their_sixth_frame() -> None:
    short = frames_of("at::_ops::add_Tensor::call", *INTERPRETER)
    assert (
        short
        == "tid 7, moving: at::_ops::add_Tensor::call < jit::InterpreterStateImpl::runTemplate < jit::GraphFunction::run"
    )
    deep = frames_of(*(f"parse_{number}" for number in range(9)))
    assert deep == "tid 7, moving: parse_0 < parse_1 < parse_2 < parse_3 < parse_4 < parse_5"
