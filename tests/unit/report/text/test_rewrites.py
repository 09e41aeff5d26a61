"""What a reader sees of the rewrites that were tried."""

from dataclasses import replace

from harness.core.diagnosis import Rewritten, TracedNode
from harness.report.text.rewrites import rewrite_lines
from tests.unit.builders.reports import ratio

NODE = TracedNode(place=(4,), kind="aten::softshrink", source="model.py:12")
CURED = Rewritten(
    rule="softshrink",
    what="softshrink as comparisons",
    needs="NaN is to give 0",
    nodes=(NODE,),
    artifact="rewrites/softshrink-12345678/m.pt",
    loads_in_old=True,
    cures=True,
    repeats=2,
    steady=ratio(1.125),
)


def lines(*rewrites: Rewritten) -> list[tuple[str, str]]:
    return list(rewrite_lines(rewrites, old="torch 2.1.2", new="torch 2.6.0", directory="reports/r"))


def test_a_cure_is_reported_with_its_file_its_price_and_what_it_needs() -> None:
    assert lines(CURED) == [
        ("rewrite", "softshrink: cures: softshrink as comparisons"),
        ("", "at aten::softshrink (model.py:12)"),
        ("patched", "reports/r/rewrites/softshrink-12345678/m.pt"),
        ("", "torch 2.1.2: loads it and answers as before"),
        ("", "torch 2.6.0: passes in 2 runs; steady latency +12.5 % [+11.3, +13.7] against torch 2.1.2"),
        ("", "needs: NaN is to give 0"),
    ]


def test_what_does_not_cure_offers_no_file_and_says_why() -> None:
    failed = replace(CURED, cures=False, artifact="", note="still off")
    assert lines(failed) == [
        ("rewrite", "softshrink: does not cure: softshrink as comparisons"),
        ("", "at aten::softshrink (model.py:12)"),
        ("", "still off"),
    ]


def test_many_nodes_are_counted_and_a_time_that_is_not_known_is_left_out() -> None:
    nodes = (*[replace(NODE, kind="aten::cos")] * 3, NODE)
    told = lines(replace(CURED, nodes=nodes, steady=None, needs=""))
    assert told[1] == ("", "at 4 nodes: aten::cos 3, aten::softshrink")
    assert told[-1] == ("", "torch 2.6.0: passes in 2 runs")


def test_an_operator_without_a_rule_is_named() -> None:
    nothing = Rewritten(rule="", what="no rule rewrites aten::multinomial", nodes=(NODE,))
    assert lines(nothing) == [("rewrite", "no rule rewrites aten::multinomial")]


def test_of_several_cures_the_dearer_ones_are_reported_by_their_file_and_time() -> None:
    dearer = replace(CURED, rule="fence", artifact="rewrites/fence-1/m.pt", steady=ratio(3.0), needs="")
    assert lines(CURED, dearer)[6:] == [
        ("rewrite", "fence: cures: softshrink as comparisons"),
        ("", "at aten::softshrink (model.py:12)"),
        ("patched", "reports/r/rewrites/fence-1/m.pt"),
        ("", "steady latency +200 % [+199, +201] against torch 2.1.2"),
    ]


def test_of_one_rule_only_the_best_is_reported() -> None:
    dear = replace(CURED, artifact="rewrites/softshrink-2/m.pt", steady=ratio(15.0))
    in_vain = replace(CURED, cures=False, artifact="", note="still off", steady=None)
    other = replace(in_vain, rule="fence")
    assert lines(in_vain, dear, CURED, other) == [*lines(CURED), *lines(other)]
