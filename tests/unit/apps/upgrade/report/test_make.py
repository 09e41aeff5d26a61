"""The digest of what was asked of a model, which changes where a verdict may; what probes took; why latency has none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.outcome import Outcome
from harness.core.plan import Cell, LatencyBudget
from harness.core.probe import ServingProfile, Span
from harness.probing.facts import Export
from harness.apps.upgrade.report.make import (
    _earlier_notes,
    _why_no_latency,
    asked_digest,
    different_builds,
    durations_s,
    earlier_answers,
)
from harness.store.run_folder import RunDir
from harness.machine import clock
from tests.unit.builders.stages import (
    FINGERPRINTS,
    Runner,
    artifact,
    decided,
    declared,
    effects,
    group_run,
    known,
    measured,
    planned,
    probed,
    result,
)
from tests.unit.builders.tensors import near


def digest(
    *, settings: dict[str, Any] | None = None, declares: dict[str, Any] | None = None, **of_artifact: Any
) -> str:
    model = declared(**(declares or {}))
    made = Export(declaration=model, outcome=Outcome.COMPLETED, artifact=artifact(**of_artifact))
    facts = decided(plan=planned(settings=settings), fingerprints=FINGERPRINTS, exports={"m": made})
    return asked_digest(model, facts)


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "d2"},
        {"inputs_digest": "i2"},
        {"schedule": (("example", 9),)},
        {"declares": {"tolerance": 0.1}},
        {"declares": {"seed": 5}},
        {"settings": {"calls": 9}},
        {"settings": {"computes_in": {"m": "bfloat16"}}},
        {"settings": {"profile": ServingProfile(name="default", switches={"profiling_mode": False})}},
        {"settings": {"new_profile": ServingProfile(name="default", switches={"profiling_mode": False})}},
    ],
)
def test_what_a_verdict_depends_on_gives_another_digest(change: dict[str, Any]) -> None:
    assert digest(**change) != digest()


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/another/run/m.pt", "inputs_dir": "/another/run/inputs"},
        {"settings": {"jobs": 7}},
        {"settings": {"explain": 60.0}},
        {"declares": {"line": 90, "source_digest": "another function of the same file was changed"}},
    ],
)
def test_where_and_how_a_run_is_made_changes_nothing(change: dict[str, Any]) -> None:
    assert digest(**change) == digest()


def test_without_a_digest_of_the_inputs_the_source_stands_for_them() -> None:
    first, second = (digest(inputs_digest="", declares={"source_digest": text}) for text in "12")
    assert first != second


def test_of_a_model_without_an_artifact_nothing_was_asked() -> None:
    model = declared()
    facts = decided(plan=planned(), exports={"m": Export(declaration=model, outcome=Outcome.EXPORT_ERROR)})
    assert asked_digest(model, facts) == ""
    assert asked_digest(model, replace(facts, fingerprints=FINGERPRINTS)) == ""


@pytest.mark.parametrize(
    ("timed", "settings", "why"),
    [
        ((False, False), {}, "every model says timed=False"),
        ((False, True), {}, "no model that is timed works in both releases"),
        ((False, False), {"latency": LatencyBudget(budget="off")}, "--latency off"),
    ],
)
def test_a_run_without_latency_says_why(timed: tuple[bool, ...], settings: dict[str, Any], why: str) -> None:
    models = tuple(declared(f"m{index}", timed=value) for index, value in enumerate(timed))
    facts = decided(plan=planned(models=models, settings=settings, scenarios=("alone", "latency")))
    sides: Any = dict.fromkeys(("old", "new"), Environment(name="e", interpreter="", spec=EnvSpec(name="e")))
    assert _why_no_latency(facts, replace(effects(Runner(lambda _: probed())), environments=sides)) == why


def test_a_run_that_ended_early_goes_on_with_a_command_that_finds_it_wherever_it_is_kept(tmp_path: Path) -> None:
    kept = replace(planned(models=(declared("m"),), scenarios=("alone",)), until="correctness")
    sides: Any = dict.fromkeys(("old", "new"), Environment(name="e", interpreter="", spec=EnvSpec(name="e")))
    with RunDir.create(tmp_path / "elsewhere", "t", clock.utc_now()) as run_dir:
        run_dir.save_plan(kept)
        world = replace(effects(Runner(lambda _: probed())), environments=sides, run_dir=run_dir)
        why = _why_no_latency(decided(plan=kept), world)
    name = why.partition("--resume ")[2].removesuffix(" goes on with it")
    with RunDir.open(tmp_path / "default", name) as found:
        assert found.path == run_dir.path


def span(phase: str, begin_s: float, end_s: float, model: str = "", *, finished: bool = True) -> Span:
    return Span(phase=phase, begin_ns=round(begin_s * 1e9), end_ns=round(end_s * 1e9), model=model, finished=finished)


def test_a_process_of_one_model_counts_whole_in_both_releases() -> None:
    facts = known(planned("a", "b"))
    probes = [
        probed(result("a"), side=side, key=side, spans=(span("import", 0, 2), span("load", 2, 5, "a")))
        for side in ("old", "new")
    ]
    assert durations_s(facts, probes) == {Cell("a", "alone").id: near(10.0)}


def test_a_probe_of_an_earlier_run_that_was_asked_for_twice_counts_once() -> None:
    own, earlier = probed(result("a"), key="own"), replace(probed(result("a"), key="kept"), earlier="then")
    other = replace(probed(result("b"), key="other"), earlier="before")
    assert earlier_answers([own, earlier, earlier, other]) == {"then": 1, "before": 1}
    (note,) = _earlier_notes([own, earlier, earlier, other])
    assert note.startswith("2 of 3 probes are those of earlier runs (then)")
    assert list(_earlier_notes([own])) == []


def test_models_that_share_a_process_count_for_their_own_loads_and_calls() -> None:
    spans = (span("load", 0, 3, "a"), span("call", 3, 4, "a#1"), span("load", 0, 1, "b"), span("serve", 0, 9, "b"))
    probe = probed(result("a"), result("b"), key="g", spans=spans)
    facts = replace(known(planned("a", "b")), group_runs=(group_run([probe], members=("a", "b")),))
    cells = {name: Cell(name, "concurrent").id for name in "ab"}
    assert durations_s(facts, [probe]) == {cells["a"]: near(4.0), cells["b"]: near(1.0)}
    batch = durations_s(replace(facts, group_runs=()), [probe])
    assert batch == {Cell("a", "alone").id: near(4.0), Cell("b", "alone").id: near(1.0)}


def test_a_latency_took_its_measuring_time_and_what_was_never_probed_has_none() -> None:
    facts = replace(known(planned("a", "b")), latency={"a": replace(measured(0.9, 1.1, "a"), spent_s=5.7)})
    assert durations_s(facts, []) == {Cell("a", "latency").id: 5.7}


def test_planted_defects_and_phases_that_never_ended_count_for_nothing() -> None:
    facts = known(planned("a"))
    hung = probed(result("a"), spans=(span("load", 0, 1, "a"), span("call", 1, 99, "a", finished=False)))
    planted = probed(result("planted_hang"), key="p", spans=(span("load", 0, 7, "planted_hang"),))
    assert durations_s(facts, [hung, planted]) == {Cell("a", "alone").id: near(1.0)}


@pytest.mark.parametrize(
    ("cuda", "noted"),
    [((None, "12.4"), True), (("12.1", None), True), (("12.1", "12.4"), False), ((None, None), False)],
)
def test_two_kinds_of_build_are_named_in_the_notes(cuda: tuple[str | None, str | None], noted: bool) -> None:
    old, new = (replace(FINGERPRINTS[side], cuda=each) for side, each in zip(("old", "new"), cuda, strict=True))
    notes = list(different_builds({"old": old, "new": new}))
    assert ["with CUDA 12" in note and "without CUDA" in note for note in notes] == [True] * noted
