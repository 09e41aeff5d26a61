"""Switches on red cells: what counts as a cure, and what takes it back."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.diagnosis.cure import mitigate as cure_mitigate
from harness.diagnosis.cure.mitigate import mitigate, try_further
from harness.diagnosis.cure.verdict import CLEAN_RUNS_AT_MOST, CONCURRENT_REPEATS
from harness.domain.diagnosis import Attribution, Tally
from harness.domain.measurement import LatencyMeasurement, Quantity, RatioEstimate
from harness.domain.outcome import Outcome, Status
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.domain.probe import ProbeRequest, ProbeResult
from harness.domain.verdict import CellVerdict, Finding, Mitigation
from harness.probing.facts import OldAnswers, Decided
from harness.search.repeated import repeats_needed
from harness.startup.scenarios import INITIALIZATIONS
from harness.tensors.outputs import Outputs
from harness.worker import wire
from tests.unit.builders.stages import Runner, effects, known, planned, probed, result

GOLDEN = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")
WORKS = {"requested": False, "read_back": False, "supported": True}
SWITCHES = {"profiling": WORKS, "texpr_fuser": WORKS}


class Release:
    """The new release under a switch: ``alone`` and ``grouped`` say what becomes of a model, or what it answers."""

    def __init__(
        self,
        folder: Path,
        *,
        alone: Mapping[str, Outcome | int] | None = None,
        grouped: Mapping[str, Outcome | int] | None = None,
        switches: Mapping[str, object] | None = None,
    ) -> None:
        self._folder, self._switches = folder, switches if switches is not None else SWITCHES
        self._alone, self._grouped = alone or {}, grouped or {}
        self.runner = Runner(self._answer)

    @property
    def groups(self) -> list[ProbeRequest]:
        """The concurrent initializations that were asked of the new release."""
        return [item for item in self.runner.asked if item.script is not None and item.side == "new"]

    def _answer(self, request: ProbeRequest) -> ProbeResult:
        table = self._grouped if request.script is not None else self._alone
        if request.side == "old":
            table = {}
        directory = self._folder / str(len(self.runner.asked))
        (directory / "outputs").mkdir(parents=True)
        (directory / "outputs" / wire.TENSORS_BIN).write_bytes(b"")
        lines, results = [], []
        for run in request.runs:
            name = run.artifact.model
            said = table.get(name, 1)
            outcome = said if isinstance(said, Outcome) else Outcome.COMPLETED
            results.append(result(name, outcome))
            if outcome is Outcome.COMPLETED:
                lines.append(json.dumps({"model": name, "set": "example", "call": 0, "tree": ["int", said]}) + "\n")
        (directory / "outputs" / wire.TENSORS_INDEX).write_text("".join(lines))
        return probed(*results, side=request.side, directory=str(directory), data={"switches": self._switches})


def verdict(facts: Decided, name: str, scenario: str, status: Status = Status.PASS, kind: str = "") -> CellVerdict:
    findings = (Finding(kind=kind, message=f"about {kind}"),) if kind else ()
    cell = facts.plan.cell(name, scenario).id
    return CellVerdict(cell=cell, model=name, scenario=scenario, status=status, findings=findings)


def red(scenario: str = "alone", *, neighbour: Status = Status.PASS, budget: str = "off") -> Decided:
    """Return facts in which ``m`` hangs in ``scenario`` and its neighbour ``n`` has the status ``neighbour``."""
    facts = known(planned("m", "n", settings={"latency": LatencyBudget(budget=budget)}))
    baselines = {name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()}
    verdicts = {
        "m": tuple(
            verdict(facts, "m", item, Status.FAIL if item == scenario else Status.PASS, "hang" * (item == scenario))
            for item in dict.fromkeys(("alone", "concurrent", scenario))
        ),
        "n": (verdict(facts, "n", "alone"), verdict(facts, "n", "concurrent", neighbour)),
    }
    return replace(facts, baselines=baselines, verdicts=verdicts)


def tried(facts: Decided, release: Release) -> dict[str, Mitigation]:
    found = mitigate(facts, effects(release.runner)).mitigations
    assert set(found) == {"m"}
    return {item.name: item for item in found["m"]}


def test_switch_under_which_everything_passes_cures(tmp_path: Path) -> None:
    found = tried(red(), Release(tmp_path))
    assert {name: (item.cures, item.note) for name, item in found.items()} == {
        "profiling off": (True, ""),
        "fuser off": (True, ""),
    }


def test_nothing_is_tried_against_what_fails_by_the_policy_alone(tmp_path: Path) -> None:
    facts = red()
    alone, *others = facts.verdicts["m"]
    strict = replace(facts, verdicts={**facts.verdicts, "m": (replace(alone, judged=Status.PASS), *others)})
    assert mitigate(strict, effects(Release(tmp_path).runner)).mitigations == {}


def test_further_switches_join_those_that_were_tried_and_the_group_counts_for_them_too(tmp_path: Path) -> None:
    works = Release(tmp_path / "a", switches={**SWITCHES, "fusion_depth": {**WORKS, "requested": 0, "read_back": 0}})
    facts = mitigate(red(), effects(works.runner))
    more = try_further("m", ["fusion depth 0"], facts, effects(works.runner)).mitigations["m"]
    assert [(item.name, item.cures) for item in more] == [
        ("profiling off", True),
        ("fuser off", True),
        ("fusion depth 0", True),
    ]
    sick = Release(tmp_path / "b", grouped={"n": Outcome.HANG}, switches={"fusion_depth": WORKS})
    (broken,) = try_further("m", ["fusion depth 0"], red(), effects(sick.runner)).mitigations["m"]
    assert (broken.cures, broken.breaks) == (False, ("n",))


def test_further_switches_are_not_tried_on_what_none_could_cure(tmp_path: Path) -> None:
    facts, release = red(), Release(tmp_path)
    loading = {**facts.verdicts, "m": (verdict(facts, "m", "alone", Status.FAIL, "load_error"),)}
    assert (
        try_further("m", ["fusion depth 0"], replace(facts, verdicts=loading), effects(release.runner)).mitigations
        == {}
    )
    assert try_further("n", ["fusion depth 0"], facts, effects(release.runner)).mitigations == {}
    assert release.runner.asked == []


def test_cell_that_decides_nothing_needs_no_cure(tmp_path: Path) -> None:
    facts = red("latency")
    assert tried(facts, Release(tmp_path / "a"))
    shown = tuple(replace(cell, decides=cell.scenario != "latency") for cell in facts.verdicts["m"])
    facts = replace(facts, verdicts={**facts.verdicts, "m": shown})
    assert not mitigate(facts, effects(Release(tmp_path / "b").runner)).mitigations


@pytest.mark.parametrize(
    "entry",
    [
        {"requested": False, "read_back": True, "supported": True},
        {"requested": False, "supported": False, "reason": "no such name"},
        {"requested": False, "supported": True},
    ],
    ids=["reads back otherwise", "unsupported", "not read back"],
)
def test_switch_without_effect_does_not_cure(tmp_path: Path, entry: Mapping[str, object]) -> None:
    found = tried(red(), Release(tmp_path, switches={**SWITCHES, "texpr_fuser": entry}))
    assert (found["profiling off"].cures, found["fuser off"].cures) == (True, False)
    assert found["fuser off"].note.startswith("torch 2.6.0 has no such switch, or it has no effect")


@pytest.mark.parametrize(
    ("said", "note"),
    [
        (Outcome.HANG, "still hang"),
        (Outcome.PROTOCOL_ERROR, "protocol error in start in torch 2.6.0, alone"),
        (2, "output: expected int 1, got int 2"),
    ],
)
def test_model_that_does_not_pass_alone_under_the_switch_is_not_cured(
    tmp_path: Path, said: Outcome | int, note: str
) -> None:
    release = Release(tmp_path, alone={"m": said})
    found = tried(red(), release)
    assert not any(item.cures for item in found.values())
    assert found["fuser off"].note == note
    assert release.groups == []


def test_what_comes_back_in_a_repeat_is_not_cured(tmp_path: Path) -> None:
    release = Release(tmp_path)
    healthy, release.runner = release.runner, Runner(lambda request: sick(request) or healthy(request))

    def sick(request: ProbeRequest) -> ProbeResult | None:
        returns = request.repeat == 3 and request.script is None
        return replace(healthy(request), models=(result("m", Outcome.HANG),)) if returns else None

    found = tried(red(), release)
    assert [(item.cures, item.note) for item in found.values()] == [(False, "still hang")] * 2


def test_a_slow_cell_that_is_waived_needs_no_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = red(budget="quick")
    slow = verdict(facts, "m", "latency", Status.XFAIL, "latency")
    facts = replace(facts, verdicts={**facts.verdicts, "m": (*facts.verdicts["m"], slow)})
    ratio = RatioEstimate(ratio=1.5, low=1.4, high=1.6, pairs=3, detectable=1.02)
    under = LatencyMeasurement(model="m", samples=(), steady=ratio)
    monkeypatch.setattr(cure_mitigate, "contest", lambda *_, **__: {"m": under})
    assert [item.cures for item in tried(facts, Release(tmp_path)).values()] == [True, True]


def test_model_that_worked_in_neither_release_is_not_cured_by_completing(tmp_path: Path) -> None:
    facts = red()
    broken = OldAnswers(results=(result("m", Outcome.CRASH),) * 2, golden=GOLDEN)
    found = tried(replace(facts, baselines={**facts.baselines, "m": broken}), Release(tmp_path))
    assert not any(item.cures for item in found.values())


@pytest.mark.parametrize("said", [Outcome.HANG, Outcome.PROTOCOL_ERROR, 2])
def test_model_that_does_not_pass_beside_its_group_is_not_cured(tmp_path: Path, said: Outcome | int) -> None:
    found = tried(red(), Release(tmp_path, grouped={"m": said}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


@pytest.mark.parametrize("said", [Outcome.LOAD_ERROR, Outcome.PROTOCOL_ERROR, 2])
def test_switch_under_which_a_green_neighbour_does_not_pass_is_no_cure(tmp_path: Path, said: Outcome | int) -> None:
    found = tried(red(), Release(tmp_path, grouped={"n": said}))
    assert [(item.cures, item.breaks, item.note) for item in found.values()] == [(False, ("n",), "breaks n")] * 2


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE, Status.SAME_FAIL])
def test_neighbour_that_was_not_green_is_not_broken_by_a_switch(tmp_path: Path, status: Status) -> None:
    facts = red(neighbour=status)
    found = mitigate(facts, effects(Release(tmp_path, grouped={"n": Outcome.LOAD_ERROR}).runner)).mitigations["m"]
    assert [(item.cures, item.breaks) for item in found] == [(True, ())] * 2


def clean_runs(facts: Decided, release: Release) -> int:
    """Return how many initializations were brought up under a switch; none of them is a stored result."""
    found = tried(facts, release)
    assert all(item.cures for item in found.values())
    repeats = [(item.script, item.repeat) for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert all(repeats.count(one) == 1 for one in repeats)
    return len(repeats)


@pytest.mark.parametrize(("scenario", "times"), [("alone", 1), ("concurrent", repeats_needed(fails=1, judged=1))])
def test_group_that_failed_must_be_clean_more_than_once(tmp_path: Path, scenario: str, times: int) -> None:
    assert clean_runs(red(scenario), Release(tmp_path)) == times


def attributed(facts: Decided, scenario: str, **changes: Any) -> Decided:
    """Return facts in which the failure of ``m`` was searched for again."""
    found = Attribution(**{"models": ("m", "n"), "threads": 4, "reproduced": True, **changes})
    return replace(facts, attributions={**facts.attributions, ("m", scenario): found})


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"reproduced": False, "whole": Tally(passes=9)},
            "cannot be verified: the failure did not show again in 9 repeats (concurrent init)",
        ),
        (
            {"reproduced": None, "whole": Tally(untestable=2)},
            "cannot be verified: the failure was not seen again (concurrent init)",
        ),
    ],
)
def test_what_did_not_fail_again_is_not_cured_by_passing(tmp_path: Path, changes: Mapping[str, Any], note: str) -> None:
    release = Release(tmp_path)
    found = tried(attributed(red("concurrent"), "concurrent", **changes), release)
    assert [(item.cures, item.note) for item in found.values()] == [(False, note)] * 2
    assert release.runner.asked == []


@pytest.mark.parametrize(
    ("tally", "runs"),
    [
        (Tally(fails=3), CONCURRENT_REPEATS),
        (Tally(fails=20), CONCURRENT_REPEATS),
        (Tally(fails=3, passes=3, untestable=1, differently=1), repeats_needed(fails=3, judged=6)),
    ],
)
def test_rarer_failure_must_stay_away_longer(tmp_path: Path, tally: Tally, runs: int) -> None:
    facts = attributed(red("concurrent"), "concurrent", whole=tally, runs=Tally(fails=1, passes=11))
    assert clean_runs(facts, Release(tmp_path)) == runs


def test_model_that_was_known_to_fail_before_is_not_in_the_way_of_a_cure(tmp_path: Path) -> None:
    """It would hang in every clean run, and it failed again without it."""
    facts = attributed(
        red("concurrent", neighbour=Status.SAME_FAIL), "concurrent", whole=Tally(fails=3), left_out=("n",)
    )
    release = Release(tmp_path, grouped={"n": Outcome.HANG})
    assert clean_runs(facts, release) == CONCURRENT_REPEATS
    assert {run.artifact.model.partition("#")[0] for item in release.groups for run in item.runs} == {"m"}


def test_failure_found_in_another_scenario_counts_as_often_as_it_showed_here(tmp_path: Path) -> None:
    facts = attributed(red("concurrent"), "concurrent", as_in="shared module", runs=Tally(fails=1))
    assert clean_runs(facts, Release(tmp_path)) == repeats_needed(fails=1, judged=1)


def test_clean_runs_are_capped_and_the_note_says_so(tmp_path: Path) -> None:
    facts = attributed(red("concurrent"), "concurrent", whole=Tally(fails=1, passes=11))
    release = Release(tmp_path)
    assert clean_runs(facts, release) == CLEAN_RUNS_AT_MOST < repeats_needed(fails=1, judged=12)
    notes = {item.note for item in tried(facts, Release(tmp_path / "again")).values()}
    asked = f"only {CLEAN_RUNS_AT_MOST} clean runs of the 44 that a failure in 1 of 12 asks for"
    assert notes == {f"{asked}: with 15 % it would have stayed away by itself"}


def also_red(facts: Decided, scenario: str) -> Decided:
    more = verdict(facts, "m", scenario, Status.FAIL, "crash")
    cells = tuple(cell for cell in facts.verdicts["m"] if cell.scenario != scenario)
    return replace(facts, verdicts={**facts.verdicts, "m": (*cells, more)})


def test_every_red_initialization_must_pass_under_the_switch(tmp_path: Path) -> None:
    facts = also_red(red("concurrent"), "same_file")
    release = Release(tmp_path, grouped={"m#1": Outcome.CRASH})  # a copy that only same_file has
    found = tried(facts, release)
    assert [(item.cures, item.cell) for item in found.values()] == [(False, facts.plan.cell("m", "concurrent").id)] * 2
    assert clean_runs(facts, Release(tmp_path / "healthy")) == 2 * repeats_needed(fails=1, judged=1)


def test_red_cell_alone_does_not_hide_a_red_initialization(tmp_path: Path) -> None:
    facts = also_red(red("alone"), "same_file")
    assert not any(item.cures for item in tried(facts, Release(tmp_path, grouped={"m#1": 2})).values())
    release = Release(tmp_path / "healthy")
    assert clean_runs(facts, release) == repeats_needed(fails=1, judged=1)
    scripts = [item.script for item in release.groups]
    assert all(script == INITIALIZATIONS["same_file"].write(["m", "n"], 4) for script in scripts)


def test_one_initialization_that_did_not_fail_again_leaves_the_model_without_a_cure(tmp_path: Path) -> None:
    facts = also_red(red("concurrent"), "same_file")
    facts = attributed(facts, "concurrent", whole=Tally(fails=3))
    facts = attributed(facts, "same_file", reproduced=False, whole=Tally(passes=9))
    found = tried(facts, Release(tmp_path))
    assert not any(item.cures for item in found.values())
    assert {item.note for item in found.values()} == {
        "cannot be verified: the failure did not show again in 9 repeats (same file N times)"
    }


@pytest.mark.parametrize("scenario", ["sequential", "same_file", "while_serving", "reinit", "processes"])
def test_red_initialization_is_tried_again_as_it_was(tmp_path: Path, scenario: str) -> None:
    release = Release(tmp_path)
    assert all(item.cures for item in tried(red(scenario), release).values())
    script = INITIALIZATIONS[scenario].write(["m", "n"], 4)
    assert release.groups
    assert all(item.script == script for item in release.groups)


@pytest.mark.parametrize("sick", ["m", "m#1", "m#3"])
@pytest.mark.parametrize("said", [Outcome.CRASH, 2])
def test_any_copy_that_does_not_pass_under_the_switch_is_no_cure(
    tmp_path: Path, sick: str, said: Outcome | int
) -> None:
    found = tried(red("same_file"), Release(tmp_path, grouped={sick: said}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


def test_switch_under_which_a_copy_of_a_green_neighbour_answers_otherwise_is_no_cure(tmp_path: Path) -> None:
    found = tried(red("same_file"), Release(tmp_path, grouped={"n#2": 2}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ("n",))] * 2


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_round_of_the_group_must_be_clean(tmp_path: Path, rounds: int) -> None:
    facts = red("while_serving")
    settings = replace(facts.plan.settings, init_rounds=rounds)
    release = Release(tmp_path)
    assert all(
        item.cures for item in tried(replace(facts, plan=replace(facts.plan, settings=settings)), release).values()
    )
    repeats = [item.repeat for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert len(repeats) == len(set(repeats)) == {1: 5, 2: 6}[rounds]  # 1 failure in 1 run asks for 5 clean ones


@pytest.mark.parametrize("problem", ["", "m: the new process died"])
def test_problem_in_the_price_benchmark_withdraws_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    lost = LatencyMeasurement(model="m", samples=(), problem=problem)
    monkeypatch.setattr(cure_mitigate, "contest", lambda contestants, *_, **__: dict.fromkeys(contestants, lost))
    found = tried(red(budget="quick"), Release(tmp_path))
    assert [item.cures for item in found.values()] == [not problem] * 2
    assert [item.note for item in found.values()] == [f"under load: {problem}" if problem else ""] * 2


def slow_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, under_the_switch: LatencyMeasurement, **settings: Any
) -> Mitigation:
    """Return what becomes of a switch on a model that is slow, when the benchmark under it says so and so."""
    facts = red("latency", budget="quick")
    verdicts = {**facts.verdicts, "m": (verdict(facts, "m", "latency", Status.FAIL, "latency"),)}
    verdicts["m"] = (verdict(facts, "m", "alone"), verdict(facts, "m", "concurrent"), *verdicts["m"])
    plan = replace(facts.plan, settings=replace(facts.plan.settings, policy=PolicySettings(**settings)))
    asked: list[bool] = []

    def contest(contestants: Any, *_: object, extras: bool, **__: object) -> Any:
        asked.append(extras)
        return dict.fromkeys(contestants, under_the_switch)

    monkeypatch.setattr(cure_mitigate, "contest", contest)
    found = tried(replace(facts, plan=plan, verdicts=verdicts), Release(tmp_path))["fuser off"]
    assert set(asked) == {bool(settings)}
    return found


def ratio(low: float, high: float) -> RatioEstimate:
    return RatioEstimate(ratio=(low * high) ** 0.5, low=low, high=high, pairs=3, detectable=1.01)


@pytest.mark.parametrize(
    ("low", "high", "cures", "note"),
    [(0.98, 1.01, True, ""), (1.0, 1.05, False, "undecided: "), (1.1, 1.2, False, "still slow: ")],
)
def test_slow_model_is_cured_by_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: float, high: float, *, cures: bool, note: str
) -> None:
    under = LatencyMeasurement(model="m", samples=(), steady=ratio(low, high))
    found = slow_now(monkeypatch, tmp_path, under)
    assert (found.cures, found.price) == (cures, under.steady)
    assert found.note.startswith(note)


def test_gated_quantity_that_is_still_slow_is_no_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Quantity(old=1.0, new=3.0, ratio=ratio(2.9, 3.1))
    under = LatencyMeasurement(model="m", samples=(), steady=ratio(0.98, 1.01), quantities={"load": load})
    assert slow_now(monkeypatch, tmp_path / "warns", under).cures
    found = slow_now(monkeypatch, tmp_path / "gates", under, gates=("load",))
    assert not found.cures
    assert found.note.startswith("load time +200 %")
