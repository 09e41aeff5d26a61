"""What the report shows of the stacks of a process that hangs."""

import pytest

from harness.core.hang import Evidence, Frame, HangKind, HangProof, ThreadStack
from harness.checks.hang.story import hang_story

INTERPRETER = (
    "bool torch::jit::InterpreterStateImpl::runTemplate<false>(std::vector<c10::IValue>&)",
    "torch::jit::GraphFunction::run",
)


def frames_of(*functions: str) -> str:
    frames = tuple(Frame(function=name, file="libtorch_cpu.so") for name in functions)
    evidence = Evidence(tool="the worker itself", stacks=(ThreadStack(tid=7, frames=frames, moved=True),))
    return dict(hang_story(evidence))["frames"]


@pytest.mark.parametrize(("stalled_s", "said"), [(0.0, False), (0.9, False), (6.25, True)])
def test_hang_that_was_named_late_says_what_did_not_count(stalled_s: float, *, said: bool) -> None:
    proof = HangProof(kind=HangKind.BLOCKED, silent_s=9.3, window_s=8.1, stalled_s=stalled_s)
    line = dict(hang_story(Evidence(proof=proof)))["proof"]
    assert ("did not count, because this machine had too few CPUs to give" in line) is said
    assert not said or "no progress for 9.3 s; of these 6.2 s" in line


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
