"""Red cells are explained within a time, the gravest first; what is known is not searched for again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.search import explain
from harness.search.explain import FURTHER, unexplained_notes
from harness.search.explain import explain as explain_explain
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Finding, Mitigation
from harness.probing.facts import Decided, Effects, Mitigated
from harness.store.run_folder import RunDir
from tests.unit.builders.stages import decided, planned
from tests.unit.builders.stages import effects as stub_effects


def cell(model: str, kind: str, status: Status = Status.FAIL) -> CellVerdict:
    found = (Finding(kind=kind, message=kind),) if kind else ()
    return CellVerdict(cell=f"{model}/alone", model=model, scenario="alone", status=status, findings=found)


class Searches:
    """Stands in for the searches: each takes 40 s of a clock that stands still otherwise."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.bisected: list[str] = []
        self.switches: list[str] = []
        self.floor_s: set[float] = set()
        self.asked_of: list[str] = []
        self.times_s: list[int] = []

    def bisect(self, model: str, facts: Mitigated, effects: Effects, *, scenario: str, **wanted: bool) -> Bisection:
        assert not wanted["reproduce"] and not wanted["mitigations"]
        assert effects.end_ns is not None
        self.asked_of.append(scenario)
        self.times_s.append(round((effects.end_ns - self.now_ns) * 1e-9))
        self.bisected.append(model)
        self.floor_s.add(facts.plan.settings.deadlines.floor_s)
        self.now_ns += 40_000_000_000
        (effects.folder("reproducers")).mkdir(parents=True)
        return Bisection(model=model, old="a", new="b", answer=BisectAnswer.UNDECIDED, notes=(model,))

    def further(self, model: str, names: tuple[str, ...], facts: Mitigated, effects: Effects) -> Mitigated:
        self.switches.append(model)
        assert "profiling off" not in names and names == FURTHER
        tried = Mitigation(cell=model, model=model, name=names[0], switches={}, mitigates=True)
        return replace(facts, mitigations={**facts.mitigations, model: (tried,)})


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    found = Searches()
    monkeypatch.setattr(explain, "bisect", found.bisect)
    monkeypatch.setattr(explain, "try_further", found.further)
    monkeypatch.setattr("harness.machine.clock.monotonic_ns", lambda: found.now_ns)
    return found


def ready(folder: Path, explain_s: float, **more: Any) -> tuple[Decided, Effects]:
    plan = planned("fine", "wrong", "dead", settings={"explain": explain_s})
    verdicts = {
        "fine": (cell("fine", "", Status.PASS),),
        "wrong": (cell("wrong", "values"),),
        "dead": (cell("dead", "hang"),),
    }
    folder.mkdir(exist_ok=True)
    effects = replace(stub_effects(**more), run_dir=RunDir(folder))
    return decided(plan=plan, verdicts=verdicts), effects


def test_every_red_cell_is_explained_where_there_is_time(tmp_path: Path, searches: Searches) -> None:
    facts = explain_explain(*ready(tmp_path, 100))
    assert searches.bisected == ["dead", "wrong"]
    assert [(item.model, item.seconds) for item in facts.explained] == [("dead", 40.0), ("wrong", 40.0)]
    assert unexplained_notes(facts) == ()
    assert searches.floor_s == {10.0}
    assert searches.times_s == [100, 60]
    place = "explained/dead__alone"
    assert facts.explained[0].paths == (f"{place}/bisect.json",)
    assert (tmp_path / place / "bisect.json").is_file() and (tmp_path / place / "reproducers").is_dir()


def test_one_is_explained_whatever_the_time_and_those_left_out_are_reported(tmp_path: Path, searches: Searches) -> None:
    facts = explain_explain(*ready(tmp_path, 0.001))
    assert searches.bisected == ["dead"]
    (note,) = unexplained_notes(facts)
    assert note.startswith("not explained within 0.001 s: wrong; --explain 0.002")
    assert searches.times_s == [30], "a search that has begun gets as much"


def test_what_the_budget_of_the_run_cuts_off_is_laid_on_the_budget(tmp_path: Path, searches: Searches) -> None:
    """Of 60 s the first search takes 40, and the next would have less than a search needs; --explain gives it no more."""
    judged, effects = ready(tmp_path, 300)
    facts = explain_explain(judged, replace(effects, end_ns=60_000_000_000))
    assert (searches.bisected, searches.times_s) == (["dead"], [60])
    assert (facts.over_budget, facts.unexplained) == (("wrong",), ())
    assert unexplained_notes(facts) == ()


def test_the_cell_that_is_red_is_the_one_that_is_searched_about(tmp_path: Path, searches: Searches) -> None:
    """Its answers may be waived while its time is not."""
    facts, effects = ready(tmp_path, 100)
    late = replace(cell("wrong", "latency"), scenario="latency", cell="wrong/latency")
    done = explain_explain(replace(facts, verdicts={"wrong": (cell("wrong", "values", Status.XFAIL), late)}), effects)
    assert searches.asked_of == ["latency"]
    assert [item.cell for item in done.explained] == ["wrong/latency"]


def test_a_resumed_run_searches_for_nothing_that_it_knows(tmp_path: Path, searches: Searches) -> None:
    first = explain_explain(*ready(tmp_path, 0.001))
    again = explain_explain(*ready(tmp_path, 0.001))
    assert searches.bisected == ["dead", "wrong"]
    assert again.explained[0] == first.explained[0]
    assert again.unexplained == ()


def test_further_switches_are_tried_where_none_mitigates_yet(tmp_path: Path, searches: Searches) -> None:
    facts, effects = ready(tmp_path, 100)
    mitigated = Mitigation(cell="dead", model="dead", name="fuser off", switches={}, mitigates=True)
    done = explain_explain(replace(facts, mitigations={"dead": (mitigated,)}), effects)
    assert searches.switches == ["wrong"]
    assert done.mitigations["dead"] == (mitigated,)
    assert [item.mitigates for item in done.mitigations["wrong"]] == [True]


def test_nothing_is_searched_for_unless_it_was_asked_for_or_without_an_old_release(
    tmp_path: Path, searches: Searches
) -> None:
    assert explain_explain(*ready(tmp_path, 0.0)).explained == ()
    facts, effects = ready(tmp_path, 100)
    without = replace(effects, environments={"new": effects.environments["new"]})
    assert explain_explain(facts, without).explained == ()
    assert searches.bisected == []
