"""Outputs against the golden, and the old release asked where a model differs beside others."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.outputs import compare as correctness_compare
from harness.artifacts.tensors.outputs import changes_between_calls
from harness.checks.outputs.compare import (
    compare,
    compare_answers,
    later_call_notes,
    otherwise_than_alone,
    worst_comparison,
)
from harness.checks.outputs.findings import agrees, differs
from harness.checks.outputs.outputs import compare_outputs
from harness.core.comparison import OutputComparison
from harness.core.outcome import Outcome
from harness.core.plan import PolicySettings
from harness.core.probe import FailedRequest, ProbeRequest, ProbeResult, model_of
from harness.probing.verification import legible_outputs
from harness.probing.facts import Decided, Failing, Initialized, OldAnswers, ScenarioResult
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.stages import Runner, declared, effects, failing, in_scenario, known, planned, probed, result
from tests.unit.builders.tensors import Recorder, write_answers, write_calls

GOLDEN = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")


def record(folder: Path, **answers: int) -> str:
    """Write what models answered in a process; return its folder."""
    return write_answers(folder, {name: ["int", value] for name, value in answers.items()})


def group(tmp_path: Path, **together: Mapping[str, int]) -> Decided:
    """Return facts of a group of ``m`` and ``n`` that answered 1 alone, and per side ``together`` (by copy)."""
    facts = known(planned("m", "n"))
    directory = record(tmp_path / "alone", m=1, n=1)
    folders = {side: record(tmp_path / side, **answers) for side, answers in together.items()}

    def scenario_result(name: str, side: str) -> ScenarioResult:
        mine = tuple((copy, folders[side]) for copy in together[side] if model_of(copy) == name)
        return in_scenario(name, directory=folders[side], answers=mine)

    return replace(
        facts,
        baselines={name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()},
        alone={name: probed(result(name), directory=directory) for name in ("m", "n")},
        initialized={
            (name, "concurrent"): Initialized(
                new=scenario_result(name, "new"), old=scenario_result(name, "old") if "old" in together else None
            )
            for name in ("m", "n")
        },
    )


def old_differs(facts: Decided) -> dict[str, bool]:
    return {name: item.old_differs for (name, _), item in compare(facts, effects(), differs).initialized.items()}


def right(comparison: OutputComparison | None) -> bool:
    assert comparison is not None
    return not differs(comparison)


@pytest.mark.parametrize(
    ("numerics", "precision"),
    [
        ({}, None),
        ({"autocast": "off", "matmul_precision": "highest"}, None),
        ({"matmul_precision": "high"}, "tf32"),
        ({"matmul_precision": "medium"}, "bfloat16"),
        ({"autocast": "float16", "matmul_precision": "medium"}, "float16"),
    ],
)
def test_precision_of_the_profile_is_that_of_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numerics: dict[str, bool | str], precision: str | None
) -> None:
    seen = []

    def spy(*arguments: Any, **options: Any) -> OutputComparison:
        seen.append((arguments[0], options["precision"], options["unordered"]))
        return compare_outputs(*arguments, **options)

    monkeypatch.setattr(correctness_compare, "compare_outputs", spy)
    facts = group(tmp_path, new={"m": 1, "n": 1})
    settings = facts.plan.settings
    profile = replace(settings.profile, numerics=numerics)
    settings = replace(settings, profile=profile, computes_in={"n": "float64"})
    models = tuple(replace(model, unordered=("output",) if model.name == "m" else ()) for model in facts.plan.models)
    compare(replace(facts, plan=replace(facts.plan, settings=settings, models=models)), effects(), differs)
    assert set(seen) == {("m", precision, ("output",)), ("n", "float64", ())}


@pytest.mark.parametrize(("before", "same"), [(1, False), (3, True)])
def test_old_release_is_asked_whether_it_differs_beside_others_too(tmp_path: Path, before: int, same: bool) -> None:
    facts = group(tmp_path, new={"m": 2, "n": 1}, old={"m": before, "n": 1})
    assert old_differs(facts) == {"m": same, "n": False}


def test_old_release_that_answers_otherwise_is_reported_only_where_the_new_one_does(tmp_path: Path) -> None:
    facts = group(tmp_path, new={"m": 1, "n": 1}, old={"m": 3, "n": 3})
    assert old_differs(facts) == {"m": False, "n": False}


def asked_once(facts: Decided) -> Decided:
    """Return facts of an old release that was asked once about each model."""
    once = {name: replace(baseline, results=baseline.results[:1]) for name, baseline in facts.baselines.items()}
    return replace(facts, baselines=once)


def test_noise_is_asked_for_where_answers_differ(tmp_path: Path) -> None:
    facts = asked_once(group(tmp_path, new={"m": 1, "n": 1}))
    facts = replace(
        facts, alone={**facts.alone, "m": probed(result("m"), directory=record(tmp_path / "otherwise", m=2))}
    )

    def old_release(request: ProbeRequest) -> ProbeResult:
        repeat = record(tmp_path / f"old{request.repeat}", m=1 + request.repeat)
        return probed(result("m"), side="old", directory=repeat)

    runner = Runner(old_release)
    compared = compare(facts, effects(runner), differs)
    assert {run.artifact.model for request in runner.asked for run in request.runs if run.precision is None} == {"m"}
    assert (len(compared.baselines["m"].results), len(compared.baselines["n"].results)) == (2, 1)
    assert compared.comparisons["m", "alone"].unstable == ("output",)


def test_noise_is_not_asked_for_where_two_processes_agree_bit_by_bit(tmp_path: Path) -> None:
    facts = asked_once(group(tmp_path, new={"m": 1, "n": 1}, old={"m": 1, "n": 1}))
    runner = Runner(lambda request: pytest.fail("it was asked"))
    assert all(item.is_exact for item in compare(facts, effects(runner), differs).comparisons.values())


@pytest.mark.parametrize(
    ("off_by", "limits", "asked"),
    [(1e-7, {}, False), (1e-3, {}, True), (1e-7, {"error": 1e-9}, True), (0.0, {"error": 1e-9}, False)],
)
def test_noise_is_asked_for_where_rounding_does_not_explain_it_or_a_policy_has_a_limit(
    tmp_path: Path, off_by: float, limits: dict[str, float], asked: bool
) -> None:
    golden, new = Recorder(), Recorder()
    values = np.ones(4, np.float32)
    directory = write_answers(tmp_path / "new", {"m": new.tensor(values + np.float32(off_by))}, bytes(new.buffer))
    write_answers(tmp_path / "old", {"m": golden.tensor(values)}, bytes(golden.buffer))
    before = OldAnswers(results=(result("m"),), golden=legible_outputs(tmp_path / "old", "m"))
    plan = planned("m", settings={"policy": PolicySettings(limits=limits)})
    facts = known(plan, alone={"m": probed(result("m"), directory=directory)}, baselines={"m": before}, initialized={})
    runner = Runner(lambda request: probed(result("m"), side="old", directory=str(tmp_path / "old")))
    compared = compare(facts, effects(runner), differs)
    assert bool(runner.asked) is asked
    assert differs(compared.comparisons["m", "alone"]) is (off_by > 1e-5)


@pytest.mark.parametrize("failures", [{"new": failing(Outcome.CRASH)}, {"old": failing(Outcome.CRASH)}], ids=str)
def test_noise_is_asked_for_where_a_model_fails_beside_others(tmp_path: Path, failures: Mapping[str, Failing]) -> None:
    facts = asked_once(group(tmp_path, new={"m": 1, "n": 1}, old={"m": 1, "n": 1}))
    came = facts.initialized["m", "concurrent"]
    sides = {side: (failures[side],) if side in failures else () for side in ("new", "old")}
    assert came.old is not None
    item = Initialized(new=replace(came.new, failures=sides["new"]), old=replace(came.old, failures=sides["old"]))
    facts = replace(facts, initialized={**facts.initialized, ("m", "concurrent"): item})
    runner = Runner(lambda request: probed(result("m"), side="old", directory=record(tmp_path / "again", m=1)))
    assert len(compare(facts, effects(runner), differs).baselines["m"].results) == 2


def test_golden_records_leave_no_old_release_to_ask_about_a_difference(tmp_path: Path) -> None:
    assert old_differs(group(tmp_path, new={"m": 2, "n": 1})) == {"m": False, "n": False}


@pytest.mark.parametrize(
    "answers",
    [{"m": 2, "m#1": 1, "m#2": 1}, {"m": 1, "m#1": 2, "m#2": 1}, {"m": 1, "m#1": 1, "m#2": 2}],
    ids=["first", "middle", "last"],
)
def test_any_copy_that_differs_is_a_difference_of_the_model(tmp_path: Path, answers: Mapping[str, int]) -> None:
    found = compare(group(tmp_path, new={**answers, "n": 1}), effects(), differs).comparisons
    assert {key: right(item) for key, item in found.items()} == {
        ("m", "alone"): True,
        ("n", "alone"): True,
        ("m", "concurrent"): False,
        ("n", "concurrent"): True,
    }


def test_any_copy_of_the_old_release_that_differs_excuses_the_new_one(tmp_path: Path) -> None:
    facts = group(tmp_path, new={"m": 2, "n": 1}, old={"m": 1, "m#1": 1, "m#2": 2, "n": 1})
    assert old_differs(facts) == {"m": True, "n": False}


def test_model_that_answered_nowhere_has_no_comparison(tmp_path: Path) -> None:
    found = compare(group(tmp_path, new={"n": 1}), effects(), differs).comparisons
    assert ("m", "concurrent") not in found
    assert found["n", "concurrent"].scenario == "concurrent"


def test_copies_are_compared_under_the_name_of_their_model(tmp_path: Path) -> None:
    folder = record(tmp_path / "copies", **{"m#1": 2})
    found = worst_comparison("m", "shared", [("m#1", folder)], None, group(tmp_path, new={}), differs=differs)
    assert found is not None
    assert (found.model, found.scenario) == ("m", "shared")


def test_same_bits_as_alone_are_not_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counting(model: str, scenario: str, **more: Any) -> OutputComparison:
        compared.append(f"{model} {scenario}")
        return compare_outputs(model, scenario, **more)

    monkeypatch.setattr(correctness_compare, "compare_outputs", counting)
    found = compare(group(tmp_path, new={"m": 1, "m#1": 1, "n": 2}), effects(), differs).comparisons
    assert compared == ["m alone", "n alone", "n concurrent"]
    assert (found["m", "concurrent"].scenario, right(found["m", "concurrent"])) == ("concurrent", True)


def red_alone(facts: Decided, golden: int = 5) -> Decided:
    """Return the facts with a golden that no model answers alone."""
    wrong = Outputs(calls={("example", 0): ["int", golden]}, buffer=b"")
    return replace(facts, baselines={name: replace(found, golden=wrong) for name, found in facts.baselines.items()})


def together(facts: Decided) -> dict[str, bool]:
    """Return which models answer beside others as they do alone."""
    found = compare(facts, effects(), differs).comparisons
    return {name: right(item) for (name, scenario), item in found.items() if scenario == "concurrent"}


@pytest.mark.parametrize("copy", ["m", "m#1", "m#2"])
def test_model_that_is_red_alone_is_held_against_its_own_answers(tmp_path: Path, copy: str) -> None:
    facts = red_alone(group(tmp_path, new={"m": 1, "m#1": 1, "m#2": 1, copy: 2, "n": 1}))
    found = compare(facts, effects(), differs).comparisons
    assert [right(found[name, "alone"]) for name in ("m", "n")] == [False, False]
    assert together(facts) == {"m": False, "n": True}
    assert (found["m", "concurrent"].model, found["m", "concurrent"].scenario) == ("m", "concurrent")


def test_model_that_is_red_alone_and_right_beside_others_answers_otherwise(tmp_path: Path) -> None:
    assert together(red_alone(group(tmp_path, new={"m": 5, "n": 1}))) == {"m": False, "n": True}


def test_model_that_is_right_alone_is_held_against_the_golden(tmp_path: Path) -> None:
    """With its noise and its float64 reference; answers of one process have neither."""
    facts = group(tmp_path, new={"m": 1, "n": 1})
    golden: list[Outputs] = []

    def remembering(model: str, scenario: str, **more: Any) -> OutputComparison:
        golden.append(more["golden"])
        return compare_outputs(model, scenario, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correctness_compare, "compare_outputs", remembering)
        assert together(facts) == {"m": True, "n": True}
    assert all(item is GOLDEN for item in golden)


@pytest.mark.parametrize(("before", "same"), [(5, False), (1, True), (7, True)])
def test_old_release_is_held_against_the_golden_also_where_the_new_one_is_red_alone(
    tmp_path: Path, before: int, same: bool
) -> None:
    facts = red_alone(group(tmp_path, new={"m": 2, "n": 1}, old={"m": before, "n": 1}))
    assert old_differs(facts) == {"m": same, "n": False}


def test_model_without_a_golden_is_held_against_its_own_answers(tmp_path: Path) -> None:
    facts = group(tmp_path, new={"m": 2, "n": 1})
    without = {name: replace(found, golden=None) for name, found in facts.baselines.items()}
    found = compare(replace(facts, baselines=without), effects(), differs).comparisons
    assert {key: right(item) for key, item in found.items()} == {("m", "concurrent"): False, ("n", "concurrent"): True}


def test_model_that_does_not_work_alone_has_no_answers_to_be_held_against(tmp_path: Path) -> None:
    facts = red_alone(group(tmp_path, new={"m": 2, "n": 1}))
    crashed = replace(facts.alone["m"], models=(result("m", Outcome.CRASH),))
    assert together(replace(facts, alone={**facts.alone, "m": crashed})) == {"n": True}


def test_model_that_was_not_compared_alone_and_has_no_baseline_has_no_comparison(tmp_path: Path) -> None:
    facts = group(tmp_path, new={"m": 2, "n": 1})
    comparison = otherwise_than_alone(
        "m", "concurrent", [("m", "/nowhere")], None, replace(facts, baselines={}), differs=differs
    )
    assert comparison is None


def test_model_that_is_red_alone_and_answered_nowhere_beside_others_has_no_comparison(tmp_path: Path) -> None:
    assert together(red_alone(group(tmp_path, new={"n": 1}))) == {"n": True}


@pytest.mark.parametrize("before", [Outcome.CRASH, Outcome.COMPLETED])
def test_calls_before_a_failure_are_compared_whether_the_old_release_fails_too(tmp_path: Path, before: Outcome) -> None:
    facts = group(tmp_path, new={"m": 1, "n": 1})
    crash = (FailedRequest(input_set="example", outcome=Outcome.CRASH, phase="call", call=1),)
    failed = probed(result("m", Outcome.CRASH, failed_requests=crash), directory=record(tmp_path / "failed", m=2))
    old = result("m", before, failed_requests=crash if before is Outcome.CRASH else ())
    baseline = OldAnswers(results=(old, old), golden=GOLDEN)
    found = compare(
        replace(facts, alone={"m": failed}, baselines={"m": baseline}, initialized={}), effects(), differs
    ).comparisons
    (comparison,) = found.values()
    assert [item.path for call in comparison.calls for item in call.tree] == ["output"]
    assert not comparison.missing_calls


def test_requests_that_both_releases_answer_are_compared_whatever_becomes_of_others(tmp_path: Path) -> None:
    asked = {("first", 0): ["int", 1], ("half", 0): ["int", 1], ("last", 0): ["int", 1]}
    fails = FailedRequest(input_set="half", outcome=Outcome.RUNTIME_ERROR, phase="call")
    old = result("m", Outcome.RUNTIME_ERROR, failed_requests=(fails,))
    golden = Outputs(calls={key: tree for key, tree in asked.items() if key[0] != "half"})
    folder = write_calls(tmp_path / "new", {**asked, ("last", 0): ["int", 2]})
    facts = known(planned("m"), alone={"m": probed(result("m"), directory=folder)})
    baseline = OldAnswers(results=(old, old), golden=golden)
    found = compare(replace(facts, baselines={"m": baseline}, initialized={}), effects(), differs).comparisons[
        "m", "alone"
    ]
    assert {call.input_set: bool(call.tree) for call in found.calls} == {"first": False, "last": True}
    assert not found.missing_calls


@pytest.mark.parametrize(("answered", "wrong", "missing"), [((1, 2), {2}, []), ((1,), set(), [("half", 2)])])
def test_calls_of_a_request_that_raised_before_in_another_call_are_compared(
    tmp_path: Path, answered: tuple[int, ...], wrong: set[int], missing: list[tuple[str, int]]
) -> None:
    fails = FailedRequest(input_set="half", outcome=Outcome.RUNTIME_ERROR, phase="call")
    both = result("m", Outcome.RUNTIME_ERROR, failed_requests=(fails,))
    golden = Outputs(calls={("half", index): ["int", 1] for index in (1, 2)})
    folder = write_calls(tmp_path / "new", {("half", index): ["int", index] for index in answered})
    facts = known(planned("m"), alone={"m": probed(both, directory=folder)})
    baseline = OldAnswers(results=(both, both), golden=golden)
    found = compare(replace(facts, baselines={"m": baseline}, initialized={}), effects(), differs).comparisons[
        "m", "alone"
    ]
    assert {call.call for call in found.calls if call.tree} == wrong
    assert list(found.missing_calls) == missing


@pytest.mark.parametrize(("tolerance", "differing"), [(None, True), (0.5, False), (0.01, True)])
def test_declared_tolerance_is_the_models_own(tmp_path: Path, tolerance: float | None, differing: bool) -> None:
    facts = known(planned(models=(declared("m", tolerance=tolerance),)))
    golden = Outputs(calls={("example", 0): ["float", "1.0"]}, buffer=b"")
    folder = write_answers(tmp_path, {"m": ["float", "1.25"]})
    found = compare_answers("m", legible_outputs(folder, "m"), OldAnswers(golden=golden), facts)
    assert differs(found) is differing


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), ""),
        ((1.0, 1.15, 1.15), (1.0, 1.15, 1.15), "m: later calls of example do not answer as call 0 does"),
        ((1.0, 1.0, 2.0), (1.0, 1.0, 2.0), "alike in both releases"),
        ((1.0, 1.15, 1.15), (1.0, 1.0, 1.0), ""),  # that is a finding
        ((1.0,), (1.0,), ""),
    ],
)
def test_later_calls_that_differ_from_call_0_alike_in_both_releases_are_noted(
    tmp_path: Path, old: tuple[float, ...], new: tuple[float, ...], said: str
) -> None:
    golden, answers = (
        {("example", call): ["float", str(value)] for call, value in enumerate(values)} for values in (old, new)
    )
    facts = known(planned("m"))
    facts = replace(
        facts,
        baselines={"m": replace(facts.baselines["m"], golden=Outputs(calls=golden))},
        alone={"m": probed(result("m"), directory=write_calls(tmp_path, answers))},
        initialized={},
    )
    notes = later_call_notes(compare(facts, effects(), differs), differs, agrees)
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_releases_are_not_said_to_agree_where_the_old_one_does_not_agree_with_itself(tmp_path: Path) -> None:
    """As of memory that nobody has written: a number in one process, NaN in the next."""
    golden, again, new = (
        {("example", call): ["float", value] for call, value in enumerate(("1.0", "1.15", last))}
        for last in ("nan", "2.0", "3.0")
    )
    facts = known(planned("m"))
    repeats = (Outputs(calls=again),)
    facts = replace(
        facts,
        baselines={"m": replace(facts.baselines["m"], golden=Outputs(calls=golden), repeats=repeats)},
        alone={"m": probed(result("m"), directory=write_calls(tmp_path, new))},
        initialized={},
    )
    compared = compare(facts, effects(), differs)
    assert not differs(compared.comparisons["m", "alone"])
    assert later_call_notes(compared, differs, agrees) == ()


@pytest.mark.parametrize(
    ("answers", "changes"),
    [
        ((1, 1, 1), False),
        ((1, 2, 2), False),  # compiled after the first call
        ((1, 2, 3), True),
        ((1,), False),
        ((), False),
    ],
)
def test_module_that_answers_otherwise_once_it_is_warm_keeps_state(answers: tuple[int, ...], *, changes: bool) -> None:
    first = {("example", call): ["int", value] for call, value in enumerate(answers)}
    other = {("batch", call): ["int", call] for call in range(2)} if answers else {}
    assert changes_between_calls(Outputs(calls={**first, **other})) is changes
