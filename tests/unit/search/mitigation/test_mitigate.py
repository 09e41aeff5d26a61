"""The stage of a run: which red cells it tries the switches on, what it keeps of that, and the price."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.search.mitigation import price
from harness.search.mitigation.mitigate import mitigate, try_further
from harness.core.hang import Evidence, Frame, ThreadStack
from harness.core.measurement import LatencyMeasurement, Quantity, RatioEstimate
from harness.core.outcome import Outcome, Status
from harness.core.plan import PolicySettings
from harness.core.probe import ServingProfile
from harness.core.verdict import Mitigation
from harness.checks.latency.benchmark import Time
from harness.probing.facts import Failing, Initialized, ScenarioResult
from harness.probing.requests import IMPATIENT_FLOOR_S
from harness.serving.settings.table import WIDE_POOL
from tests.unit.builders.mitigating import SWITCHES, WORKS, Release, red, tried, verdict
from tests.unit.builders.stages import effects, result


def test_switch_under_which_everything_passes_mitigations(tmp_path: Path) -> None:
    found = tried(red(), Release(tmp_path))
    assert {name: (item.mitigates, item.note) for name, item in found.items()} == {
        "profiling off": (True, ""),
        "fuser off": (True, ""),
    }


def test_nobody_waits_for_a_model_under_a_switch_as_long_as_for_the_model_itself(tmp_path: Path) -> None:
    release = Release(tmp_path)
    mitigate(red(), effects(release.runner))
    assert {request.deadline.load_s for request in release.runner.asked} == {IMPATIENT_FLOOR_S}


def test_what_mitigates_a_prefork_server_is_tried_first_and_only_if_it_changes_something(tmp_path: Path) -> None:
    release = Release(tmp_path)
    assert list(tried(red("prefork"), release)) == [
        "one thread after the fork",
        "load after the fork",
        "profiling off",
        "fuser off",
    ]
    parents = [{step[0] for step in request.script.threads[0]} for request in release.groups if request.script]
    assert {"fork", "join"} in parents and {"load", "calls", "fork", "join"} in parents
    facts = red("prefork")
    profile = ServingProfile(intra_op_threads=2)
    wide = replace(facts, plan=replace(facts.plan, settings=replace(facts.plan.settings, profile=profile)))
    assert list(tried(wide, Release(tmp_path / "wide")))[:3] == [
        "one thread after the fork",
        "load after the fork",
        "one intra-op thread",
    ]


def test_nothing_is_tried_against_what_fails_by_the_policy_alone(tmp_path: Path) -> None:
    facts = red()
    alone, *others = facts.verdicts["m"]
    strict = replace(facts, verdicts={**facts.verdicts, "m": (replace(alone, judged=Status.PASS), *others)})
    assert mitigate(strict, effects(Release(tmp_path).runner)).mitigations == {}


def test_further_switches_join_those_that_were_tried_and_the_group_counts_for_them_too(tmp_path: Path) -> None:
    works = Release(tmp_path / "a", switches={**SWITCHES, "fusion_depth": {**WORKS, "requested": 0, "read_back": 0}})
    facts = mitigate(red(), effects(works.runner))
    more = try_further("m", ["fusion depth 0"], facts, effects(works.runner)).mitigations["m"]
    assert [(item.name, item.mitigates) for item in more] == [
        ("profiling off", True),
        ("fuser off", True),
        ("fusion depth 0", True),
    ]
    sick = Release(tmp_path / "b", grouped={"n": Outcome.HANG}, switches={"fusion_depth": WORKS})
    (broken,) = try_further("m", ["fusion depth 0"], red(), effects(sick.runner)).mitigations["m"]
    assert (broken.mitigates, broken.breaks) == (False, ("n",))


def test_further_switches_are_not_tried_on_what_none_could_mitigation(tmp_path: Path) -> None:
    facts, release = red(), Release(tmp_path)
    loading = {**facts.verdicts, "m": (verdict(facts, "m", "alone", Status.FAIL, "load_error"),)}
    assert (
        try_further("m", ["fusion depth 0"], replace(facts, verdicts=loading), effects(release.runner)).mitigations
        == {}
    )
    assert try_further("n", ["fusion depth 0"], facts, effects(release.runner)).mitigations == {}
    assert release.runner.asked == []


EXHAUSTED = ("pthread_cond_wait", "c10::ivalue::Future::wait()", "c10::ThreadPool::main_loop(unsigned long)")


@pytest.mark.parametrize(("size", "first"), [(1, ["wide inter-op pool"]), (WIDE_POOL, [])])
def test_what_the_reading_of_a_hang_names_is_tried_first_unless_the_server_has_it(
    tmp_path: Path, size: int, first: list[str]
) -> None:
    facts = red("concurrent")
    profile = replace(facts.plan.settings.profile, inter_op_threads=size)
    facts = replace(facts, plan=replace(facts.plan, settings=replace(facts.plan.settings, profile=profile)))
    stack = ThreadStack(tid=1, frames=tuple(Frame(function=name, file="libtorch_cpu.so") for name in EXHAUSTED))
    hung = Failing(result=result("m", Outcome.HANG), directory="", evidence=Evidence(stacks=(stack,)), rounds=1)
    new = ScenarioResult(result=hung.result, directory="", failed_rounds=1, failures=(hung,))
    facts = replace(facts, initialized={("m", "concurrent"): Initialized(new=new)})
    found = mitigate(facts, effects(Release(tmp_path).runner)).mitigations["m"]
    assert [item.name for item in found] == [*first, "profiling off", "fuser off"]


def test_cell_that_decides_nothing_needs_no_mitigation(tmp_path: Path) -> None:
    facts = red("latency")
    assert tried(facts, Release(tmp_path / "a"))
    shown = tuple(replace(cell, decides=cell.scenario != "latency") for cell in facts.verdicts["m"])
    facts = replace(facts, verdicts={**facts.verdicts, "m": shown})
    assert not mitigate(facts, effects(Release(tmp_path / "b").runner)).mitigations


def test_a_slow_cell_that_is_waived_needs_no_mitigation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = red(budget="quick")
    slow = verdict(facts, "m", "latency", Status.XFAIL, "latency")
    facts = replace(facts, verdicts={**facts.verdicts, "m": (*facts.verdicts["m"], slow)})
    ratio = RatioEstimate(ratio=1.5, low=1.4, high=1.6, pairs=3, detectable=1.02)
    under = LatencyMeasurement(model="m", samples=(), steady=ratio)
    monkeypatch.setattr(price, "contest", lambda *_, **__: {"m": under})
    assert [item.mitigates for item in tried(facts, Release(tmp_path)).values()] == [True, True]


@pytest.mark.parametrize("problem", ["", "m: the new process died"])
def test_problem_in_the_price_benchmark_withdraws_the_mitigation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    lost = LatencyMeasurement(model="m", samples=(), problem=problem)
    monkeypatch.setattr(price, "contest", lambda contestants, *_, **__: dict.fromkeys(contestants, lost))
    found = tried(red(budget="quick"), Release(tmp_path))
    assert [item.mitigates for item in found.values()] == [not problem] * 2
    assert [item.note for item in found.values()] == [f"under load: {problem}" if problem else ""] * 2


def slow_now(
    monkeypatch: pytest.MonkeyPatch, release: Release, under_the_switch: LatencyMeasurement, **settings: Any
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

    monkeypatch.setattr(price, "contest", contest)
    found = tried(replace(facts, plan=plan, verdicts=verdicts), release)["fuser off"]
    assert set(asked) == {bool(settings)}
    return found


def test_prices_of_all_switches_share_the_time_that_the_benchmark_of_their_models_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Time] = []

    def contest(contestants: Any, *_: object, time: Time, **__: object) -> Any:
        given.append(replace(time))
        time.spend(50.0, kept=False)
        return dict.fromkeys(contestants, LatencyMeasurement(model="m", samples=(), steady=ratio(0.98, 1.01)))

    monkeypatch.setattr(price, "contest", contest)
    tried(red(budget="quick"), Release(tmp_path))
    assert [time.left_s for time in given] == [65.0, 15.0]


def ratio(low: float, high: float) -> RatioEstimate:
    return RatioEstimate(ratio=(low * high) ** 0.5, low=low, high=high, pairs=3, detectable=1.01)


@pytest.mark.parametrize(
    ("low", "high", "mitigates", "note"),
    [(0.98, 1.01, True, ""), (1.0, 1.05, False, "undecided: "), (1.1, 1.2, False, "still slow: ")],
)
def test_slow_model_is_mitigated_by_time_alone_and_its_neighbours_are_asked_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: float, high: float, *, mitigates: bool, note: str
) -> None:
    under = LatencyMeasurement(model="m", samples=(), steady=ratio(low, high))
    release = Release(tmp_path)
    found = slow_now(monkeypatch, release, under)
    assert (found.mitigates, found.price) == (mitigates, under.steady)
    assert bool(release.groups) == mitigates
    assert found.note.startswith(note)


def test_gated_quantity_that_is_still_slow_is_no_mitigation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Quantity(old=1.0, new=3.0, ratio=ratio(2.9, 3.1))
    under = LatencyMeasurement(model="m", samples=(), steady=ratio(0.98, 1.01), quantities={"load": load})
    assert slow_now(monkeypatch, Release(tmp_path / "warns"), under).mitigates
    found = slow_now(monkeypatch, Release(tmp_path / "gates"), under, gates=("load",))
    assert not found.mitigates
    assert found.note.startswith("load time +200 %")
