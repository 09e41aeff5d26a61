"""Whether a call that was made node by node shows the symptom: how it ends, and numbers only where they are searched."""

from dataclasses import replace

import numpy as np
import pytest

from harness.search.bisect.divergence import Traced, _Search, is_whole
from harness.verdict.bisection import CallInQuestion
from harness.search.bisect.traces import Trace
from harness.core.diagnosis import NodeFault, TracedNode
from harness.core.outcome import Outcome
from tests.unit.builders.stages import effects, facts_of, probed, result
from tests.unit.builders.tensors import outputs

ASKED = CallInQuestion(input_set="example", call=0)


def traced(value: float, outcome: Outcome = Outcome.COMPLETED) -> Traced:
    answer = outputs(np.array([1.0, value], dtype=np.float32))
    return Traced(probe=probed(result(outcome=outcome)), trace=Trace(), answer=answer)


def shows(new: Traced, *, alone: Outcome = Outcome.COMPLETED, tolerance: float | None = None) -> bool:
    facts = replace(facts_of("m"), alone={"m": probed(result(outcome=alone))})
    (model,) = facts.plan.models
    facts = replace(facts, plan=replace(facts.plan, models=(replace(model, tolerance=tolerance),)))
    return _Search("m", ASKED, facts, effects()).shows(traced(2.0), new)


def test_other_numbers_show_it_only_where_numbers_are_searched() -> None:
    assert shows(traced(3.0))
    assert not shows(traced(2.0))
    assert not shows(traced(3.0), alone=Outcome.HANG), "it came to its end, and the symptom is that it does not"
    assert not shows(traced(3.0), alone=Outcome.RUNTIME_ERROR)


def test_a_call_that_does_not_come_to_its_end_shows_it() -> None:
    assert shows(traced(2.0, Outcome.HANG), alone=Outcome.HANG)
    assert shows(traced(2.0, Outcome.CRASH))


def test_numbers_are_off_by_what_the_model_declares() -> None:
    assert shows(traced(2.001)) and not shows(traced(2.001), tolerance=0.01)
    assert shows(traced(2.000002), tolerance=1e-7) and not shows(traced(2.000002))


@pytest.mark.parametrize(
    ("kinds", "suspects", "whole"),
    [
        (["aten::mul"], [0], True),
        (["prim::GetAttr", "aten::mul", "prim::If"], [1], True),
        (["aten::mul", "aten::mul"], [0, 1], True),
        (["aten::mul", "aten::mul"], [1], False),
        (["aten::asinh", "aten::exp"], [0], False),
        (["aten::asinh", "aten::exp"], [0, 1], False),
        (["aten::mul"], [], False),
    ],
)
def test_the_only_operator_of_a_call_is_at_fault_though_by_rounding(
    kinds: list[str], suspects: list[int], whole: bool
) -> None:
    nodes = [TracedNode(place=(index,), kind=kind) for index, kind in enumerate(kinds)]
    faults = [NodeFault(node=nodes[index], what=(), places=((index,),)) for index in suspects]
    assert is_whole(faults, nodes) == whole
