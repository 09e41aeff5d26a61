"""Server groups brought up in both releases: who takes part, in what, and what becomes of everyone."""

from tests.unit.builders.stages import continued
from collections.abc import Mapping, Sequence

import pytest

from harness.domain.outcome import Outcome
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.domain.probe import model_of
from harness.probing.facts import Export, Decided, Initialized
from harness.startup.initialize import (
    bring_up,
    initialize_groups,
    initialize_together,
    scenarios_of,
    takes_part,
    time_initialization,
    works_alone,
)
from harness.startup import initialize
from harness.startup.results import scenario_result
from harness.tensors.outputs import Outputs
from harness.scenarios import INITIALIZATIONS
from tests.unit.builders.stages import (
    NAMES,
    Runner,
    answering,
    artifact,
    came,
    effects,
    facts_of,
    initialized,
    known,
    launcher,
    planned,
    probed,
    result,
)


def brought_up(runner: Runner, facts: Decided, sides: tuple[str, ...] = ("old", "new")) -> dict[str, Initialized]:
    """Return what became of every model in the only scenario."""
    return {
        name: item for (name, _), item in initialize_groups(facts, effects(runner, sides=sides)).initialized.items()
    }


def outcomes(found: Mapping[str, Initialized]) -> dict[str, Outcome]:
    return {name: item.new.result.outcome for name, item in found.items()}


def asked(runner: Runner, side: str = "new") -> list[str]:
    """Return who was launched together, each process as the letters of its models, copies told once."""
    return ["".join(sorted(set(map(model_of, names)))) for names in runner.models(side)]


# what becomes of everyone


def test_healthy_group_is_one_process_and_the_old_release_is_not_asked() -> None:
    runner = answering({})
    found = brought_up(runner, facts_of("a", "b"))
    assert set(outcomes(found).values()) == {Outcome.COMPLETED}
    assert (asked(runner), asked(runner, "old")) == (["ab"], [])


@pytest.mark.parametrize("mark", ["served_otherwise", "graph"])
def test_old_release_is_asked_where_the_new_one_serves_or_replays_otherwise(mark: str) -> None:
    data = {f"{mark}:a": {"calls": 9, "first": 2, "max_abs_difference": 1.0, "scale": 1.0}}
    runner = Runner(lambda request: probed(*(result(run.artifact.model) for run in request.runs), data=data))
    brought_up(runner, facts_of("a", "b"))
    assert asked(runner, "old") == ["ab"]


def test_old_release_is_asked_where_memory_is_measured() -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model) for run in request.runs), memory=(("0", 1),)))
    brought_up(runner, facts_of("a", "b"))
    assert asked(runner, "old") == ["ab"]


@pytest.mark.parametrize(("beside", "asked_too"), [(1.0, []), (2.0, ["a"])])
def test_old_release_is_asked_where_other_bits_are_answered_than_alone(
    beside: float, asked_too: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"/run/probes/k": 1.0, "/run/new-0": beside}

    def outputs(directory: str, _name: str) -> Outputs:
        return Outputs(calls={("example", 0): {"value": answers.get(directory, 1.0)}}, buffer=b"")

    monkeypatch.setattr(initialize, "legible_outputs", outputs)
    runner = answering({})
    brought_up(runner, facts_of("a"))
    assert asked(runner, "old") == asked_too


@pytest.mark.parametrize(("budget", "sides", "times"), [("quick", NAMES, 1), ("off", NAMES, 0), ("quick", ("new",), 0)])
def test_old_release_brings_up_what_is_healthy_only_for_its_times(
    budget: str, sides: Sequence[str], times: int
) -> None:
    runner = answering({})
    facts = facts_of("a", "b", settings={"latency": LatencyBudget(budget=budget)})
    started = continued(facts, initialize_groups(facts, effects(runner, sides=tuple(sides))))
    found = time_initialization(started, effects(runner, sides=tuple(sides)))
    assert asked(runner, "old") == ["ab"] * times
    assert [item.old is not None for item in found.initialized.values()] == [bool(times)] * 2
    assert [run.side for run in found.group_runs] == ["new", *["old"] * times]


def test_what_the_old_release_was_asked_about_already_is_not_asked_for_its_times() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    facts = facts_of("a", "b")
    started = continued(facts, initialize_groups(facts, effects(runner)))
    before = len(runner.asked)
    found = time_initialization(started, effects(runner))
    assert (len(runner.asked), found.initialized) == (before, started.initialized)


def test_guilty_model_is_named_and_everyone_else_is_tried_again_without_it() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    found = brought_up(runner, facts_of("a", "b", "c", settings={"init_threads": 3}))
    assert outcomes(found) == {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.COMPLETED}
    assert (asked(runner), asked(runner, "old")) == (["abc", "ac"], ["abc"])
    assert (found["b"].new.directory, found["c"].new.directory) == ("/run/new-0", "/run/new-1")
    assert found["b"].new.exit_detail == "x"
    assert {name: found[name].new.answers for name in "abc"} == {
        "a": (("a", "/run/new-0"), ("a", "/run/new-1"), ("a#1", "/run/new-1")),
        "b": (),
        "c": (("c", "/run/new-1"),),
    }


def test_old_release_is_asked_where_the_new_one_fails_under_its_own_profile() -> None:
    runner = answering({"old": {"b": Outcome.HANG}, "new": {"c": Outcome.LOAD_ERROR}})
    policy = PolicySettings(accepted_mitigations=("profiling off",))
    found = brought_up(runner, facts_of("a", "b", "c", settings={"policy": policy}))
    assert asked(runner, "old") == ["abc", "ac"]
    old = {name: item.old for name, item in found.items()}
    assert {name: item.result.outcome for name, item in old.items() if item is not None} == {
        "a": Outcome.COMPLETED,
        "b": Outcome.HANG,
        "c": Outcome.COMPLETED,
    }
    switches = {
        side: {tuple(item.profile.switches.items()) for item in runner.asked if item.side == side} for side in NAMES
    }
    assert switches == {"old": {()}, "new": {(("profiling", False),)}}


def test_golden_records_leave_no_old_release_to_ask() -> None:
    runner = answering({"new": {"b": Outcome.CRASH}})
    found = brought_up(runner, facts_of("a", "b"), sides=("new",))
    assert runner.models("old") == []
    assert [item.old for item in found.values()] == [None, None]


def test_each_round_is_a_process_of_its_own_and_counts() -> None:
    runner = answering({"new": {"a": Outcome.HANG}}, only_first=2)  # its first round: all, and again without ``a``
    found = brought_up(runner, facts_of("a", "b", settings={"init_rounds": 3, "init_threads": 2}))
    assert asked(runner) == ["ab", "b", "ab", "ab"]
    new = found["a"].new
    assert (new.result.outcome, new.rounds, new.failed_rounds) == (Outcome.HANG, 3, 1)
    assert len(new.answers) == 2
    old = found["a"].old
    assert old is not None
    assert (old.result.outcome, old.rounds, old.failed_rounds) == (Outcome.COMPLETED, 3, 0)


def test_one_process_that_fails_is_a_failure_of_the_model_and_of_that_round() -> None:
    runner = answering({"new": {"b": Outcome.CRASH}}, only_first=1)
    facts = facts_of("a", "b", scenarios=("processes",), settings={"init_threads": 2, "init_rounds": 2, "jobs": 1})
    run = bring_up(launcher(runner, facts, "processes"), "g", ["a", "b"])
    found = scenario_result(run, "b")
    assert (found.result.outcome, found.rounds, found.failed_rounds, len(found.answers)) == (Outcome.CRASH, 2, 1, 3)
    assert len(runner.asked) == 4  # nobody is tried again: another process of that round had everyone


# a fresh attempt, for a cure


def test_fresh_attempt_asks_the_new_release_only_and_remembers_the_old_one() -> None:
    runner = answering({})
    facts = facts_of("a", "b", initialized={("a", "concurrent"): initialized(Outcome.HANG, Outcome.CRASH, "a")})
    found = initialize_together(launcher(runner, facts), ["a", "b"], facts, repeat=1)
    assert runner.models("old") == []
    assert (found["a"].old, found["b"].old) == (came("a", Outcome.CRASH), None)
    assert found["a"].new.result.outcome is Outcome.COMPLETED


# who takes part


def facts_of_groups(**changes: Outcome) -> Decided:
    names = ("a", "b", "c")
    alone = {name: probed(result(name, changes.get(name, Outcome.COMPLETED))) for name in names}
    plan = planned(*names, groups={"g": ("a", "b"), "h": ("c",)}, scenarios=("alone", "concurrent"))
    return known(plan, alone=alone)


def test_model_that_fails_alone_is_kept_out_of_its_group() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_groups(a=Outcome.LOAD_ERROR), effects(runner))
    assert sorted(asked(runner)) == ["b", "c"]
    assert {name for name, _ in facts.initialized} == {"b", "c"}


def test_group_without_a_working_member_is_not_started() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_groups(c=Outcome.CRASH), effects(runner))
    assert asked(runner) == ["ab"]
    assert {name for name, _ in facts.initialized} == {"a", "b"}
    assert [(run.group, run.side) for run in facts.group_runs] == [("g", "new")]


def test_scenario_that_was_not_asked_for_probes_nothing() -> None:
    runner = answering({})
    facts = facts_of("a", scenarios=("alone", "latency"))
    assert continued(facts, initialize_groups(facts, effects(runner))) == facts
    assert runner.asked == []


def test_model_that_was_never_probed_does_not_work_alone() -> None:
    facts = facts_of_groups(a=Outcome.HANG)
    assert [works_alone(name, facts) for name in ("a", "b", "unknown")] == [False, True, False]


def test_module_that_keeps_state_is_shared_with_nobody() -> None:
    facts = facts_of("a", "b", scenarios=("shared", "same_file"))
    stateful = Export(
        declaration=facts.exports["a"].declaration, outcome=Outcome.COMPLETED, artifact=artifact("a", reset="clear")
    )
    facts = known(facts.plan, exports={**facts.exports, "a": stateful})
    found = initialize_groups(facts, effects(answering({}))).initialized
    assert set(found) == {("b", "shared"), ("a", "same_file"), ("b", "same_file")}
    assert [takes_part(INITIALIZATIONS[name], "a", facts) for name in ("shared", "same_file")] == [False, True]


@pytest.mark.parametrize(
    ("worker", "done"),
    [("python", ["concurrent", "while_serving"]), ("libtorch", ["concurrent", "while_serving", "inter_op"])],
)
def test_what_the_python_worker_cannot_do_is_left_out(worker: str, done: list[str]) -> None:
    facts = facts_of("a", scenarios=("alone", "concurrent", "while_serving", "inter_op", "latency"), worker=worker)
    assert [scenario.name for scenario in scenarios_of(facts)] == done


def test_every_scenario_of_the_plan_has_facts_of_its_own() -> None:
    runner = answering({})
    facts = initialize_groups(
        facts_of("a", scenarios=("alone", "concurrent", "while_serving", "latency")), effects(runner)
    )
    assert set(facts.initialized) == {("a", "concurrent"), ("a", "while_serving")}
    assert len(facts.initialized["a", "while_serving"].new.answers) > 1
