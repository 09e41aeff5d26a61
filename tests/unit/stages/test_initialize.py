"""Server groups: who is blamed, who is tried again without the guilty, when the old release is asked."""

import pytest

from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeRequest, ProbeResult, ServingProfile
from harness.stages.concurrent import MAX_ATTEMPTS, initialize_groups, initialize_together, works_alone
from harness.stages.facts import Baseline, Facts, Initialized
from tests.unit.stages.builders import Runner, effects, known, planned, probed, result


def answering(sick: dict[str, dict[str, Outcome]]) -> Runner:
    """Return a runner in which the first sick model of a process (by side) keeps the later ones from running."""

    def answer(request: ProbeRequest) -> ProbeResult:
        found: list[ModelResult] = []
        broken = False
        for run in request.runs:
            name = run.artifact.model
            outcome = Outcome.NOT_RUN if broken else sick.get(request.side, {}).get(name, Outcome.COMPLETED)
            broken = broken or outcome in (Outcome.HANG, Outcome.CRASH)
            found.append(result(name, outcome))
        return probed(*found, side=request.side, directory=f"/run/{request.side}-{request.repeat}", exit_detail="x")

    return Runner(answer)


def together(runner: Runner, *names: str, sides: tuple[str, ...] = ("old", "new")) -> dict[str, Initialized]:
    return initialize_together(names, known(planned(*names)), effects(runner, sides=sides), ServingProfile(name="new"))


def outcomes(found: dict[str, Initialized]) -> dict[str, Outcome]:
    return {name: item.result.outcome for name, item in found.items()}


def test_healthy_group_is_one_process_and_asks_the_old_release_nothing() -> None:
    runner = answering({})
    found = together(runner, "a", "b")
    assert set(outcomes(found).values()) == {Outcome.COMPLETED}
    assert (runner.models("new"), runner.models("old")) == ([["a", "b"]], [])
    assert runner.asked[0].profile.name == "new"


def test_group_starts_its_threads_at_once_even_if_one_was_configured() -> None:
    runner = answering({})
    facts = known(planned("a", "b", settings={"init_threads": 1}))
    initialize_together(["a", "b"], facts, effects(runner), ServingProfile())
    assert runner.asked[0].threads == 2
    facts = known(planned("a", "b", settings={"init_threads": 6}))
    initialize_together(["a", "b"], facts, effects(runner), ServingProfile())
    assert runner.asked[1].threads == 6


def test_guilty_model_is_named_and_the_others_are_tried_again_without_it() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    found = together(runner, "a", "b", "c")
    assert outcomes(found) == {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.COMPLETED}
    assert runner.models("new") == [["a", "b", "c"], ["c"]]
    assert (found["b"].directory, found["c"].directory) == ("/run/new-0", "/run/new-1")
    assert found["b"].exit_detail == "x"


def test_old_release_is_asked_about_the_whole_group_where_the_new_one_fails() -> None:
    runner = answering({"new": {"b": Outcome.HANG}, "old": {"b": Outcome.HANG}})
    found = together(runner, "a", "b", "c")
    assert runner.models("old") == [["a", "b", "c"], ["c"]]
    old = found["b"].old
    assert old is not None
    assert old.outcome is Outcome.HANG
    assert (found["a"].old, found["c"].old) == (None, None)
    assert [item.profile.name for item in runner.asked if item.side == "old"] == ["default"] * 2


def test_golden_records_leave_no_old_release_to_ask() -> None:
    runner = answering({"new": {"b": Outcome.CRASH}})
    found = together(runner, "a", "b", sides=("new",))
    assert runner.models("old") == []
    assert found["b"].old is None


def test_group_in_which_everyone_crashes_is_given_up_and_the_rest_is_not_called_healthy() -> None:
    names = [f"m{index}" for index in range(MAX_ATTEMPTS + 2)]
    runner = answering({"new": dict.fromkeys(names, Outcome.CRASH)})
    found = together(runner, *names)
    assert len(runner.models("new")) == MAX_ATTEMPTS
    assert [outcomes(found)[name] for name in names] == [Outcome.CRASH] * MAX_ATTEMPTS + [Outcome.NOT_RUN] * 2


def test_process_that_names_nobody_is_not_repeated_for_ever() -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model, Outcome.NOT_RUN) for run in request.runs)))
    found = together(runner, "a", "b")
    assert len(runner.models("new")) == 1
    assert set(outcomes(found).values()) == {Outcome.NOT_RUN}


def test_models_that_share_a_process_get_more_time() -> None:
    runner = answering({"new": {"a": Outcome.HANG}})
    names = ("a", "b", "c")
    slow = Baseline(results=(result(load_ns=5_000_000_000),))
    facts = known(planned(*names), baselines=dict.fromkeys(names, slow))
    initialize_together(names, facts, effects(runner), ServingProfile())
    assert [item.deadline.load_s for item in runner.asked][:2] == [pytest.approx(300.0), pytest.approx(200.0)]


def facts_of_group(**changes: Outcome) -> Facts:
    names = ("a", "b", "c")
    alone = {name: probed(result(name, changes.get(name, Outcome.COMPLETED))) for name in names}
    return known(planned(*names, groups={"g": ("a", "b"), "h": ("c",)}), alone=alone)


def test_model_that_fails_alone_is_kept_out_of_its_group() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_group(a=Outcome.LOAD_ERROR), effects(runner))
    assert sorted(runner.models("new")) == [["b"], ["c"]]
    assert set(facts.initialized) == {"b", "c"}


def test_group_without_a_working_member_is_not_started() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_group(c=Outcome.CRASH), effects(runner))
    assert runner.models("new") == [["a", "b"]]
    assert set(facts.initialized) == {"a", "b"}


def test_scenario_that_was_not_asked_for_probes_nothing() -> None:
    runner = answering({})
    facts = known(planned("a", scenarios=("alone",)))
    assert initialize_groups(facts, effects(runner)) is facts
    assert runner.asked == []


def test_model_that_was_never_probed_does_not_work_alone() -> None:
    facts = facts_of_group(a=Outcome.HANG)
    assert [works_alone(name, facts) for name in ("a", "b", "unknown")] == [False, True, False]
