"""What a reader of ``bisect`` sees."""

from dataclasses import replace
from typing import Any

from harness.core.diagnosis import Cure
from harness.core.diagnosis import BisectAnswer, Bisection, Divergence, NodeFault, Reproducer, TracedNode
from harness.report.text.bisection import render_bisection

NODE = TracedNode(
    place=(4,),
    kind="aten::cosh",
    schema="aten::cosh(Tensor self) -> Tensor",
    source="model.py:33",
    code="x = torch.cosh(x)",
    module="encoder.layers.1",
    inputs=("float32[3, 4]",),
)
FAULT = NodeFault(node=NODE, what=("output[0]: off by 0.002",), kinds=("values",), places=((4,),))
FOUND = Divergence(
    input_set="example",
    call=1,
    nodes=31,
    shows=True,
    culprits=(FAULT,),
    inherited=4,
    confirmed=True,
    probes=(1, 3),
)
MADE = Reproducer(operator="aten::cosh", folder="reproducers/1", old="as recorded (exit code 0)", new="off")


def text(answer: BisectAnswer = BisectAnswer.OPERATOR, **changes: Any) -> str:
    found = Bisection(**{"model": "m", "old": "torch 2.1.2", "new": "torch 2.6.0", "answer": answer, **changes})
    return render_bisection(found, directory="reports/r")


def test_a_culprit_is_reported_with_its_place_and_its_proof() -> None:
    assert (
        text(symptom=("output: off",), divergence=FOUND, reproducers=(MADE,))
        == """\
m, torch 2.1.2 -> torch 2.6.0: an operator
  symptom     output: off
  culprit     aten::cosh
  module      encoder.layers.1
  source      model.py:33
  code        x = torch.cosh(x)
  inputs      float32[3, 4]
  differs     output[0]: off by 0.002
  searched    example call 1: 31 nodes, 1 + 3 probes
  confirmed   with the outputs of this one taken from torch 2.1.2 the call agrees
  inherited   4 further nodes differ only because of that
  reproducer  reports/r/reproducers/1/reproduce.py
              torch 2.1.2: as recorded (exit code 0)
              torch 2.6.0: off
"""
    )


def test_the_same_operator_in_other_places_is_reported_in_a_line_each() -> None:
    again = replace(FAULT, node=replace(NODE, place=(9,), module="head"))
    said = text(divergence=replace(FOUND, culprits=(FAULT, again)))
    assert "1 operator in 2 places" in said
    assert "  also        head: output[0]: off by 0.002\n" in said
    assert said.count("culprit") == 1


def test_what_is_not_proven_says_so() -> None:
    assert "unconfirmed" in text(divergence=replace(FOUND, confirmed=False))
    assert "confirmed" not in text(divergence=replace(FOUND, confirmed=None))


def test_the_executor_is_reported_with_what_cures() -> None:
    tried = (Cure(names=("fuser off",), cures=True), Cure(names=("profiling off",), cures=False, note="still hangs"))
    said = text(BisectAnswer.EXECUTOR, divergence=replace(FOUND, culprits=(), shows=False), cures=tried)
    assert "  cure        fuser off\n" in said
    assert "  no cure     profiling off: still hangs\n" in said
    assert "how the release optimises it" in said


def test_rounding_is_reported_with_the_nodes() -> None:
    said = text(BisectAnswer.UNDECIDED, divergence=replace(FOUND, culprits=(), rounding=(FAULT,)))
    assert "undecided" in said
    assert "aten::cosh (encoder.layers.1, model.py:33)" in said


def test_refusals_and_notes_are_reported() -> None:
    said = text(BisectAnswer.LOADING, refusals=("aten::gone: not there",), notes=("look there",))
    assert "aten::gone: not there" in said
    assert "look there" in said


def test_control_characters_of_a_model_are_escaped() -> None:
    assert "\x1b" not in text(symptom=("\x1b[31mred",), notes=("\x1b]0;title",))
