"""What a call made node by node says: who is at fault, who only inherits, which call to look at."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders.verdicts import mitigation
from harness.verdict.exit_codes import exit_code
from harness.verdict.bisection import CallInQuestion, failing_call, faults, gaps
from harness.core.comparison import CallComparison
from harness.core.diagnosis import (
    BisectAnswer,
    Bisection,
    Culprit,
    Divergence,
    NodeFault,
    Place,
    Reduction,
    Symptom,
    TracedNode,
)
from harness.core.verdict import Mitigation
from harness.core.outcome import Outcome
from harness.core.probe import Failure
from tests.unit.builders.verdicts import call, compared, difference, equal, result, tensor

ROUNDED = tensor(max_abs=1e-6, mismatched=0)


def node(*place: int, kind: str = "aten::mul", **changes: Any) -> TracedNode:
    return TracedNode(**{"place": place, "address": place, "kind": kind, **changes})


def nodes(*found: TracedNode) -> dict[Place, TracedNode]:
    return {item.place: item for item in found}


def outputs(*calls: tuple[Place, CallComparison]) -> Any:
    return compared(*(replace(item, input_set=".".join(map(str, place))) for place, item in calls))


def named(found: Sequence[NodeFault]) -> list[Place]:
    return [fault.node.place for fault in found]


RUN = nodes(node(0), node(1), node(2))


def test_a_node_whose_outputs_differ_is_at_fault_and_its_equal_neighbours_are_not() -> None:
    comparison = outputs(((0,), call(equal())), ((1,), call(tensor())), ((2,), call(ROUNDED)))
    (fault,) = faults(RUN, RUN, comparison)
    assert fault.node.place == (1,)
    assert fault.kinds == ("values",)
    assert "off by 0.1" in fault.what[0]


def test_rounding_counts_only_where_it_is_asked_for() -> None:
    comparison = outputs(((0,), call(equal())), ((1,), call(ROUNDED)))
    assert faults(RUN, RUN, comparison) == ()
    (fault,) = faults(RUN, RUN, comparison, rounding=True)
    assert (fault.node.place, fault.kinds) == ((1,), ("rounding",))


@pytest.mark.parametrize(
    ("dtype", "off", "found"),
    [
        ("bfloat16", 0.03, True),
        ("bfloat16", 0.016, True),
        ("bfloat16", 0.0078, False),
        ("float16", 0.003, True),
        ("float16", 0.0009, False),
        ("float32", 9e-6, False),
    ],
)
def test_more_than_one_operators_rounding_is_a_fault_of_it_though_fine_for_a_model(
    dtype: str, off: float, *, found: bool
) -> None:
    drifted = tensor(dtype=dtype, max_abs=off, scale=1.0, tolerance_abs=1.0, mismatched=0)
    comparison = outputs(((0,), call(equal())), ((1,), call(drifted)))
    assert faults(RUN, RUN, comparison) == ()
    named_ = faults(RUN, RUN, comparison, one_operator=True)
    assert named(named_) == ([(1,)] if found else [])
    if found:
        assert f"of one operator in {dtype}" in named_[0].what[0]


def test_strides_count_only_where_they_are_asked_for() -> None:
    comparison = outputs(((1,), replace(call(equal()), stride_changes=("output[0]",))))
    assert faults(RUN, RUN, comparison) == ()
    assert named(faults(RUN, RUN, comparison, strides=True)) == [(1,)]


def test_what_differs_in_a_loop_or_a_branch_differs_within_it() -> None:
    run = nodes(node(0, kind="prim::Loop"), node(0, 1, 3))
    comparison = outputs(((0,), call(tensor())), ((0, 1, 3), call(tensor())))
    assert named(faults(run, run, comparison)) == [(0, 1, 3)]


def test_the_turns_of_a_loop_are_one_fault_with_many_places() -> None:
    run = nodes(*(node(0, turn, 3, address=(0, 0, 3)) for turn in range(3)))
    comparison = outputs(*((place, call(tensor() if place[1] else equal())) for place in run))
    (fault,) = faults(run, run, comparison)
    assert fault.places == ((0, 1, 3), (0, 2, 3))


@pytest.mark.parametrize("kind", ["aten::empty", "aten::new_empty"])
def test_memory_that_nobody_has_written_says_nothing(kind: str) -> None:
    run = nodes(node(0, kind=kind))
    assert faults(run, run, outputs(((0,), call(tensor())))) == ()


def test_state_that_is_fetched_after_a_fault_is_that_faults_doing() -> None:
    fetch = node(1, kind="prim::GetAttr")
    both = outputs(((0,), call(tensor())), ((1,), call(tensor())))
    assert named(faults(nodes(node(0), fetch), nodes(node(0), fetch), both)) == [(0,)]
    alone = outputs(((1,), call(tensor())))
    assert named(faults(nodes(fetch), nodes(fetch), alone)) == [(1,)]  # it was loaded otherwise


def test_a_node_that_raises_or_ends_the_process_is_at_fault() -> None:
    nothing = outputs()
    raised = {**RUN, (1,): node(1, error="RuntimeError: no")}
    assert faults(RUN, raised, nothing)[0].what == ("raises RuntimeError: no",)
    assert faults(raised, RUN, nothing)[0].what == ("no longer raises RuntimeError: no",)
    assert faults(raised, raised, nothing) == ()
    (fault,) = faults(RUN, {**RUN, (2,): node(2, finished=False)}, nothing)
    assert (fault.node.place, fault.kinds) == ((2,), ("ended",))


def test_other_bytes_that_were_not_kept_may_be_rounding_and_are_no_culprit() -> None:
    assert faults(RUN, RUN, outputs(), other_digests=[(1,)]) == ()
    (fault,) = faults(RUN, RUN, outputs(), other_digests=[(1,)], rounding=True)
    assert "too large to be kept" in fault.what[0]


def test_a_node_without_the_old_inputs_is_not_blamed() -> None:
    unchecked = {**RUN, (1,): node(1, unchecked="input 0 is too large")}
    assert faults(RUN, unchecked, outputs(((1,), call(tensor())))) == ()


def test_other_structure_is_a_fault() -> None:
    (fault,) = faults(RUN, RUN, outputs(((0,), call(tree=(difference(),)))))
    assert fault.kinds == ("structure",)


def test_gaps_name_what_could_not_be_compared() -> None:
    new = nodes(node(0), node(-3, kind="aten::to", unaligned=True), node(2, unchecked="input 1 is too large"))
    said = " | ".join(gaps(RUN, new, whole=True))
    assert "aten::to" in said
    assert "not run by the new one: aten::mul" in said
    assert "input 1 is too large" in said
    assert gaps(RUN, RUN, whole=True) == ()


def test_constants_are_no_gap() -> None:
    assert gaps(RUN, {**RUN, (-4,): node(-4, kind="prim::Constant", unaligned=True)}, whole=True) == ()


def test_the_first_call_with_other_outputs_is_the_one_in_question() -> None:
    comparison = compared(call(ROUNDED), call(tensor(), index=1), call(tensor(), input_set="other"))
    assert failing_call(result(), comparison) == CallInQuestion(input_set="example", call=1)
    assert failing_call(result(), compared(call(equal()))) is None


def test_a_failure_names_its_call() -> None:
    failure = Failure(type="RuntimeError", message="no", phase="call", input_set="batch", call=2)
    raised = result(Outcome.RUNTIME_ERROR, failure=failure)
    assert failing_call(raised, None) == CallInQuestion(input_set="batch", call=2)
    crashed = result(Outcome.CRASH, phase="call", input_set="larger batch", call=1)
    assert failing_call(crashed, None) == CallInQuestion(input_set="larger batch", call=1)
    assert failing_call(result(Outcome.HANG, phase="load"), None) is None


def found(answer: BisectAnswer, **changes: Any) -> Bisection:
    return Bisection(model="m", old="a", new="b", answer=answer, **changes)


def test_exit_codes() -> None:
    guilty = Divergence(input_set="e", call=0, culprits=(NodeFault(node=node(0), what=("off",)),))
    assert exit_code(found(BisectAnswer.NOTHING)) == 0
    assert exit_code(found(BisectAnswer.OPERATOR, divergence=guilty)) == 1
    assert exit_code(found(BisectAnswer.LOADING, refusals=("aten::gone",))) == 1
    assert exit_code(found(BisectAnswer.EXECUTOR, mitigations=(mitigation("fuser off", mitigates=True),))) == 1
    assert exit_code(found(BisectAnswer.EXECUTOR, mitigations=(mitigation("fuser off", mitigates=False),))) == 4
    reduction = Reduction(symptom=Symptom.HANG, nodes=9, shows=True)
    reduced = replace(reduction, culprits=(Culprit(keep=(1,), nodes=(node(1),), artifact="a", inputs="i"),))
    assert (
        exit_code(found(BisectAnswer.NODES, reduction=reduced))
        == exit_code(found(BisectAnswer.EXECUTOR, reduction=reduced))
        == 1
    )
    assert exit_code(found(BisectAnswer.EXECUTOR, reduction=reduction)) == 4
    assert exit_code(found(BisectAnswer.UNDECIDED)) == 4
