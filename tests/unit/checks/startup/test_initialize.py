"""Server groups brought up in both releases: who takes part, in what, and what becomes of everyone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.core.hang import Evidence
from harness.core.outcome import Outcome
from harness.core.plan import LatencyBudget, PolicySettings, Settings
from harness.core.probe import ProbeRequest, ProbeResult, Span, model_of
from harness.probing.facts import Decided, Export, Initialized, NotBegun, OldAnswers, ScenarioResult, Started
from harness.serving.scenarios import INITIALIZATIONS, KEPT_ANSWERS
from harness.apps.upgrade.report.scenarios import scenario_reports, untimed_notes
from harness.checks.startup import initialize
from harness.checks.startup.initialize import (
    bring_up,
    initialize_groups,
    initialize_together,
    paired,
    scenario_result,
    scenarios_of,
    takes_part,
    threads_seen,
    time_initialization,
    works_alone,
)
from harness.checks.startup.readiness import slow_starts
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.stages import (
    NAMES,
    Runner,
    answering,
    artifact,
    in_scenario,
    continued,
    effects,
    facts_of,
    group_run,
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


def launched(runner: Runner, side: str = "new") -> list[str]:
    """Return who was launched together, each process as the letters of its models, copies told once."""
    return ["".join(sorted(set(map(model_of, names)))) for names in runner.models(side)]


# what becomes of everyone


def test_healthy_group_is_one_process_and_the_old_release_is_not_asked() -> None:
    runner = answering({})
    found = brought_up(runner, facts_of("a", "b"))
    assert set(outcomes(found).values()) == {Outcome.COMPLETED}
    assert (launched(runner), launched(runner, "old")) == (["ab"], [])


@pytest.mark.parametrize(
    "noted",
    [
        {"data": {"served_otherwise:a": {"calls": 9, "first": 2}}},
        {"data": {"graph:a": {"max_abs_difference": 1.0, "scale": 1.0}}},
        {"memory": (("0", 1),)},
    ],
    ids=["served otherwise", "a graph", "memory"],
)
def test_old_release_is_asked_where_something_is_held_against_it(noted: dict[str, Any]) -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model) for run in request.runs), **noted))
    brought_up(runner, facts_of("a", "b"))
    assert launched(runner, "old") == ["ab"]


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
    assert launched(runner, "old") == asked_too


@pytest.mark.parametrize(("budget", "sides", "times"), [("quick", NAMES, 1), ("off", NAMES, 0), ("quick", ("new",), 0)])
def test_old_release_brings_up_what_is_healthy_only_for_its_times(
    budget: str, sides: Sequence[str], times: int
) -> None:
    runner = answering({})
    facts = facts_of("a", "b", settings={"latency": LatencyBudget(budget=budget)})
    started = continued(facts, initialize_groups(facts, effects(runner, sides=tuple(sides))))
    found = time_initialization(started, effects(runner, sides=tuple(sides)))
    assert launched(runner, "old") == ["ab"] * times
    assert [item.old is not None for item in found.initialized.values()] == [bool(times)] * 2
    assert [run.side for run in found.group_runs] == ["new", *["old"] * times]


def test_what_the_old_release_was_asked_about_already_is_not_asked_for_its_times() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    facts = facts_of("a", "b")
    started = continued(facts, initialize_groups(facts, effects(runner)))
    before = len(runner.asked)
    found = time_initialization(started, effects(runner))
    assert (len(runner.asked), found.initialized) == (before, started.initialized)


@pytest.mark.parametrize(
    ("left_s", "begun", "times"),
    [(None, True, 1), (600.0, True, 1), (9.0, True, 1), (5.0, False, 0), (-1.0, False, 0)],
)
def test_group_that_does_not_fit_into_the_budget_is_not_begun_and_says_how_long_it_would_have_taken(
    left_s: float | None, begun: bool, times: int
) -> None:
    facts = facts_of("a", "b")
    slow = OldAnswers(results=(result("a", load_ns=8_000_000_000),))
    facts = replace(facts, baselines={**facts.baselines, "a": slow}, worker="libtorch")
    runner = answering({})
    left = effects(runner, left_s=left_s)
    started = initialize_groups(facts, left)
    assert launched(runner) == (["ab"] if begun else [])
    # Four threads share two models: a is loaded twice, two loads at a time.
    kept_out = [NotBegun(scenario="concurrent", group="misc", expected_s=8.0)]
    assert list(started.not_begun) == ([] if begun else kept_out)
    time_initialization(continued(facts, started), left)
    assert len(launched(runner, "old")) == times


def starting(**seconds: Sequence[float]) -> Runner:
    """Return a runner whose processes of a side take so long, one after the other, to get their only model ready."""
    left = {side: iter(values) for side, values in seconds.items()}

    def answer(request: ProbeRequest) -> ProbeResult:
        spent = round(next(left[request.side]) * 1e9)
        span = Span(phase="load", begin_ns=0, end_ns=spent, model=request.runs[0].artifact.model)
        return probed(result(request.runs[0].artifact.model), spans=(span,), side=request.side)

    return Runner(answer)


def timed(runner: Runner, *, others: float = 0.0, **policy: Any) -> Started:
    """Return a model's group brought up alone by both releases, one process at a time; others use so much meanwhile."""
    facts = facts_of("a", settings={"policy": PolicySettings(**policy)})
    begun = continued(facts, initialize_groups(facts, effects(runner)))
    return time_initialization(begun, effects(runner), others=lambda: others)


def test_a_start_that_seems_slower_is_measured_again_in_turn_and_warned_of_where_it_stays_slower() -> None:
    runner = starting(new=(9.0, 6.0, 6.2), old=(3.0, 3.1, 2.9))
    found = timed(runner)
    assert [request.side for request in runner.asked] == ["new", "old", "old", "new", "old", "new"]
    assert len({(request.side, request.repeat) for request in runner.asked}) == 6
    (finding,) = slow_starts(found).values()
    assert finding.size == pytest.approx(6.2 / 3.0)


@pytest.mark.parametrize(
    ("new", "old", "processes"), [((9.0, 3.0), (3.0, 3.1), 4), ((3.1,), (3.0,), 2)], ids=["once", "never"]
)
def test_a_start_that_was_not_slower_each_time_is_none(
    new: Sequence[float], old: Sequence[float], processes: int
) -> None:
    runner = starting(new=new, old=old)
    assert slow_starts(timed(runner)) == {}
    assert len(runner.asked) == processes


def test_a_start_is_not_measured_again_while_others_use_the_machine_and_its_times_are_left_out() -> None:
    runner = starting(new=(9.0,), old=(3.0,))
    found = timed(runner, others=0.4)
    assert len(runner.asked) == 2
    assert slow_starts(found) == {}
    (note,) = untimed_notes(found)
    assert "misc (concurrent init)" in note and "other programs used 40 % of the cores" in note
    assert [report.new.init_s for report in scenario_reports(found)] == [None]


@pytest.mark.parametrize(
    "policy", [{"limits": {"initialization": 1.5}}, {"severity": {"initialization_time": "fail"}}], ids=str
)
def test_a_start_that_a_policy_goes_by_is_measured_again_whatever_others_do(policy: Mapping[str, Any]) -> None:
    runner = starting(new=(9.0, 8.0, 8.0), old=(3.0, 3.0, 3.0))
    found = timed(runner, others=0.4, **policy)
    assert (len(runner.asked), len(slow_starts(found)), untimed_notes(found)) == (6, 1, ())


def test_a_run_that_goes_on_measures_again_what_it_had_begun_to() -> None:
    quiet = starting(new=(9.0, 3.1), old=(3.0, 3.0))
    timed(quiet)
    loud = starting(new=(9.0, 3.1), old=(3.0, 3.0))
    loud.begun = quiet.asked
    assert (untimed_notes(timed(loud, others=0.4)), len(loud.asked)) == ((), 4)


def test_further_starts_have_a_limit_of_time() -> None:
    runner = starting(new=(90.0,), old=(30.0,))
    assert "all such groups have 30 s" in " ".join(untimed_notes(timed(runner)))
    assert len(runner.asked) == 2


@pytest.mark.parametrize(("new", "sides"), [(0.9, ["new"]), (1.1, ["new", "old"])])
def test_nobody_asks_how_long_it_took_before_where_it_takes_less_than_any_slower_start(
    new: float, sides: list[str]
) -> None:
    runner = starting(new=(new,), old=(1.0,))
    assert slow_starts(timed(runner)) == {}
    assert [request.side for request in runner.asked] == sides


def test_a_model_that_fails_only_while_its_start_is_measured_again_has_failed() -> None:
    slow = starting(new=(9.0, 9.0, 9.0), old=(3.0, 3.0, 3.0))

    def answer(request: ProbeRequest) -> ProbeResult:
        done = slow(request)
        fails = request.side == "new" and len(slow.models("new")) == 3
        return replace(done, models=(result("a", Outcome.RUNTIME_ERROR),)) if fails else done

    found = timed(Runner(answer)).initialized["a", "concurrent"].new
    assert (found.result.outcome, found.failed_rounds, found.rounds) == (Outcome.RUNTIME_ERROR, 1, 3)


def test_guilty_model_is_named_and_everyone_else_is_tried_again_without_it() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    found = brought_up(runner, facts_of("a", "b", "c", settings={"init_threads": 3}))
    assert outcomes(found) == {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.COMPLETED}
    assert (launched(runner), launched(runner, "old")) == (["abc", "ac"], ["abc"])
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
    assert launched(runner, "old") == ["abc", "ac"]
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
    assert launched(runner) == ["ab", "b", "ab", "ab"]
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


# a fresh attempt, for a mitigation


def test_fresh_attempt_asks_the_new_release_only_and_remembers_the_old_one() -> None:
    runner = answering({})
    facts = facts_of("a", "b", initialized={("a", "concurrent"): initialized(Outcome.HANG, Outcome.CRASH, "a")})
    found = initialize_together(launcher(runner, facts), ["a", "b"], facts, repeat=1)
    assert runner.models("old") == []
    assert (found["a"].old, found["b"].old) == (in_scenario("a", Outcome.CRASH), None)
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
    assert sorted(launched(runner)) == ["b", "c"]
    assert {name for name, _ in facts.initialized} == {"b", "c"}


def test_group_without_a_working_member_is_not_started() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_groups(c=Outcome.CRASH), effects(runner))
    assert launched(runner) == ["ab"]
    assert {name for name, _ in facts.initialized} == {"a", "b"}
    assert [(run.group, run.side) for run in facts.group_runs] == [("g", "new")]


def test_scenario_that_was_not_asked_for_probes_nothing() -> None:
    runner = answering({})
    facts = facts_of("a", scenarios=("alone", "latency"))
    assert continued(facts, initialize_groups(facts, effects(runner))) == facts
    assert runner.asked == []


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


IN_PYTHON = ("alone", "while_serving", "python_server", "python_keeping")


def test_python_servers_are_brought_up_by_the_python_worker_with_the_models_that_they_are_about() -> None:
    runner = answering({})
    facts = facts_of("a", "b", scenarios=IN_PYTHON, worker="libtorch", for_python=frozenset("b"))
    started = initialize_groups(facts, effects(runner))
    assert {(name, scenario) for name, scenario in started.initialized if "python" in scenario} == {
        ("b", "python_server"),
        ("b", "python_keeping"),
    }
    # In any order: they are asked side by side.
    assert sorted((item.runtime, item.script.keeps) for item in runner.asked if item.script is not None) == [
        ("libtorch", 0),
        ("python", 0),
        ("python", KEPT_ANSWERS),
    ]


def test_python_worker_does_not_load_while_serving_twice() -> None:
    facts = facts_of("a", scenarios=IN_PYTHON, worker="python")
    assert [scenario.name for scenario in scenarios_of(facts)] == ["while_serving", "python_keeping"]
    facts = facts_of("a", scenarios=("alone", "python_server"), worker="python")
    assert [scenario.name for scenario in scenarios_of(facts)] == ["python_server"]


def test_old_release_is_not_asked_for_times_of_python_servers() -> None:
    facts = facts_of("a", scenarios=IN_PYTHON, worker="libtorch", for_python=frozenset("a"))
    facts = replace(facts, plan=replace(facts.plan, settings=Settings(old="2.1.2", new="2.6.0")))
    runner = answering({})
    started = continued(facts, initialize_groups(facts, effects(runner)))
    found = time_initialization(started, effects(runner))
    assert [run.scenario for run in found.group_runs if run.side == "old"] == ["while_serving"]


UNCLEAR = (Outcome.STARVED, Outcome.PROTOCOL_ERROR)

each_unclear = pytest.mark.parametrize("unclear", UNCLEAR)


def probe_of(directory: str, outcomes: Mapping[str, Outcome], **more: Any) -> ProbeResult:
    return probed(*(result(name, outcome) for name, outcome in outcomes.items()), directory=directory, **more)


def failed(
    outcome: Outcome,
    phase: str = "",
    directory: str = "/f",
    of: tuple[str | None, int | None] = (None, None),
    **more: Any,
) -> list[ProbeResult]:
    """Return a round in which ``a`` failed, in a call ``of`` an input set."""
    ended = result("a", outcome, phase=phase, input_set=of[0], call=of[1])
    return [probed(ended, directory=directory, outcome=outcome, **more)]


def fine(directory: str = "/c", **more: Any) -> list[ProbeResult]:
    return [probed(result("a"), directory=directory, **more)]


def ways(found: ScenarioResult) -> list[tuple[Outcome, str, int]]:
    return [(item.result.outcome, item.result.phase_words, item.rounds) for item in found.failures]


def counts(found: ScenarioResult) -> tuple[int, int]:
    return found.rounds, found.failed_rounds


# what is shown


def test_worst_copy_speaks_for_the_model_and_every_copy_that_answered_is_kept() -> None:
    copies = {"a": Outcome.COMPLETED, "a#1": Outcome.RUNTIME_ERROR, "a#2": Outcome.COMPLETED}
    found = scenario_result(group_run([probe_of("/1", copies)]), "a")
    assert (found.result.model, found.result.outcome) == ("a", Outcome.RUNTIME_ERROR)
    assert found.answers == (("a", "/1"), ("a#2", "/1"))


def test_first_failure_is_shown_with_what_belongs_to_it() -> None:
    seen = Evidence(tool="gdb")
    run = group_run(
        fine("/1"),
        failed(Outcome.HANG, directory="/2", evidence=seen, exit_detail="killed"),
        failed(Outcome.CRASH, directory="/3"),
    )
    found = scenario_result(run, "a")
    shown = (found.result.outcome, found.directory, found.evidence, found.exit_detail)
    assert shown == (Outcome.HANG, "/2", seen, "killed")
    assert counts(found) == (3, 2)


def test_model_that_one_round_never_reached_is_not_called_completed_and_that_round_says_nothing() -> None:
    run = group_run(fine("/1"), [probe_of("/2", {"a": Outcome.NOT_RUN})])
    found = scenario_result(run, "a")
    assert (found.result.outcome, found.directory, found.failures) == (Outcome.NOT_RUN, "/2", ())
    assert counts(found) == (1, 0)


def test_model_that_was_reached_in_a_later_attempt_of_the_round_is_well() -> None:
    attempts = [probe_of("/1", {"a": Outcome.NOT_RUN, "b": Outcome.HANG}), probe_of("/2", {"a": Outcome.COMPLETED})]
    found = scenario_result(group_run(attempts, members=("a", "b")), "a")
    assert (found.result.outcome, found.directory) == (Outcome.COMPLETED, "/2")
    assert counts(found) == (1, 0)


def test_name_that_begins_alike_is_another_model() -> None:
    run = group_run([probe_of("/1", {"a": Outcome.COMPLETED, "a#1": Outcome.COMPLETED, "a1": Outcome.HANG})])
    assert scenario_result(run, "a").result.outcome is Outcome.COMPLETED


def test_model_that_no_probe_names_is_an_error_of_ours() -> None:
    with pytest.raises(AssertionError, match="b is a member of g"):
        scenario_result(group_run(fine(), members=("a", "b")), "b")


# ways to fail


def test_each_outcome_and_phase_is_a_way_to_fail_with_its_rounds_and_its_first_evidence() -> None:
    first, second = Evidence(tool="gdb"), Evidence(tool="eu-stack")
    run = group_run(
        failed(Outcome.HANG, "call", "/1", of=("example", 0), evidence=first, exit_detail="killed"),
        failed(Outcome.HANG, "call", "/2", of=("other values", 3), evidence=second),
        failed(Outcome.HANG, "load", "/3"),
        failed(Outcome.CRASH, "load", "/4", exit_detail="signal SIGSEGV"),
        fine(),
        failed(Outcome.HANG, "call", "/6", of=("example", 1)),
    )
    found = scenario_result(run, "a")
    assert ways(found) == [
        (Outcome.HANG, "call 0 of example", 3),
        (Outcome.HANG, "load", 1),
        (Outcome.CRASH, "load", 1),
    ]
    assert [(item.directory, item.evidence, item.exit_detail) for item in found.failures] == [
        ("/1", first, "killed"),
        ("/3", None, ""),
        ("/4", None, "signal SIGSEGV"),
    ]
    assert counts(found) == (6, 5)
    assert found.result == found.failures[0].result


def test_copies_that_fail_alike_in_a_round_are_one_way_and_one_round() -> None:
    together = [result("a", Outcome.HANG, phase="load"), result("a#1", Outcome.HANG, phase="load")]
    found = scenario_result(group_run([probed(*together), probed(*together)]), "a")
    assert ways(found) == [(Outcome.HANG, "load", 1)]
    assert counts(found) == (1, 1)


def test_copies_that_fail_differently_in_one_round_are_two_ways_in_one_failed_round() -> None:
    both = probed(result("a", Outcome.LOAD_ERROR, phase="load"), result("a#1", Outcome.RUNTIME_ERROR, phase="call"))
    found = scenario_result(group_run([both]), "a")
    assert ways(found) == [(Outcome.LOAD_ERROR, "load", 1), (Outcome.RUNTIME_ERROR, "call", 1)]
    assert counts(found) == (1, 1)


def test_way_to_fail_has_the_phase_without_the_call() -> None:
    hung = result("a", Outcome.HANG, phase="call", input_set="other values", call=3)
    assert (hung.way, hung.phase_words) == ((Outcome.HANG, "call"), "call 3 of other values")


# rounds that say nothing


@each_unclear
def test_round_that_says_nothing_is_not_judged_and_comes_after_what_says_something(unclear: Outcome) -> None:
    rounds = failed(unclear, "load", "/1"), failed(Outcome.HANG, "load", "/2"), failed(Outcome.CRASH, "load"), fine()
    found = scenario_result(group_run(*rounds), "a")
    assert [item.result.outcome for item in found.failures] == [Outcome.HANG, Outcome.CRASH, unclear]
    assert (found.result.outcome, found.directory, counts(found)) == (Outcome.HANG, "/2", (3, 2))


@each_unclear
def test_model_of_which_nothing_was_learnt_says_so(unclear: Outcome) -> None:
    found = scenario_result(group_run(failed(unclear), failed(unclear)), "a")
    assert (found.result.outcome, found.answers, counts(found)) == (unclear, (), (0, 0))
    assert ways(found) == [(unclear, "", 2)]


@each_unclear
@pytest.mark.parametrize(
    ("first", "answers", "rounds"), [(Outcome.COMPLETED, (("a", "/1"),), (0, 0)), (Outcome.CRASH, (), (1, 1))]
)
def test_round_in_which_a_copy_says_nothing_is_judged_only_where_another_fails(
    unclear: Outcome, first: Outcome, answers: tuple[tuple[str, str], ...], rounds: tuple[int, int]
) -> None:
    found = scenario_result(group_run([probe_of("/1", {"a": first, "a#1": unclear})]), "a")
    assert (found.answers, counts(found)) == (answers, rounds)


# what the worker noted


def graph(difference: float, scale: float = 2.0) -> dict[str, Any]:
    return {"max_abs_difference": difference, "scale": scale}


@pytest.mark.parametrize("mark", ["graph:a", "graph:a#2"])
@pytest.mark.parametrize(
    "worst", [graph(0.5), graph(0.4, 1.0), graph(math.nan), graph(math.inf), graph(0.3, 0.0)], ids=str
)
def test_numbers_of_the_worst_graph_of_any_copy_and_round_come_with_the_model(mark: str, worst: dict[str, Any]) -> None:
    marks = [{"graph:a#1": graph(0.0)}, {mark: worst, "graph:b": graph(99.0)}, {"graph:a": graph(0.5, 20.0)}]
    assert scenario_result(group_run(*(fine(data=data) for data in marks)), "a").graph is worst


def test_what_is_noted_of_another_model_is_not_of_this_one() -> None:
    data = {"graph:b": graph(1.0), "graphs:a": graph(1.0), "served_otherwise:ab": {}, "served:a": {}}
    found = scenario_result(group_run(fine(data=data)), "a")
    assert (found.graph, found.served_otherwise) == (None, None)


@pytest.mark.parametrize("mark", ["served_otherwise:a", "served_otherwise:a#5"])
def test_answers_while_serving_that_differ_come_with_the_model(mark: str) -> None:
    first, later = {"calls": 3, "first": 7}, {"calls": 1, "first": 1}
    rounds = [fine(), fine(data={mark: first, "served_otherwise:b": {}}), fine(data={"served_otherwise:a": later})]
    assert scenario_result(group_run(*rounds), "a").served_otherwise == first


@pytest.mark.parametrize(("threads", "seen"), [((), 1), ((0,), 1), ((0, 3, 1), 4)])
def test_threads_are_those_that_did_something(threads: tuple[int, ...], seen: int) -> None:
    spans = tuple(Span(phase="load", begin_ns=0, end_ns=1, thread=thread) for thread in threads)
    run = group_run(fine(), fine(spans=spans))
    assert (threads_seen(run), scenario_result(run, "a").threads) == (seen, seen)


# both releases


def test_releases_are_paired_by_model_and_scenario() -> None:
    hung = probe_of("/old", {"a": Outcome.HANG, "b": Outcome.COMPLETED})
    well = probe_of("/new", {"a": Outcome.COMPLETED, "b": Outcome.COMPLETED})
    runs = [
        group_run([well], members=("a", "b")),
        group_run([hung], side="old", members=("a", "b")),
        group_run([well], scenario="reinit", members=("a", "b")),
    ]
    found = paired(iter(runs))
    assert set(found) == {(name, scenario) for name in "ab" for scenario in ("concurrent", "reinit")}
    assert {key: None if item.old is None else item.old.result.outcome for key, item in found.items()} == {
        ("a", "concurrent"): Outcome.HANG,
        ("b", "concurrent"): Outcome.COMPLETED,
        ("a", "reinit"): None,
        ("b", "reinit"): None,
    }
    assert {item.new.directory for item in found.values()} == {"/new"}
