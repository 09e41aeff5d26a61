"""Who does what part on a cluster: nodes come and go, fail and are slow, and everything is done or given up, once."""

import random
from dataclasses import dataclass, field

import pytest

from harness.core.fleet import Examination, FleetUnit
from harness.apps.fleet.engines.assignment import LOSSES, TRIES, Assignment, Part, parts_of
from harness.apps.fleet.engines.on_ray import PARTS_A_NODE, parts_for

RUN_S = 10.0


def unit(number: int) -> FleetUnit:
    key = f"{number:064}"
    return FleetUnit(
        key=key, artifact=key, artifacts=(key,), examination=Examination.FULL, profile="", risk=3, cost_s=5.0
    )


UNITS = tuple(unit(number) for number in range(20))


def work(parts: int = 4) -> Assignment:
    return Assignment(parts_of(UNITS, parts), RUN_S)


def keys(part: Part) -> set[str]:
    return {one.key for one in part.units}


def taken(found: Assignment, node: str, now_s: float = 0.0, nodes: tuple[str, ...] = ("a", "b")) -> Part:
    part = found.take(node, nodes, now_s)
    assert part is not None
    return part


def test_every_unit_is_in_one_part_and_no_part_is_empty() -> None:
    parts = parts_of(UNITS[:3], 8)
    assert [len(part.units) for part in parts] == [1, 1, 1]
    assert set().union(*map(keys, parts_of(UNITS, 3))) == {one.key for one in UNITS}


def test_the_part_of_a_lost_node_goes_to_another_and_keeps_what_was_made() -> None:
    found = work(2)
    first = taken(found, "a")
    second = taken(found, "b")
    found.ended(second.number, keys(second), 60.0, ("a",))
    assert found.lost(first.number)
    again = taken(found, "b")
    assert keys(again) == keys(first) and again.losses == 1
    found.ended(again.number, keys(again), 120.0, ("b",))
    assert found.is_done and found.given_up == []


def test_a_part_that_ends_every_node_is_given_up() -> None:
    found = Assignment(parts_of(UNITS, 1), RUN_S)
    for _ in range(LOSSES - 1):
        assert found.lost(taken(found, "a").number)
    assert not found.lost(taken(found, "a").number)
    assert found.is_done and len(found.given_up) == len(UNITS)


def test_what_a_node_left_without_a_result_is_tried_on_another_one_and_then_given_up() -> None:
    found = Assignment(parts_of(UNITS, 1), RUN_S)
    first = taken(found, "a")
    missing = UNITS[3].key
    found.ended(first.number, keys(first) - {missing}, 60.0, ("a", "b"))
    assert found.take("a", ("a", "b"), 60.0) is None  # it waits for the other one
    again = taken(found, "b", 60.0)
    assert keys(again) == {missing} and TRIES == 2
    found.ended(again.number, (), 80.0, ("a", "b"))
    assert found.is_done and [one.key for one in found.given_up] == [missing]


def test_on_the_only_node_a_part_is_not_tried_again() -> None:
    """The shard itself has tried twice."""
    found = Assignment(parts_of(UNITS, 1), RUN_S)
    found.ended(taken(found, "a", nodes=("a",)).number, (), 60.0, ("a",))
    assert found.is_done and len(found.given_up) == len(UNITS)


def test_the_slowest_part_is_split_beside_its_node_and_whoever_is_first_ends_the_others() -> None:
    found = work(2)
    slow, quick = taken(found, "a"), taken(found, "b")
    found.ended(quick.number, keys(quick), 60.0, ("a", "b"))
    assert found.take("b", ("a", "b"), 61.0) is None  # as long as the other took, and a little: no reason yet
    half = taken(found, "b", 200.0)
    other = taken(found, "c", 200.0)
    assert keys(half) | keys(other) == keys(slow) and not keys(half) & keys(other)
    assert found.take("d", ("a", "b", "c", "d"), 900.0) is None  # halves are not split again
    assert found.ended(half.number, keys(half), 230.0, ("a", "b", "c")) == []
    assert found.ended(other.number, keys(other), 231.0, ("a", "b", "c")) == [slow.number]
    found.cancelled(slow.number)
    assert found.is_done and found.given_up == []


def test_what_failed_at_once_makes_nobody_slow() -> None:
    found = work(3)
    failed, slow = taken(found, "a"), taken(found, "b")
    found.ended(failed.number, (), 0.1, ("a", "b"))
    assert taken(found, "a", 1.0).number != slow.number  # the third part
    assert found.take("c", ("a", "b", "c"), 30.0) is not None  # what failed, elsewhere
    assert found.take("d", ("a", "b", "c", "d"), 40.0) is None  # and nothing is split


def test_what_a_slow_part_leaves_is_not_given_out_again_while_its_halves_run() -> None:
    found = work(2)
    slow, quick = taken(found, "a"), taken(found, "b")
    found.ended(quick.number, keys(quick), 60.0, ("a", "b"))
    half, other = taken(found, "b", 200.0), taken(found, "c", 200.0)
    found.ended(slow.number, (), 210.0, ("a", "b", "c"))
    assert found.waiting == [] and set(found.running) == {half.number, other.number}


def test_a_slow_part_that_ends_after_all_takes_its_halves_back() -> None:
    found = work(2)
    slow, quick = taken(found, "a"), taken(found, "b")
    found.ended(quick.number, keys(quick), 60.0, ("a", "b"))
    half = taken(found, "b", 200.0)
    assert found.ended(slow.number, keys(slow), 201.0, ("a", "b")) == [half.number]
    assert found.waiting == []  # the other half has not begun and never will


@dataclass
class Cluster:
    """Nodes that are lost and come back, fail and are slow, by chance."""

    chance: random.Random
    nodes: list[str] = field(default_factory=lambda: ["a", "b", "c"])
    at_work: dict[int, tuple[Part, str]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    def step(self, found: Assignment, now_s: float) -> None:
        busy = {node for _, node in self.at_work.values()}
        for node in self.nodes:
            part = found.take(node, self.nodes, now_s) if node not in busy else None
            if part is not None:
                self.at_work[part.number] = (part, node)
        for number, (part, node) in list(self.at_work.items()):
            if number not in self.at_work:
                continue
            drawn = self.chance.random()
            if drawn < 0.05 and len(self.nodes) > 1:
                self.nodes.remove(node)
            if node not in self.nodes:
                del self.at_work[number]
                found.lost(number)
            elif drawn < 0.4:
                left = self.chance.sample(sorted(keys(part)), self.chance.choice((0, 0, 0, 1)))
                made = keys(part) - {*left}
                self.made |= made
                del self.at_work[number]
                for idle in found.ended(number, made, now_s, self.nodes):
                    del self.at_work[idle]
                    found.cancelled(idle)
        if self.chance.random() < 0.1 and len(self.nodes) < 4:
            self.nodes.append(f"n{now_s:.0f}")


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_each_unit_has_a_result_or_is_given_up(seed: int) -> None:
    cluster, found = Cluster(random.Random(seed)), work(6)
    for turn in range(2000):
        if found.is_done:
            break
        cluster.step(found, 20.0 * turn)
    assert found.is_done and not cluster.at_work
    given_up = [one.key for one in found.given_up if one.key not in cluster.made]
    assert cluster.made.isdisjoint(given_up) and len(given_up) == len(set(given_up))
    assert cluster.made | {*given_up} == {one.key for one in UNITS}


def test_a_node_has_several_parts_unless_these_were_shorter_than_what_a_run_costs() -> None:
    assert parts_for(UNITS, 0.1, 2) == PARTS_A_NODE * 2
    assert parts_for(UNITS, 60.0, 2) == 2
    assert parts_for(UNITS[:1], 60.0, 4) == 1
