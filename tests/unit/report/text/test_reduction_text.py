"""What a program was reduced to, as a reader of ``bisect`` sees it, in 80 columns."""

from dataclasses import replace

from harness.core.diagnosis import BisectAnswer, Bisection, Culprit, Divergence, Reduction, Symptom, TracedNode
from harness.report.text.bisection import render_bisection
from tests.unit.builders.reports import ratio

NODES = tuple(
    TracedNode(place=(index,), kind=kind, source=f"waves.py:{index}", code=f"x = f({index})", module="encoder.waves")
    for index, kind in enumerate(("aten::cos", "aten::sin", "aten::add", "aten::cos"))
)
MANY = Culprit(
    keep=(0, 1, 2, 3),
    nodes=NODES,
    artifact="probes/k/extracted.pt",
    inputs="probes/k/inputs",
    minimal=False,
    fails=3,
    runs=4,
    old="completes, 1.9 ms a call at most",
    new="hangs in call 1 of example",
)
ONE = replace(MANY, keep=(2,), nodes=(replace(NODES[2], inputs=("float32[13]", "1")),), minimal=True, place=(7, 0))
FOUND = Reduction(
    symptom=Symptom.HANG,
    nodes=91,
    shows=True,
    culprits=(MANY,),
    rest_passes=True,
    tests=30,
    runs=34,
    untestable=2,
    waited_s=3.0,
    ended="the budget is spent",
)


def text(reduction: Reduction, answer: BisectAnswer = BisectAnswer.EXECUTOR) -> str:
    found = Bisection(
        model="m",
        old="torch 2.1.2",
        new="torch 2.6.0",
        answer=answer,
        divergence=Divergence(input_set="example", call=1, nodes=92),
        reduction=reduction,
    )
    return render_bisection(found, directory="reports/r", width=80)


def test_several_nodes_are_counted_and_told_by_the_first_and_the_last() -> None:
    assert (
        text(FOUND)
        == """\
m, torch 2.1.2 -> torch 2.6.0: the executor, no operator
  searched    example call 1: 92 nodes, 1 + 1 probes
              made node by node the call agrees: what differs is how the release
              optimises it
  culprit     4 nodes: aten::cos 2, aten::sin, aten::add
  module      encoder.waves
  source      waves.py:0 to waves.py:3
  code        x = f(0)
  code        x = f(3)
              fewer of them may do: not all were tried one by one
  alone       torch 2.1.2: completes, 1.9 ms a call at most
              torch 2.6.0: hangs in call 1 of example, 3 of 4 times
  archive     reports/r/probes/k/extracted.pt
  reduced     to 4 of 91 nodes: 30 tests of parts, 34 runs in the new release
              ended early: the budget is spent
              a call is said to hang after 3 s
              2 parts could not be tested
              without it the rest does not show it
"""
    )


def test_a_single_node_is_reported_with_its_inputs_and_its_block() -> None:
    said = text(replace(FOUND, culprits=(ONE,)), BisectAnswer.NODES)
    assert "a part of its program" in said
    assert "  culprit     aten::add\n" in said
    assert "  inputs      float32[13], 1\n" in said
    assert "within a block, at 7.0" in said


def test_what_is_proven_did_not_end_early_only_the_search_of_the_rest_did() -> None:
    said = text(replace(FOUND, culprits=(ONE,)), BisectAnswer.NODES)
    assert "ended early" not in said
    assert "what is left without it was not reduced further: the budget is spent" in " ".join(said.split())
    assert "ended early: the budget is spent" in text(replace(FOUND, culprits=(ONE, MANY)), BisectAnswer.NODES)


def test_a_slower_part_is_reported_with_its_ratio() -> None:
    slow = replace(ONE, old="1 ms a call", new="3 ms a call", steady=ratio(3.0), runs=1, fails=1)
    said = text(replace(FOUND, symptom=Symptom.LATENCY, culprits=(slow,)), BisectAnswer.NODES)
    assert "torch 2.6.0: 3 ms a call (+200 % [+199, +201])\n" in said
    assert "said to hang" not in said


def test_a_whole_that_does_not_show_it_says_why() -> None:
    said = text(replace(FOUND, shows=False, culprits=(), notes=("it takes the module around them",), ended=""))
    assert "  reduced     no: 91 nodes to choose from\n" in said
    assert "  note        it takes the module around them\n" in said


def test_the_rest_is_reported_where_it_shows_it_too() -> None:
    said = text(replace(FOUND, culprits=(ONE, MANY), rest_passes=False))
    assert "without them the rest still shows it, or cannot be tested" in said
