"""What is told before a run spends its time."""

import io
from dataclasses import replace
from typing import Any

import pytest

from harness.apps.upgrade.expected import tell_expected, tell_predicted
from harness.core.environment import EnvSpec
from harness.core.models import GivenArtifact
from harness.core.plan import LatencyBudget
from harness.core.probe import CallRecord
from harness.machine.progress import Progress
from harness.probing.facts import OldAnswers
from tests.unit.builders.archives import PROJECT
from tests.unit.builders.stages import artifact, declared, effects, known, planned, probed, result

CALLS = tuple(CallRecord(input_set="example", call=index, duration_ns=1_000_000) for index in range(4))
SET: Any = type("Set", (), {"name": "example"})()


@pytest.mark.parametrize(
    ("load_s", "budget", "budget_s", "told"),
    [
        (1, "quick", 0, []),
        (
            90,
            "off",
            0,
            [
                "to go   about 6 min: initialization about 6 min (a load of a takes 90 s); --budget 5min leaves out what does not fit"
            ],
        ),
        (90, "off", 300, []),
    ],
)
def test_a_long_way_to_go_is_told_before_it_is_gone(load_s: int, budget: str, budget_s: float, told: list[str]) -> None:
    stream = io.StringIO()
    plan = replace(planned("a", settings={"latency": LatencyBudget(budget=budget)}), budget_s=budget_s)
    slow = OldAnswers(results=(result("a", load_ns=load_s * 1_000_000_000, calls=CALLS),))
    artifacts = known(plan).exports["a"]
    exports = {"a": replace(artifacts, artifact=replace(artifact("a"), input_sets=(SET,)))}
    facts = replace(known(plan), exports=exports, baselines={"a": slow}, alone={"a": probed(result("a"))})
    tell_expected(facts, replace(effects(), progress=Progress(stream)))
    assert stream.getvalue().splitlines() == told


@pytest.mark.parametrize(
    ("release", "told"),
    [
        (
            "2.6.0",
            ["foretold  projection will not load in torch 2.6.0: prim::is_ort: torch 2.6.0+cu124 does not have it"],
        ),
        ("2.1.2", []),
        ("0.4.1", []),  # no release of the table
    ],
)
def test_what_will_not_load_is_told_before_anything_is_installed(release: str, told: list[str]) -> None:
    stream = io.StringIO()
    models = tuple(
        declared(name, given=GivenArtifact(path=str(PROJECT / "examples" / "models" / f"{name}.pt")))
        for name in ("projection", "ranker")
    )
    plan = replace(planned(models=(*models, declared("m"))), new=EnvSpec(name=f"torch {release}", release=release))
    tell_predicted(plan, Progress(stream))
    assert [line for line in stream.getvalue().splitlines() if line.startswith("foretold")] == told
    progress = Progress(again := io.StringIO())
    progress.waived = {"projection"}
    tell_predicted(plan, progress)
    assert again.getvalue().count("foretold  projection (has a waiver) will not load") == len(told)
