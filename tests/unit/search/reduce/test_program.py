"""A program is reduced to what shows the symptom: planted in parts, told by a fake oracle; both ends are verified."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.verdict.bisection import CallInQuestion
from harness.search.bisect.traces import Trace
from harness.search.reduce import program
from harness.core.diagnosis import Place, Reduction, Said, SearchAnswer, Symptom, TracedNode
from harness.core.measurement import RatioEstimate
from harness.core.models import Artifact
from harness.core.probe import ExtractOrder
from tests.unit.builders.stages import Runner, artifact, effects, facts_of, probed, result

ASKED = CallInQuestion(input_set="example", call=1)
CONSTANT = "prim::Constant"
Shows = Callable[[Place, frozenset[int]], bool]


def trace_of(kinds: dict[Place, str]) -> Trace:
    return Trace(nodes={place: TracedNode(place=place, address=place, kind=kind) for place, kind in kinds.items()})


def flat(count: int) -> dict[Place, str]:
    return {(index,): CONSTANT if index % 4 == 0 else "aten::cos" for index in range(count)}


@dataclass
class Planted:
    """An oracle that knows which nodes make the symptom; ``every`` is after how many runs of one part it shows."""

    shows: Shows
    prepared: str = ""
    every: int = 1
    outcome: Callable[[Place], str] = lambda _place: "hang"
    sides: Any = field(default_factory=lambda: SimpleNamespace(wait_s=3.0))
    asked: list[tuple[Place, frozenset[int]]] = field(default_factory=list)
    parts: dict[str, tuple[Place, frozenset[int]]] = field(default_factory=dict)

    def prepare(self, part: Artifact) -> str:
        return self.prepared

    def ask(self, part: Artifact, repeat: int) -> SearchAnswer:
        place, keep = self.parts[part.digest]
        self.asked.append((place, keep))
        if self.shows(place, keep) and repeat % self.every == self.every - 1:
            return SearchAnswer(said=Said.FAILS, outcome=self.outcome(place))
        return SearchAnswer(said=Said.PASSES)

    def words(self, part: Artifact) -> tuple[str, str, RatioEstimate | None]:
        return "completes", "hangs", None


def reduced(
    monkeypatch: pytest.MonkeyPatch, kinds: dict[Place, str], oracle: Planted, *, unextractable: Sequence[int] = ()
) -> Reduction:
    def extract(model: str, order: ExtractOrder, facts: Any, world: Any) -> Artifact | str:
        assert list(order.keep) == sorted(order.keep)
        if set(order.keep) & set(unextractable):
            return "aten::wait takes Future(Tensor)"
        part = artifact(model, digest=repr(order))
        oracle.parts[part.digest] = (order.place, frozenset(order.keep))
        return part

    monkeypatch.setattr(program, "extract", extract)
    monkeypatch.setattr(program, "read_trace", lambda _directory: trace_of(kinds))
    monkeypatch.setattr(program, "trace_request", lambda *_arguments: "trace")
    world = effects(Runner(lambda _request: probed(result(), side="old")))
    return program.reduce_program("m", Symptom.HANG, ASKED, facts_of("m"), world, oracle=oracle)


def test_a_single_node_among_many_is_found_in_few_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Planted(lambda place, keep: 601 in keep)
    found = reduced(monkeypatch, flat(1000), oracle)
    (culprit,) = found.culprits
    assert (culprit.place, culprit.keep, culprit.minimal) == ((), (601,), True)
    assert found.shows and found.rest_passes
    assert found.nodes == 750
    assert found.tests <= 10 + 4
    assert not any(0 in keep for _, keep in oracle.asked), "constants come along by themselves"


def test_a_search_without_time_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Planted(lambda place, keep: True)
    world = replace(effects(Runner(lambda _request: probed(result(), side="old"))), end_ns=0)
    found = program.reduce_program("m", Symptom.HANG, ASKED, facts_of("m"), world, oracle=oracle)
    assert found.notes == ("there was no time left to ask which nodes show it",)
    assert oracle.asked == []


def test_nodes_that_need_each_other_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reduced(monkeypatch, flat(64), Planted(lambda place, keep: {5, 42} <= keep))
    assert [culprit.keep for culprit in found.culprits] == [(5, 42)]


def test_the_search_goes_on_within_the_block_of_a_single_node(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[Place, str] = {(0,): "aten::linear", (1,): "prim::Loop", (2,): "aten::relu"}
    kinds |= {(1, turn, index): "aten::cos" for turn in range(3) for index in range(8)}
    later = Planted(lambda place, keep: 1 in keep if place == () else place == (1, 2) and 5 in keep)
    (culprit,) = reduced(monkeypatch, kinds, later).culprits
    assert (culprit.place, culprit.keep) == ((1, 2), (5,)), "not in the first turn, so in the last"

    whole = Planted(lambda place, keep: place == () and 1 in keep)
    (culprit,) = reduced(monkeypatch, kinds, whole).culprits
    assert (culprit.place, culprit.keep) == ((), (1,)), "it shows in no turn alone, so the loop is named"


def test_a_block_that_fails_in_another_way_than_its_node_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[Place, str] = {(0,): "aten::linear", (1,): "prim::Loop", (2,): "aten::relu"}
    kinds |= {(1, 0, index): "aten::cos" for index in range(4)}
    other = Planted(lambda place, keep: 1 in keep, outcome=lambda place: "inner error" if place else "outer error")
    (culprit,) = reduced(monkeypatch, kinds, other).culprits
    assert (culprit.place, culprit.keep) == ((), (1,))


def test_a_symptom_that_shows_now_and_then_is_asked_for_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Planted(lambda place, keep: 9 in keep, every=3)
    found = reduced(monkeypatch, flat(32), oracle)
    (culprit,) = found.culprits
    assert culprit.keep == (9,)
    assert (culprit.fails, culprit.runs) == (1, 3)
    assert found.runs > 3 * found.tests


def test_a_node_by_itself_is_asked_most_often_lest_a_neighbour_is_blamed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class RarelyAlone(Planted):
        def ask(self, part: Artifact, repeat: int) -> SearchAnswer:
            self.every = 15 if len(self.parts[part.digest][1]) == 1 else 3
            return super().ask(part, repeat)

    (culprit,) = reduced(monkeypatch, flat(32), RarelyAlone(lambda place, keep: 9 in keep)).culprits
    assert (culprit.keep, culprit.fails, culprit.runs) == ((9,), 1, 15)


def test_a_healthy_whole_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reduced(monkeypatch, flat(16), Planted(lambda place, keep: False))
    assert not found.shows and not found.culprits and found.tests == 0
    assert found.notes == ("extracted out, its nodes did not show it in 10 runs: it takes the module around them",)


def test_nothing_is_asked_where_the_old_release_is_not_well_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Planted(lambda place, keep: True, prepared="the old release hangs")
    found = reduced(monkeypatch, flat(16), oracle)
    assert found.notes == ("extracted out, the old release hangs",) and not oracle.asked


def test_what_cannot_be_extracted_is_neither_bad_nor_good(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reduced(monkeypatch, flat(16), Planted(lambda place, keep: True), unextractable=range(16))
    assert not found.shows
    assert found.notes == ("its nodes could not be extracted out of it: aten::wait takes Future(Tensor)",)
