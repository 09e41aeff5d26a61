"""Which rewrites are tried, and in which order."""

from harness.search.rewrite.order import CUT, FENCE, attempts, edits_of_refused
from harness.core.diagnosis import Place, RefusedNode, TracedNode


def node(*place: int, kind: str = "aten::gelu") -> TracedNode:
    return TracedNode(place=place, address=place, kind=kind)


def refused(*address: int, branch: int | None = None) -> RefusedNode:
    return RefusedNode(method="forward", address=address, operator="aten::gone", schema="", source="", branch=branch)


def fences(count: int) -> list[tuple[str, Place]]:
    return [(FENCE, (label,)) for label in range(count)]


def test_each_rule_of_an_operator_is_an_attempt_of_its_own() -> None:
    fits = [("one", (3,)), ("other", (3,)), ("elsewhere", (4,)), (FENCE, (3,))]
    assert attempts([[node(3)]], fits) == ((("one", (3,)),), (("other", (3,)),))


def test_every_group_is_rewritten_at_once() -> None:
    fits = [("one", (3,)), ("mine", (5,)), ("other", (5,))]
    assert attempts([[node(3)], [node(5)]], fits) == (
        (("one", (3,)), ("mine", (5,))),
        (("one", (3,)), ("other", (5,))),
    )


def test_two_groups_with_one_node_in_common_rewrite_it_once() -> None:
    group = [node(3), node(5)]
    fits = [("one", (3,)), ("one", (5,))]
    assert attempts([group, [node(5)]], fits) == ((("one", (3,)), ("one", (5,))),)


def test_a_group_without_a_rule_leaves_the_others() -> None:
    assert attempts([[node(3)], [node(5)]], [("mine", (5,))]) == ((("mine", (5,)),),)
    assert attempts([[node(3)]], []) == ()


def test_a_long_group_is_fenced_first_all_over_its_block_and_ever_closer() -> None:
    group = [node(label) for label in range(8)]
    found = attempts([group], [*fences(20), ("rule", (2,)), (FENCE, (1, 0, 4))])
    assert [[address for _, address in edits] for edits in found] == [
        [(label,) for label in range(1, 20, 2)],
        [(label,) for label in range(20)],
        [(2,)],
    ]
    assert {rule for rule, _ in found[0]} == {FENCE}


def test_a_few_nodes_together_are_rewritten_before_they_are_fenced() -> None:
    found = attempts([[node(0), node(1)]], [*fences(2), ("rule", (0,))])
    assert found == ((("rule", (0,)),), ((FENCE, (0,)), (FENCE, (1,))))


def test_an_equivalent_is_preferred_to_a_cut() -> None:
    nodes = [refused(4, 0, 1, branch=1), refused(6)]
    fits = [("one", (4, 0, 1)), ("two", (4, 0, 1)), ("one", (6,))]
    assert edits_of_refused(nodes, fits, cut_first=False) == (("one", (4, 0, 1)), ("one", (6,)))
    assert edits_of_refused(nodes, fits, cut_first=True) == ((CUT, (4, 0, 1)), ("one", (6,)))


def test_without_an_equivalent_the_branch_is_cut_once_and_outside_of_branches_nothing_is_done() -> None:
    nodes = [refused(4, 0, 1, branch=1), refused(4, 0, 3, branch=1), refused(6)]
    assert edits_of_refused(nodes, [], cut_first=False) == ((CUT, (4, 0, 3)),)


def test_what_goes_with_a_cut_branch_is_not_rewritten() -> None:
    nodes = [refused(4, 0, 1, branch=1), refused(4, 0, 2, 1, 0, branch=1), refused(4, 0, 5, 0, 7, branch=2)]
    fits = [("one", (4, 0, 2, 1, 0))]
    assert edits_of_refused(nodes, fits, cut_first=False) == ((CUT, (4, 0, 5, 0, 7)),)


def test_the_branch_of_a_node_is_found_across_a_loop() -> None:
    assert refused(4, 0, 5, 0, 7, branch=2).branch_address == (4, 0)
    assert refused(4, 0, 5, branch=1).branch_address == (4, 0)
    assert refused(4).branch_address is None
