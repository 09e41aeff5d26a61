"""The digest of what was asked of a model: the same where only the run is another one, another where a verdict may be.

And why a run has no latency.
"""

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.environment import EnvSpec, Environment
from harness.domain.outcome import Outcome
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ServingProfile
from harness.probing.facts import Export, Decided
from harness.run.report import _why_no_latency, asked_digest
from tests.unit.builders.stages import FINGERPRINTS, Runner, artifact, decided, declared, effects, planned, probed


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
        ((False, False), {}, "no model of this run is timed: miniatures test correctness, and say timed=False"),
        ((False, True), {}, "no model that is timed works in both releases"),
        ((False, False), {"latency": LatencyBudget(budget="off")}, "--latency off"),
    ],
)
def test_a_run_without_latency_says_why(timed: tuple[bool, ...], settings: dict[str, Any], why: str) -> None:
    models = tuple(declared(f"m{index}", timed=value) for index, value in enumerate(timed))
    facts = decided(plan=planned(models=models, settings=settings, scenarios=("alone", "latency")))
    sides: Any = dict.fromkeys(("old", "new"), Environment(name="e", interpreter="", spec=EnvSpec(name="e")))
    assert _why_no_latency(facts, replace(effects(Runner(lambda _: probed())), environments=sides)) == why
