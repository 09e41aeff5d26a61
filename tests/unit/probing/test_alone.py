"""One model alone in the new release."""

import pytest

from harness.core.outcome import Outcome
from harness.core.probe import Deadline, ServingProfile
from harness.probing.alone import deadline_of, probe_alone, probe_model
from harness.probing.facts import Export, OldAnswers
from tests.unit.builders.stages import Runner, declared, effects, known, planned, planted_defect, probed, result


def test_only_models_with_an_artifact_are_probed_each_in_a_process_of_its_own() -> None:
    runner = Runner(lambda request: probed(result(request.runs[0].artifact.model)))
    facts = known(planned("a", "b", "c"))
    broken = Export(declaration=declared("b"), outcome=Outcome.EXPORT_ERROR)
    found = probe_alone(known(facts.plan, exports={**facts.exports, "b": broken}, alone={}), effects(runner))
    assert sorted(runner.models("new")) == [["a"], ["c"]]
    assert list(found.alone) == ["a", "c"]
    assert {(item.script, item.runtime) for item in runner.asked} == {(None, "python")}


def test_a_planted_defect_is_always_probed_in_its_own_run() -> None:
    runner = Runner(lambda request: probed(result(request.runs[0].artifact.model)))
    facts = known(planned("m", "slow"))
    for model in (declared("m"), planted_defect("slow"), declared("slow", tags=("planted", "twin"))):
        probe_model(model, facts, effects(runner), ServingProfile())
    assert [request.runs[0].artifact.model for request in runner.lasting] == ["m"]
    assert len(runner.asked) == 3


def test_accepted_mitigations_are_applied_to_the_new_side() -> None:
    runner = Runner(lambda request: probed(result(request.runs[0].artifact.model)))
    plan = planned("a")
    policy = type(plan.settings.policy)(accepted_mitigations=("profiling off",))
    probe_alone(known(planned("a", settings={"policy": policy})), effects(runner))
    assert [dict(item.profile.switches) for item in runner.asked] == [{"profiling": False}]


def test_deadline_follows_the_baseline() -> None:
    facts = known(planned(), baselines={"m": OldAnswers(results=(result(load_ns=10_000_000_000),))})
    assert deadline_of(declared(), facts).load_s == pytest.approx(200.0)
    assert deadline_of(declared("unknown"), facts).load_s == 60.0


def test_planted_defect_that_hangs_brings_a_short_deadline_of_its_own() -> None:
    assert deadline_of(planted_defect(deadline_s=2.0), known(planned())) == Deadline(
        load_s=2.0, call_s=2.0, total_s=60.0
    )
    assert deadline_of(planted_defect(), known(planned())).call_s == 60.0


def test_nobody_waits_for_the_whole_deadline_where_the_old_release_hung_already() -> None:
    hung = known(planned(), baselines={"m": OldAnswers(results=(result(outcome=Outcome.HANG),))})
    failed = known(planned(), baselines={"m": OldAnswers(results=(result(outcome=Outcome.LOAD_ERROR),))})
    assert (deadline_of(declared(), hung).load_s, deadline_of(declared(), failed).load_s) == (10.0, 60.0)
