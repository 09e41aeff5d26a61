"""Which searches follow which symptom, and what each is handed by the one before."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders.verdicts import mitigation
from harness.search.bisect import cell as bisect_cell
from harness.search.bisect import program
from harness.search.bisect.divergence import Diverged
from harness.search.bisect.traces import Trace
from harness.search.mitigation.search import MitigationSearch
from harness.search.reproduce import program as reproduce
from harness.search.reproduce.folder import Concurrency
from harness.core.diagnosis import (
    Attribution,
    BisectAnswer,
    Bisection,
    Culprit,
    Divergence,
    NodeFault,
    Reduction,
    Reproducer,
    Rewritten,
    Symptom,
    Tally,
    TracedNode,
)
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure
from harness.core.verdict import CellVerdict, Finding, Mitigation
from harness.probing.facts import Decided
from harness.serving.scenarios import INITIALIZATIONS
from tests.unit.builders.stages import effects, facts_of, initialized, probed, result

NODE = TracedNode(place=(4,), kind="aten::cosh")
CULPRIT = Culprit(keep=(1, 2), nodes=(NODE, replace(NODE, place=(5,))), artifact="a.pt", inputs="inputs")
HANGS = result(outcome=Outcome.HANG, phase="call", input_set="example", call=1)
FOUND = Divergence(input_set="example", call=1, nodes=9, probes=(1, 1))


class Searches:
    """Stands in for every search; ``asked`` are those that were made, with what they were asked about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, divergence: Divergence = FOUND) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.culprits: tuple[Culprit, ...] = (CULPRIT,)
        self.divergence = divergence
        self.concurrencies: list[Concurrency] = []
        self.shown_in = ""
        monkeypatch.setattr(program, "diverge", self.diverge)
        monkeypatch.setattr(program, "reduce_program", self.reduce)
        monkeypatch.setattr(program, "search", self.mitigation)
        monkeypatch.setattr(program, "rewrite", self.rewrite)
        monkeypatch.setattr(program, "reproducers", lambda *_: (Reproducer(operator="one", folder="1"),))
        monkeypatch.setattr(program, "reproduce_program", self.reproduced)
        monkeypatch.setattr(program, "reproduce_whole", self.reproduced_whole)
        monkeypatch.setattr(reproduce, "reproduce_program", self.brought_up)
        monkeypatch.setattr(reproduce, "reproduce_whole", self.brought_up)
        monkeypatch.setattr(bisect_cell, "refused", self.refused)
        monkeypatch.setattr(bisect_cell, "with_reproducer", lambda found, *_, **__: found)

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.asked]

    def diverge(self, model: str, asked: Any, *_: Any) -> Diverged:
        self.asked.append(("diverge", asked.input_set, asked.call))
        return Diverged(divergence=self.divergence, old=Trace())

    def reduce(self, model: str, symptom: Symptom, asked: Any, *_: Any, **more: Any) -> Reduction:
        self.asked.append(("reduce", symptom, asked.call))
        shows = bool(self.culprits)
        notes = () if shows else ("it takes the module around them",)
        return Reduction(symptom=symptom, nodes=9, shows=shows, culprits=self.culprits, notes=notes)

    def mitigation(
        self, model: str, *_: Any, everything: bool, scenario: str, seen: tuple[int, int]
    ) -> MitigationSearch:
        assert not everything
        self.asked.append(("mitigation", scenario))
        self.seen = seen
        return MitigationSearch(mitigations=(mitigation("fuser off", mitigates=True),))

    def rewrite(self, model: str, groups: Any, *_: Any, repeats: int) -> tuple[Rewritten, ...]:
        self.asked.append(("rewrite", [len(group) for group in groups]))
        self.repeats = repeats
        return (Rewritten(rule="fence", what="a clone"),)

    def reproduced(self, culprit: Culprit, symptom: Symptom, *_: Any, index: int, **more: Any) -> Reproducer:
        self.asked.append(("reproduce", index, [tried.name for tried in more["mitigations"]]))
        return Reproducer(operator="part", folder="1")

    def reproduced_whole(self, model: str, *_: Any, why: str, **_more: Any) -> Reproducer:
        self.asked.append(("reproduce whole", why))
        return Reproducer(operator="the whole artifact", folder="1")

    def brought_up(self, *_: Any, concurrency: Concurrency, **_more: Any) -> Reproducer:
        self.concurrencies.append(concurrency)
        return Reproducer(operator="part", folder=self.shown_in)

    def refused(self, found: Bisection, *_: Any, **wanted: bool) -> Bisection:
        self.asked.append(("refused", wanted))
        return replace(found, answer=BisectAnswer.LOADING)


def cell(status: Status, scenario: str = "alone") -> CellVerdict:
    findings = (Finding(kind="hang", message="hangs"),) if status is Status.FAIL else ()
    return CellVerdict(cell=f"m/{scenario}", model="m", scenario=scenario, status=status, findings=findings)


def facts(*cells: CellVerdict, alone: Any = HANGS) -> Decided:
    return replace(facts_of("m"), verdicts={"m": cells}, alone={"m": probed(alone)})


def test_a_model_that_passes_has_nothing_to_find_and_says_what_was_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    found = bisect_cell.bisect("m", facts(cell(Status.PASS)), effects())
    assert found.answer is BisectAnswer.NOTHING and searches.asked == []
    assert found.notes == ("it passes alone", "its time was not compared, --latency quick does that")
    both = facts(cell(Status.SAME_FAIL), cell(Status.PASS, "latency"))
    assert bisect_cell.bisect("m", both, effects()).notes == ("it passes alone",)
    assert bisect_cell.bisect("m", facts(cell(Status.INCONCLUSIVE)), effects()).answer is BisectAnswer.UNDECIDED


def test_what_only_the_executor_does_is_reduced_mitigated_rewritten_and_reproduced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = Searches(monkeypatch)
    found = bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects())
    assert searches.asked == [
        ("diverge", "example", 1),
        ("reduce", Symptom.HANG, 1),
        ("mitigation", "alone"),
        ("rewrite", [2]),
        ("reproduce", 0, ["fuser off"]),
    ]
    assert found.answer is BisectAnswer.EXECUTOR
    assert found.reduction is not None and found.mitigations and found.rewrites and found.reproducers


def test_without_a_part_that_shows_it_the_whole_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    searches.culprits = ()
    found = bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects())
    assert searches.names == ["diverge", "reduce", "mitigation", "reproduce whole"]
    assert searches.asked[-1] == ("reproduce whole", "it takes the module around them")
    assert found.answer is BisectAnswer.EXECUTOR


def test_a_guilty_operator_is_not_reduced_further(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = (NodeFault(node=NODE, what=("off",)),)
    searches = Searches(monkeypatch, replace(FOUND, shows=True, culprits=faults))
    found = bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects())
    assert found.answer is BisectAnswer.OPERATOR and searches.names == ["diverge", "mitigation", "rewrite"]
    assert [made.operator for made in found.reproducers] == ["one"]


def test_a_difference_that_the_trace_shows_and_no_node_explains_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    unexplained = replace(FOUND, shows=True, confirmed=None)
    Searches(monkeypatch, unexplained)
    assert bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects()).answer is BisectAnswer.NODES
    explained = Searches(monkeypatch, replace(unexplained, confirmed=True))
    assert bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects()).answer is BisectAnswer.UNDECIDED
    assert explained.names == ["diverge", "mitigation"]
    untraced = Searches(monkeypatch, replace(FOUND, probes=(1, 0), notes=("the old release could not make it",)))
    assert bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects()).answer is BisectAnswer.UNDECIDED
    assert untraced.names == ["diverge", "mitigation"]


def test_what_showed_now_and_then_must_stay_away_as_often_as_its_rate_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    searches.culprits = (replace(CULPRIT, fails=3, runs=3), replace(CULPRIT, fails=3, runs=10))
    assert bisect_cell.bisect("m", facts(cell(Status.FAIL)), effects()).answer is BisectAnswer.NODES
    assert (searches.seen, searches.repeats) == ((3, 10), 11)


def test_what_is_slower_is_reduced_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    slow = facts(cell(Status.PASS), cell(Status.FAIL, "latency"), alone=result())
    found = bisect_cell.bisect("m", slow, effects())
    assert searches.asked[:2] == [("reduce", Symptom.LATENCY, 0), ("mitigation", "latency")]
    assert found.answer is BisectAnswer.NODES and found.divergence is None
    waived = facts(cell(Status.XFAIL), cell(Status.FAIL, "latency"), alone=result())
    bisect_cell.bisect("m", waived, effects(), scenario="latency")
    assert searches.asked[4] == ("reduce", Symptom.LATENCY, 0)


def test_a_model_that_never_got_to_the_new_release_says_that_there_is_nothing_to_reproduce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = Searches(monkeypatch)
    found = bisect_cell.bisect("m", replace(facts(cell(Status.FAIL)), alone={}), effects())
    assert found.answer is BisectAnswer.UNDECIDED and searches.asked == []
    assert "no reproducer to make" in found.notes[0]


def test_only_what_is_wanted_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    red = facts(cell(Status.FAIL))
    bisect_cell.bisect("m", red, effects(), mitigations=False, rewrites=False, reproduce=False)
    assert searches.names == ["diverge", "reduce"]


def test_a_model_that_does_not_load_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    failure = Failure(type="RuntimeError", message="Unknown builtin op", phase="load")
    broken = facts(cell(Status.FAIL), alone=result(outcome=Outcome.LOAD_ERROR, failure=failure))
    assert bisect_cell.bisect("m", broken, effects(), rewrites=False).answer is BisectAnswer.LOADING
    assert searches.asked == [("refused", {"reproduce": True, "rewrites": False})]


NEEDS = Attribution(
    models=("a", "m"), threads=2, reproduced=True, minimal_models=("m",), minimal_threads=2, one_model_suffices=True
)
CONCURRENT = CellVerdict(
    cell="m/concurrent",
    model="m",
    scenario="concurrent",
    status=Status.FAIL,
    findings=(Finding(kind="hang", message="hangs beside others"),),
)


def beside_others(**changes: Any) -> Decided:
    red = facts(cell(Status.PASS), CONCURRENT, alone=result())
    came = initialized(Outcome.HANG, Outcome.COMPLETED, "m")
    known = {"initialized": {("m", "concurrent"): came}, "attributions": {("m", "concurrent"): NEEDS}}
    return replace(red, **{**known, **changes})


def test_what_fails_only_beside_others_is_reduced_as_it_is_brought_up(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    found = bisect_cell.bisect("m", beside_others(), effects(), scenario="concurrent")
    assert searches.asked == [("reduce", Symptom.HANG, 0), ("mitigation", "concurrent")], "the model alone is well"
    assert found.answer is BisectAnswer.NODES and found.reduction is not None and not found.reproducers
    assert found.symptom == ("hangs beside others",)
    assert "m fails with no other model beside it" in found.notes[0]
    assert found.notes[-1] == "no reproducer: a Python program with 2 threads did not show it"
    assert [(concurrency.threads, concurrency.shared, concurrency.pools) for concurrency in searches.concurrencies] == [
        (2, False, None)
    ]


@pytest.mark.parametrize("nodes", [(CULPRIT,), ()])
def test_a_program_in_threads_that_shows_it_is_the_reproducer(
    monkeypatch: pytest.MonkeyPatch, nodes: tuple[Culprit, ...]
) -> None:
    searches = Searches(monkeypatch)
    searches.culprits, searches.shown_in = nodes, "1"
    found = bisect_cell.bisect("m", beside_others(), effects(), scenario="concurrent")
    assert [made.folder for made in found.reproducers] == ["1"]
    assert not any("no reproducer" in note for note in found.notes)
    without = bisect_cell.bisect("m", beside_others(), effects(), scenario="concurrent", reproduce=False)
    assert not without.reproducers and len(searches.concurrencies) == 1


@pytest.mark.parametrize(
    ("scenario", "models", "expected"),
    [
        ("concurrent", ("a", "m"), "it shows beside a only"),
        ("inter_op", ("m",), "only C++ can make calls in the inter-op pool"),
        ("processes", ("m",), "N processes at once"),
        ("small_pools", ("m",), ""),
        ("shared", ("m",), ""),
    ],
)
def test_where_one_program_cannot_do_it_none_is_tried(scenario: str, models: tuple[str, ...], expected: str) -> None:
    why = reproduce.no_way("m", INITIALIZATIONS[scenario], replace(NEEDS, minimal_models=models))
    assert why.startswith(expected) and bool(why) == bool(expected)


def test_the_program_is_brought_up_with_the_pools_and_the_module_of_the_scenario() -> None:
    came = initialized(Outcome.HANG, Outcome.COMPLETED, "m")
    known = replace(facts(), initialized={("m", "shared"): came, ("m", "small_pools"): came})
    shared = reproduce.concurrency_of("m", INITIALIZATIONS["shared"], NEEDS, known)
    assert (shared.threads, shared.shared, shared.pools, shared.runs) == (2, True, None, 5)
    assert shared.words.endswith(", shared module in 2 threads")
    alone = replace(NEEDS, minimal_threads=1)
    small = reproduce.concurrency_of("m", INITIALIZATIONS["small_pools"], alone, known)
    assert (small.threads, small.shared, small.pools, small.runs) == (1, False, (1, 1), 1)


def test_without_knowing_what_it_takes_to_fail_no_node_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch)
    gone = {("m", "concurrent"): replace(NEEDS, reproduced=False, whole=Tally(passes=5))}
    found = bisect_cell.bisect("m", beside_others(attributions=gone), effects(), scenario="concurrent")
    assert found.answer is BisectAnswer.UNDECIDED and searches.names == ["mitigation"]
    assert "Did not fail again in 5 repeats" in found.notes[0]
    race = replace(CONCURRENT, findings=(Finding(kind="race", message="answers otherwise"),))
    other = bisect_cell.bisect(
        "m", beside_others(verdicts={"m": (cell(Status.PASS), race)}), effects(), scenario="concurrent"
    )
    assert "race: nodes are looked for where it hangs, crashes or raises" in other.notes[0]


def test_what_passes_now_says_how_often(monkeypatch: pytest.MonkeyPatch) -> None:
    Searches(monkeypatch)
    found = bisect_cell.bisect("m", facts(cell(Status.PASS)), effects(), passed=10)
    assert found.notes == ("it passes alone: it passed 10 of 10 times now",)
    well = beside_others(verdicts={"m": (cell(Status.PASS), replace(CONCURRENT, status=Status.PASS, findings=()))})
    brought_up = bisect_cell.bisect("m", well, effects(), scenario="concurrent", passed=10)
    assert brought_up.notes == ("it passes in concurrent init: it passed 10 of 10 times now",)
    assert brought_up.answer is BisectAnswer.NOTHING
