"""One side's processes of a scenario: what is asked of them, and who is to blame where one ends early."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.outcome import Outcome
from harness.core.plan import PolicySettings
from harness.core.probe import ModelResult, ProbeRequest, ProbeResult, Script, ServingProfile, model_of
from harness.probing.facts import Decided, OldAnswers
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.table import WIDE_POOL
from harness.checks.startup.initialize import bring_up, initialize_groups, initialize_together
from harness.checks.startup.launch import blamed, threads_of
from harness.serving.scenarios import INITIALIZATIONS
from tests.unit.builders.stages import Runner, answering, artifact, effects, facts_of, launcher, probed, result

ENDINGS = (Outcome.HANG, Outcome.CRASH, Outcome.OUT_OF_MEMORY)
UNCLEAR = (Outcome.STARVED, Outcome.PROTOCOL_ERROR)

each_ending = pytest.mark.parametrize("outcome", ENDINGS)


def ending(
    outcome: Outcome,
    *,
    by: Collection[str] = (),
    pairs: Sequence[Collection[str]] = (),
    at_work: Collection[str] | None = None,
    done: Collection[str] = (),
    phase: str = "load",
) -> Runner:
    """Return a runner whose processes end early where one of ``by`` takes part, or all of one of ``pairs``.

    Args:
        at_work: who was, by the process's own account; None: all of them.
        done: who has answered by then; ``phase``: where the others were.
    """

    def answer(request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        models = set(map(model_of, names))
        over = bool(models & set(by)) or any(set(pair) <= models for pair in pairs)

        def one(name: str) -> ModelResult:
            if not over or model_of(name) in done:
                return result(name)
            working = at_work is None or model_of(name) in at_work
            return result(name, outcome if working else Outcome.NOT_RUN, phase=phase if working else "")

        process = outcome if over else Outcome.COMPLETED
        return probed(*map(one, names), side=request.side, outcome=process, directory=f"/run/{request.repeat}")

    return Runner(answer)


def one_round(
    runner: Runner, *names: str, scenario: str = "concurrent", number: int = 0, **settings: Any
) -> list[dict[str, Outcome]]:
    """Return what became of whom in each probe of one round, in order, copies told as one if all fare alike."""
    facts = facts_of(*names, settings={"init_threads": 2, "jobs": 1, **settings})
    return [folded(became(probe)) for probe in launcher(runner, facts, scenario).round(names, number)]


def became(probe: ProbeResult) -> dict[str, Outcome]:
    return {item.model: item.outcome for item in probe.models}


def folded(found: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {name: one for name, one in found.items() if name == model_of(name) or one is not found[model_of(name)]}


def launched(runner: Runner) -> list[str]:
    """Return who was launched together, each process as the letters of its models, copies told once."""
    return ["".join(sorted({model_of(name) for name in names})) for names in runner.models("new")]


def keys(runner: Runner) -> list[tuple[str, tuple[str, ...], int]]:
    """Return what distinguishes the requests of a runner in one scenario: equal ones share a stored result."""
    return [(item.side, tuple(run.artifact.model for run in item.runs), item.repeat) for item in runner.asked]


# who is to blame


@each_ending
@pytest.mark.parametrize("at_work", [None, ("b", "c"), ()], ids=["all at work", "two at work", "nobody at work"])
def test_each_suspect_is_launched_by_itself_and_only_who_fails_then_is_guilty(
    outcome: Outcome, at_work: Collection[str] | None
) -> None:
    runner = ending(outcome, by=["b"], at_work=at_work)
    assert one_round(runner, "a", "b", "c") == [
        {"a": Outcome.NOT_RUN, "b": outcome, "c": Outcome.NOT_RUN},
        {"a": Outcome.COMPLETED, "c": Outcome.COMPLETED},
    ]
    suspects = ["b", "c"] if at_work else ["a", "b", "c"]
    first, *by_themselves, last = launched(runner)
    assert (first, sorted(by_themselves), last) == ("abc", suspects, "ac")


@each_ending
def test_only_one_at_work_is_guilty_without_being_launched_again(outcome: Outcome) -> None:
    runner = ending(outcome, by=["b"], at_work=["b"])
    assert one_round(runner, "a", "b", "c")[0] == {"a": Outcome.NOT_RUN, "b": outcome, "c": Outcome.NOT_RUN}
    assert launched(runner) == ["abc", "ac"]


def test_all_who_serve_are_charged_with_how_their_process_exits_and_none_is_launched_again() -> None:
    runner = ending(Outcome.CRASH, by=["b"], phase="exit")
    assert one_round(runner, "a", "b", "c", scenario="exit") == [dict.fromkeys("abc", Outcome.CRASH)]
    assert launched(runner) == ["abc"]


@each_ending
@pytest.mark.parametrize("at_work", [None, ()], ids=["at work", "nobody at work"])
def test_only_member_is_guilty_without_being_launched_again(outcome: Outcome, at_work: Collection[str] | None) -> None:
    runner = ending(outcome, by=["a"], at_work=at_work)
    assert one_round(runner, "a") == [{"a": outcome}]
    assert launched(runner) == ["a"]


def test_copies_of_one_model_at_work_are_one_suspect() -> None:
    runner = ending(Outcome.HANG, by=["a"], at_work=["a"])
    assert one_round(runner, "a", "b", scenario="same_file")[0] == {"a": Outcome.HANG, "b": Outcome.NOT_RUN}
    assert launched(runner) == ["ab", "b"]


@each_ending
@pytest.mark.parametrize("at_work", [("a", "b"), None], ids=["two at work", "all at work"])
def test_where_nobody_fails_by_itself_all_suspects_are_named(outcome: Outcome, at_work: Collection[str] | None) -> None:
    runner = ending(outcome, pairs=["ab"], at_work=at_work)
    found = one_round(runner, "a", "b", "c")
    if at_work is None:
        assert found == [{"a": outcome, "b": outcome, "c": outcome}]
        assert sorted(launched(runner)) == ["a", "abc", "b", "c"]
    else:
        assert found == [{"a": outcome, "b": outcome, "c": Outcome.NOT_RUN}, {"c": Outcome.COMPLETED}]
        assert launched(runner) == ["abc", "a", "b", "c"]  # the last one is the next attempt


@each_ending
def test_end_outside_of_every_phase_is_on_those_who_end_a_process_by_themselves(outcome: Outcome) -> None:
    runner = ending(outcome, by=["b"], at_work=(), done=["a", "b"])
    assert one_round(runner, "a", "b")[0] == {"a": Outcome.COMPLETED, "b": outcome}
    runner = ending(outcome, pairs=["ab"], at_work=(), done=["a", "b"])
    assert one_round(runner, "a", "b") == [{"a": outcome, "b": outcome}]


def test_several_who_fail_by_themselves_are_all_guilty() -> None:
    runner = ending(Outcome.CRASH, by=["a", "c"])
    assert one_round(runner, "a", "b", "c") == [
        {"a": Outcome.CRASH, "b": Outcome.NOT_RUN, "c": Outcome.CRASH},
        {"b": Outcome.COMPLETED},
    ]


@pytest.mark.parametrize("unclear", UNCLEAR)
def test_suspect_by_itself_that_says_nothing_is_not_guilty(unclear: Outcome) -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        by_itself = unclear if request.repeat == 999 else Outcome.COMPLETED
        outcome = Outcome.HANG if "b" in names else by_itself
        return probed(*(result(name, outcome) for name in names), outcome=outcome)

    runner = Runner(answer)
    assert one_round(runner, "a", "b") == [{"a": Outcome.NOT_RUN, "b": Outcome.HANG}, {"a": Outcome.COMPLETED}]
    assert launched(runner) == ["ab", "a", "b", "a"]


def test_suspect_that_only_raises_by_itself_has_ended_nothing() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        if "b" in names:
            return probed(*(result(name, Outcome.CRASH) for name in names), outcome=Outcome.CRASH)
        return probed(*(result(name, Outcome.RUNTIME_ERROR) for name in names))

    assert one_round(Runner(answer), "a", "b")[0] == {"a": Outcome.NOT_RUN, "b": Outcome.CRASH}


@pytest.mark.parametrize("unclear", UNCLEAR)
@pytest.mark.parametrize("at_work", [None, (), ("a",)], ids=["all at work", "nobody at work", "one at work"])
def test_end_that_is_no_word_about_the_release_names_nobody(unclear: Outcome, at_work: Collection[str] | None) -> None:
    runner = ending(unclear, by=["a"], at_work=at_work)
    (found,) = one_round(runner, "a", "b")
    assert found == {name: unclear if at_work is None or name in at_work else Outcome.NOT_RUN for name in ("a", "b")}
    assert launched(runner) == ["ab"]


@pytest.mark.parametrize("outcome", [Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR, Outcome.OUT_OF_MEMORY])
def test_model_that_only_raises_ends_no_process_and_nobody_is_tried_again(outcome: Outcome) -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model, outcome) for run in request.runs)))
    assert one_round(runner, "a", "b") == [{"a": outcome, "b": outcome}]
    assert launched(runner) == ["ab"]


# who is tried again, and with whom


def test_who_has_answered_takes_part_again_beside_those_who_were_not_reached() -> None:
    runner = ending(Outcome.HANG, by=["b"], at_work=["b"], done=["a"])
    assert one_round(runner, "a", "b", "c") == [
        {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.NOT_RUN},
        {"a": Outcome.COMPLETED, "c": Outcome.COMPLETED},
    ]


def test_what_takes_two_is_found_behind_another_that_ended_the_process_first() -> None:
    first = ending(Outcome.CRASH, by=["b"], at_work=["b"], done=["a"])
    later = ending(Outcome.HANG, pairs=["ac"])
    runner = Runner(lambda request: (first if len(request.runs) == 3 else later)(request))
    found = one_round(runner, "a", "b", "c")
    assert found[1:] == [{"a": Outcome.HANG, "c": Outcome.HANG}]
    assert launched(runner) == ["abc", "ac", "a", "c"]


@pytest.mark.parametrize("scenario", ["same_file", "while_serving"])
def test_model_of_which_one_copy_was_not_reached_is_tried_again(scenario: str) -> None:
    """A server answers before anything is loaded; of loading it beside others nothing is known by then."""

    def answer(request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        if "a" not in map(model_of, names):
            return probed(*map(result, names))
        done = "b" if scenario == "same_file" else "b#2"  # the one that serves, not the one that is loaded
        by = {name: Outcome.COMPLETED if name == done else Outcome.NOT_RUN for name in names} | {"a": Outcome.CRASH}
        return probed(*(result(name, outcome) for name, outcome in by.items()), outcome=Outcome.CRASH)

    runner = Runner(answer)
    assert one_round(runner, "a", "b", scenario=scenario, init_threads=4)[-1] == {"b": Outcome.COMPLETED}
    assert launched(runner) == ["ab", "b"]


def test_nobody_is_tried_again_where_everyone_else_is_done() -> None:
    runner = ending(Outcome.HANG, by=["b"], at_work=["b"], done=["a", "c"])
    assert len(one_round(runner, "a", "b", "c")) == 1
    assert launched(runner) == ["abc"]


def test_who_is_guilty_stays_out_of_every_later_attempt() -> None:
    runner = answering({"new": {"a": Outcome.CRASH, "b": Outcome.HANG}})
    one_round(runner, "a", "b", "c")
    assert launched(runner) == ["abc", "bc", "c"]


@each_ending
def test_attempts_are_bounded_by_the_number_of_members_and_leave_nobody_out(outcome: Outcome) -> None:
    names = [chr(ord("a") + index) for index in range(20)]
    runner = answering({"new": dict.fromkeys(names, outcome)})
    found = one_round(runner, *names)
    assert len(found) == len(names)
    assert all(item[name] is outcome for name, item in zip(names, found, strict=True))


def test_process_that_names_nobody_and_completes_is_not_repeated_for_ever() -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model, Outcome.NOT_RUN) for run in request.runs)))
    assert one_round(runner, "a", "b") == [{"a": Outcome.NOT_RUN, "b": Outcome.NOT_RUN}]


MEMBERS = "abcdef"
SOME = st.sets(st.sampled_from(MEMBERS), max_size=3)


@given(
    outcome=st.sampled_from(ENDINGS),
    by=SOME,
    pairs=st.lists(st.sets(st.sampled_from(MEMBERS), min_size=2, max_size=3), max_size=2),
    at_work=st.none() | SOME,
    done=SOME,
    scenario=st.sampled_from(["concurrent", "same_file", "while_serving", "processes"]),
)
def test_everyone_has_a_result_after_a_round_and_no_healthy_model_is_blamed_for_one_that_fails_by_itself(
    outcome: Outcome,
    by: set[str],
    pairs: list[set[str]],
    at_work: set[str] | None,
    done: set[str],
    scenario: str,
) -> None:
    runner = ending(outcome, by=by, pairs=pairs, at_work=None if at_work is None else at_work | by, done=done - by)
    found = one_round(runner, *MEMBERS, scenario=scenario)
    outcomes: dict[str, set[Outcome]] = {}
    for probe in found:
        for name, became_ in probe.items():
            outcomes.setdefault(model_of(name), set()).add(became_)
    assert all(seen - {Outcome.NOT_RUN} for seen in outcomes.values())
    assert all(outcome in outcomes[name] for name in by)
    if not pairs:
        assert {name for name, seen in outcomes.items() if outcome in seen} == by
    attempts = len(found) // (2 if scenario == "processes" else 1)
    assert attempts <= len(MEMBERS)


# keys


@pytest.mark.parametrize("scenario", ["concurrent", "processes"])
def test_every_attempt_of_every_round_is_a_probe_of_its_own(scenario: str) -> None:
    runner = answering({"new": dict.fromkeys("abcde", Outcome.HANG)})
    ready = launcher(runner, facts_of(*"abcdef", settings={"init_rounds": 3, "init_threads": 3}), scenario)
    bring_up(ready, "g", "abcdef")
    repeats = [item.repeat for item in runner.asked]
    assert len(set(repeats)) == len(repeats) == 3 * 6 * (3 if scenario == "processes" else 1)


@pytest.mark.parametrize("scenario", ["concurrent", "processes"])
def test_singling_out_shares_no_result_with_an_attempt_or_another_round(scenario: str) -> None:
    runner = ending(Outcome.CRASH, by=["b"])
    ready = launcher(runner, facts_of("a", "b", settings={"init_rounds": 3, "init_threads": 2}), scenario)
    bring_up(ready, "g", ["a", "b"])
    requests = Counter(keys(runner))
    processes = 2 if scenario == "processes" else 1
    # Processes of one round that end alike are asked about the same suspects: one answer does for all of them.
    assert set(requests.values()) == ({1, 2} if processes == 2 else {1})
    assert {key for key, count in requests.items() if count > 1} <= {
        key for key in requests if len(key[1]) == 1 and key[2] in (999, 1999, 2999)
    }
    assert len(requests) == 3 * (processes + 2 + processes)


@pytest.mark.parametrize("rounds", [1, 3])
def test_fresh_attempts_share_no_probe(rounds: int) -> None:
    runner = answering({"new": {"a": Outcome.HANG}})
    facts = facts_of("a", "b", settings={"init_rounds": rounds})
    ready = launcher(runner, facts)
    for repeat in range(3):
        initialize_together(ready, ["a", "b"], facts, repeat=repeat)
    repeats = [item.repeat for item in runner.asked]
    assert len(set(repeats)) == len(repeats) == 6 * rounds


# processes


def test_as_many_processes_as_threads_run_side_by_side() -> None:
    together = threading.Barrier(3)

    def answer(request: ProbeRequest) -> ProbeResult:
        together.wait(20)  # broken unless all three are there at once
        return probed(*(result(run.artifact.model) for run in request.runs), side=request.side)

    runner = Runner(answer)
    facts = facts_of("a", "b", scenarios=("processes",), settings={"init_threads": 3, "init_rounds": 2})
    run = bring_up(launcher(runner, facts, "processes"), "g", ["a", "b"])
    assert [len(probes) for probes in run.rounds] == [3, 3]
    assert len({item.repeat for item in runner.asked}) == 6
    assert runner.models("new") == [["a", "b"]] * 6
    assert {item.beside for item in runner.asked} == {2}


@each_ending
def test_processes_are_all_launched_again_without_the_guilty(outcome: Outcome) -> None:
    runner = answering({"new": {"a": outcome}})
    found = one_round(runner, "a", "b", scenario="processes")
    assert found == [{"a": outcome, "b": Outcome.NOT_RUN}] * 2 + [{"b": Outcome.COMPLETED}] * 2


def test_processes_are_not_launched_again_where_another_of_them_had_everyone() -> None:
    runner = answering({"new": {"a": Outcome.CRASH}}, only_first=1)
    found = one_round(runner, "a", "b", scenario="processes")
    assert sorted(found, key=str) == sorted(
        [{"a": Outcome.CRASH, "b": Outcome.NOT_RUN}, {"a": Outcome.COMPLETED, "b": Outcome.COMPLETED}], key=str
    )


@each_ending
@pytest.mark.parametrize("at_work", [None, ()], ids=["all at work", "nobody at work"])
def test_processes_single_out_too(outcome: Outcome, at_work: Collection[str] | None) -> None:
    runner = ending(outcome, by=["b"], at_work=at_work)
    assert one_round(runner, "a", "b", scenario="processes") == [
        *[{"a": Outcome.NOT_RUN, "b": outcome}] * 2,
        *[{"a": Outcome.COMPLETED}] * 2,
    ]


@pytest.mark.parametrize("unclear", UNCLEAR)
def test_starved_processes_name_nobody_and_are_not_launched_again(unclear: Outcome) -> None:
    runner = ending(unclear, by=["a"])
    assert one_round(runner, "a", "b", scenario="processes") == [{"a": unclear, "b": unclear}] * 2


# the result of a process with its end on the guilty


@each_ending
def test_end_is_on_every_guilty_copy_and_on_nobody_else(outcome: Outcome) -> None:
    probe = probed(*(result(name, outcome, phase="load") for name in ("a", "a#1", "b")), outcome=outcome)
    found = blamed(probe, {"a"})
    assert became(found) == {"a": outcome, "a#1": outcome, "b": Outcome.NOT_RUN}
    assert replace(found, models=probe.models) == probe
    assert found.models[0] == probe.models[0]


@each_ending
def test_what_failed_otherwise_or_answered_is_left_as_it_is(outcome: Outcome) -> None:
    probe = probed(
        result("a", outcome),
        result("b", Outcome.RUNTIME_ERROR),
        result("c"),
        result("d", Outcome.NOT_RUN),
        outcome=outcome,
    )
    assert blamed(probe, {"a"}) == probe
    assert blamed(probe, {"a", "c", "d"}) == probe  # somebody was at work: it did not end outside of every phase


@each_ending
def test_end_that_nobody_was_at_work_in_is_put_on_the_guilty_outside_of_every_phase(outcome: Outcome) -> None:
    probe = probed(
        result("a", phase="call"),
        result("b", Outcome.NOT_RUN),
        result("c", Outcome.RUNTIME_ERROR, phase="call"),
        result("d"),
        outcome=outcome,
    )
    found = blamed(probe, {"a", "b", "c"})
    assert [(item.outcome, item.phase) for item in found.models] == [
        (outcome, ""),
        (outcome, ""),
        (Outcome.RUNTIME_ERROR, "call"),
        (Outcome.COMPLETED, ""),
    ]


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, *UNCLEAR])
def test_process_that_came_to_its_end_or_says_nothing_is_on_nobody(outcome: Outcome) -> None:
    probe = probed(result("a", outcome), result("b", Outcome.NOT_RUN), outcome=outcome)
    assert blamed(probe, {"b"}) == blamed(probe, ()) == probe


# what is asked


@pytest.mark.parametrize(("configured", "started"), [(1, 2), (2, 2), (6, 6)])
@pytest.mark.parametrize("names", ["a", "abcdefg"])
def test_group_starts_its_threads_at_once_even_if_one_was_configured(configured: int, started: int, names: str) -> None:
    runner = answering({})
    facts = facts_of(*names, settings={"init_threads": configured})
    launcher(runner, facts).round(list(names), 0)
    assert threads_of(facts) == started
    assert [len(script_of(item).threads) for item in runner.asked] == [started]


def script_of(request: ProbeRequest) -> Script:
    assert request.script is not None
    return request.script


def test_worker_and_script_are_those_of_the_run() -> None:
    runner = answering({})
    facts = facts_of("a", "b", scenarios=("alone", "concurrent", "sequential"), worker="libtorch")
    initialize_groups(facts, effects(runner))
    assert {item.runtime for item in runner.asked} == {"libtorch"}
    written = [INITIALIZATIONS[name].write(["a", "b"], 4) for name in ("concurrent", "sequential")]
    scripts = [script_of(item) for item in runner.asked]
    assert len(scripts) == len(written)
    assert all(script in scripts for script in written)


def test_copies_are_artifacts_of_their_own_name() -> None:
    runner = answering({})
    launcher(runner, facts_of("a", settings={"init_threads": 3}), "same_file").round(["a"], 0)
    assert runner.models("new") == [["a", "a#1", "a#2"]]
    assert {run.artifact.path for item in runner.asked for run in item.runs} == {artifact("a").path}


@pytest.mark.parametrize("copy", ["a", "a#1"])
def test_failing_copy_takes_its_whole_model_out_of_the_next_attempt(copy: str) -> None:
    runner = answering({"new": {copy: Outcome.CRASH}})
    one_round(runner, "a", "b", scenario="same_file")
    assert launched(runner) == ["ab", "b"]


@pytest.mark.parametrize(("scenario", "threads"), [("sequential", 1), ("concurrent", 4), ("while_serving", 4)])
def test_a_phase_may_take_longer_by_the_threads_at_work_and_not_by_the_models_and_copies(
    scenario: str, threads: int
) -> None:
    runner = answering({})
    names = tuple("abcdefghij")
    slow = OldAnswers(results=(result(load_ns=5_000_000_000),))
    facts = facts_of(*names, baselines=dict.fromkeys(names, slow), settings={"init_threads": 4})
    launcher(runner, facts, scenario).round(names, 0)
    assert [item.deadline.load_s for item in runner.asked] == [pytest.approx(100.0 * threads)]


def test_a_suspect_is_not_waited_for_as_long_again_as_the_group_was() -> None:
    runner = ending(Outcome.HANG, by="a", at_work="ab")
    one_round(runner, "a", "b", "c")
    assert launched(runner) == ["abc", "a", "b", "bc"]
    assert [item.deadline.load_s for item in runner.asked] == [60.0, 10.0, 10.0, 60.0]


def test_small_pools_replace_those_of_the_profile() -> None:
    runner = answering({})
    profile = ServingProfile(intra_op_threads=4, inter_op_threads=8, switches={"profiling": False})
    facts = facts_of("a", worker="libtorch")
    for scenario in ("small_pools", "inter_op"):
        replace(launcher(runner, facts, scenario), profile=profile).round(["a"], 0)
    pools = [(item.profile.intra_op_threads, item.profile.inter_op_threads) for item in runner.asked]
    assert pools == [(1, 1), (4, 8)]
    assert {tuple(item.profile.switches.items()) for item in runner.asked} == {(("profiling", False),)}


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_graphs_are_captured_as_the_settings_say(mode: str) -> None:
    runner = answering({})
    settings = {"capture_mode": mode, "capture_warm_calls": 1}
    launcher(runner, facts_of("a", "b", settings=settings), "cuda_graphs").round(["a", "b"], 0)
    captured = {
        step[2:] for item in runner.asked for steps in script_of(item).threads for step in steps if step[0] == "capture"
    }
    assert captured == {(mode, 1)}


def test_trial_may_have_other_threads_or_go_one_after_another() -> None:
    runner = answering({})
    ready = launcher(runner, facts_of("a", "b", "c"))
    ready.probe(["a", "b", "c"], 0, threads=3)
    ready.probe(["a", "b", "c"], 1, alone=True)
    ready.probe(["a", "b", "c"], 2, floor_s=5.0)
    assert [len(script_of(item).threads) for item in runner.asked] == [3, 1, 4]
    assert [item.deadline.load_s for item in runner.asked] == [60.0, 60.0, 5.0]


def test_one_after_another_calls_the_way_that_the_scenario_does_and_beside_no_process() -> None:
    runner = answering({})
    facts: Decided = facts_of("a", "b", worker="libtorch")
    for scenario in ("inter_op", "processes"):
        launcher(runner, facts, scenario).probe(["a", "b"], 0, alone=True)
    found: Sequence[Mapping[str, Any]] = [
        {"through": script_of(item).calls_through, "beside": item.beside} for item in runner.asked
    ]
    assert found == [{"through": "inter_op", "beside": 0}, {"through": "thread", "beside": 0}]


def test_settings_lie_on_top_of_the_profile_and_of_the_pools_of_the_scenario() -> None:
    runner = answering({})
    ready = launcher(runner, facts_of("a", "b", worker="libtorch"), "small_pools")
    replace(ready, settings=(MITIGATIONS["wide inter-op pool"], MITIGATIONS["fuser off"])).probe(["a", "b"], 0)
    (asked,) = runner.asked
    assert (asked.profile.intra_op_threads, asked.profile.inter_op_threads) == (1, WIDE_POOL)
    assert asked.profile.switches == {"texpr_fuser": False}


@pytest.mark.parametrize("side", ["old", "new"])
def test_what_policy_accepts_orders_the_threads_of_the_new_side_only(side: str) -> None:
    runner = answering({})
    policy = PolicySettings(accepted_mitigations=("serialized loading",))
    launcher(runner, facts_of("a", "b", settings={"policy": policy}), side=side).probe(["a", "b"], 0)
    steps = [step for thread in script_of(runner.asked[0]).threads for step in thread]
    before = {steps[index - 1][0] for index, step in enumerate(steps) if step[0] == "load"}
    assert before == ({"lock"} if side == "new" else {"barrier", "calls"} & before)
    assert ("lock" in {step[0] for step in steps}) == (side == "new")


def test_settings_may_serialize_the_first_calls() -> None:
    runner = answering({})
    ready = launcher(runner, facts_of("a", "b"))
    replace(ready, settings=(MITIGATIONS["serialized first calls"],)).probe(["a", "b"], 0)
    for thread in script_of(runner.asked[0]).threads:
        kinds = [step[0] for step in thread]
        assert all(
            kinds[index - 1 : index + 2] == ["lock", "calls", "unlock"]
            for index, kind in enumerate(kinds)
            if kind == "calls"
        )
        assert kinds.count("lock") == kinds.count("calls") > 0
