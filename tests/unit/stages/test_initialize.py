"""Server groups brought up in both releases: who is blamed, who is tried again without the sick, what rounds say."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.domain.hang import Evidence
from harness.domain.outcome import Outcome
from harness.domain.plan import PolicySettings
from harness.domain.probe import ModelResult, ProbeRequest, ProbeResult, ServingProfile
from harness.domain.script import model_of
from harness.planning.scenarios import INITIALIZATIONS, SERVING_ROUNDS
from harness.stages.facts import Baseline, Export, Facts, GroupRun, Initialized
from harness.stages.initialize import (
    MAX_ATTEMPTS,
    Launcher,
    bring_up,
    initialize_groups,
    initialize_together,
    scenarios_of,
    standing,
    works_alone,
)
from tests.unit.stages.builders import (
    NAMES,
    Runner,
    artifact,
    came,
    effects,
    initialized,
    known,
    planned,
    probed,
    result,
)

Sick = Mapping[str, Mapping[str, Outcome]]
"""Per side: name of a model or of a copy -> what becomes of it."""


def answering(sick: Sick, *, only_first: int | None = None) -> Runner:
    """Return a runner in which the first model that hangs or crashes keeps the later ones of its process from running.

    Args:
        only_first: processes of a side after so many are healthy.
    """
    started: dict[str, int] = {}
    lock = threading.Lock()

    def answer(request: ProbeRequest) -> ProbeResult:
        with lock:
            number = started[request.side] = started.get(request.side, 0) + 1
        table = sick.get(request.side, {}) if only_first is None or number <= only_first else {}
        found: list[ModelResult] = []
        broken = False
        for run in request.runs:
            name = run.artifact.model
            outcome = Outcome.NOT_RUN if broken else table.get(name, Outcome.COMPLETED)
            broken = broken or outcome in (Outcome.HANG, Outcome.CRASH)
            found.append(result(name, outcome))
        return probed(*found, side=request.side, directory=f"/run/{request.side}-{request.repeat}", exit_detail="x")

    return Runner(answer)


def facts_of(
    *names: str,
    settings: Mapping[str, Any] | None = None,
    scenarios: Sequence[str] = ("alone", "concurrent"),
    **more: Any,
) -> Facts:
    return known(planned(*names, settings=settings, scenarios=tuple(scenarios)), **more)


def brought_up(runner: Runner, facts: Facts, sides: tuple[str, ...] = ("old", "new")) -> dict[str, Initialized]:
    """Return what became of every model in the only scenario."""
    return {
        name: item for (name, _), item in initialize_groups(facts, effects(runner, sides=sides)).initialized.items()
    }


def launcher(runner: Runner, facts: Facts, scenario: str = "concurrent", side: str = "new") -> Launcher:
    return Launcher(
        scenario=INITIALIZATIONS[scenario],
        side=side,
        profile=ServingProfile(name="p"),
        facts=facts,
        effects=effects(runner),
    )


def outcomes(found: Mapping[str, Initialized]) -> dict[str, Outcome]:
    return {name: item.new.result.outcome for name, item in found.items()}


# who is blamed, who is tried again


def test_healthy_group_is_one_process_per_release() -> None:
    runner = answering({})
    found = brought_up(runner, facts_of("a", "b"))
    assert set(outcomes(found).values()) == {Outcome.COMPLETED}
    assert (runner.models("new"), runner.models("old")) == ([["a", "b"]], [["a", "b"]])


def test_guilty_model_is_named_and_the_unreached_are_tried_again_without_it() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    found = brought_up(runner, facts_of("a", "b", "c"))
    assert outcomes(found) == {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.COMPLETED}
    assert runner.models("new") == [["a", "b", "c"], ["c"]]
    assert (found["b"].new.directory, found["c"].new.directory) == ("/run/new-0", "/run/new-1")
    assert found["b"].new.exit_detail == "x"
    assert [item.answers for item in (found["a"].new, found["b"].new, found["c"].new)] == [
        (("a", "/run/new-0"),),
        (),
        (("c", "/run/new-1"),),
    ]


def test_model_that_only_raises_keeps_nobody_from_running_and_is_not_repeated() -> None:
    runner = answering({"new": {"a": Outcome.RUNTIME_ERROR}})
    found = brought_up(runner, facts_of("a", "b"))
    assert outcomes(found) == {"a": Outcome.RUNTIME_ERROR, "b": Outcome.COMPLETED}
    assert runner.models("new") == [["a", "b"]]


def test_old_release_is_asked_whatever_the_new_one_does_under_its_own_profile() -> None:
    runner = answering({"old": {"b": Outcome.HANG}})
    policy = PolicySettings(accepted_mitigations=("profiling off",))
    found = brought_up(runner, facts_of("a", "b", "c", settings={"policy": policy}))
    assert runner.models("old") == [["a", "b", "c"], ["c"]]
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


def test_group_in_which_everyone_crashes_is_given_up_and_the_rest_is_not_called_healthy() -> None:
    names = [f"m{index:02}" for index in range(MAX_ATTEMPTS + 2)]
    runner = answering({"new": dict.fromkeys(names, Outcome.CRASH)})
    found = brought_up(runner, facts_of(*names))
    assert len(runner.models("new")) == MAX_ATTEMPTS
    assert [outcomes(found)[name] for name in names] == [Outcome.CRASH] * MAX_ATTEMPTS + [Outcome.NOT_RUN] * 2


def test_process_that_names_nobody_is_not_repeated_for_ever() -> None:
    runner = Runner(lambda request: probed(*(result(run.artifact.model, Outcome.NOT_RUN) for run in request.runs)))
    found = brought_up(runner, facts_of("a", "b"))
    assert len(runner.models("new")) == 1
    assert set(outcomes(found).values()) == {Outcome.NOT_RUN}


def test_every_attempt_of_every_round_is_a_probe_of_its_own() -> None:
    runner = answering({"new": {"a": Outcome.HANG}, "old": {"a": Outcome.HANG}})
    brought_up(runner, facts_of("a", "b", settings={"init_rounds": 3}))
    repeats = [(item.side, item.repeat) for item in runner.asked]
    assert len(set(repeats)) == len(repeats) == 12


class Contagious:
    """A runner in which everyone hangs who shares a process with one of ``sick``, or with a pair of ``deadlock``."""

    def __init__(self, sick: Sequence[str] = (), deadlock: Sequence[str] = ()) -> None:
        self._sick, self._deadlock = set(sick), set(deadlock)
        self.runner = Runner(self._answer)

    def _answer(self, request: ProbeRequest) -> ProbeResult:
        names = [run.artifact.model for run in request.runs]
        models = {model_of(name) for name in names}
        stuck = bool(self._sick & models) or (bool(self._deadlock) and self._deadlock <= models)
        outcome = Outcome.HANG if stuck and request.side == "new" else Outcome.COMPLETED
        return probed(*(result(name, outcome) for name in names), side=request.side, directory=f"/run/{len(names)}")


def test_model_that_only_waited_for_one_that_hangs_is_tried_again_and_not_blamed() -> None:
    release = Contagious(sick=["b"])
    found = brought_up(release.runner, facts_of("a", "b", "c"))
    assert outcomes(found) == {"a": Outcome.COMPLETED, "b": Outcome.HANG, "c": Outcome.COMPLETED}
    assert release.runner.models("new") == [["a", "b", "c"], ["a"], ["b"], ["c"], ["a", "c"]]
    assert found["a"].new.failed_rounds == 0
    assert found["a"].new.answers == (("a", "/run/2"),)


def test_models_that_hang_only_together_are_all_to_blame() -> None:
    release = Contagious(deadlock=["a", "b"])
    found = brought_up(release.runner, facts_of("a", "b", "c"))
    assert set(outcomes(found).values()) == {Outcome.HANG}
    assert release.runner.models("new") == [["a", "b", "c"], ["a"], ["b"], ["c"]]


def test_one_hung_model_is_not_asked_again_by_itself() -> None:
    runner = answering({"new": {"b": Outcome.HANG}})
    brought_up(runner, facts_of("a", "b"))
    assert runner.models("new") == [["a", "b"]]


def test_copies_of_one_model_that_hang_are_one_model() -> None:
    release = Contagious(sick=["a"])
    found = brought_up(release.runner, facts_of("a", scenarios=("same_file",)))
    assert outcomes(found) == {"a": Outcome.HANG}
    assert len(release.runner.models("new")) == 1


# rounds


def test_each_round_is_a_process_of_its_own_and_counts() -> None:
    runner = answering({"new": {"a": Outcome.HANG}}, only_first=2)  # its first round: all, and again without ``a``
    found = brought_up(runner, facts_of("a", "b", settings={"init_rounds": 3}))
    assert runner.models("new") == [["a", "b"], ["b"], ["a", "b"], ["a", "b"]]
    new = found["a"].new
    assert (new.result.outcome, new.rounds, new.failed_rounds) == (Outcome.HANG, 3, 1)
    assert len(new.answers) == 2
    old = found["a"].old
    assert old is not None
    assert (old.result.outcome, old.rounds, old.failed_rounds) == (Outcome.COMPLETED, 3, 0)


def one_run(*rounds: Sequence[ProbeResult], members: tuple[str, ...] = ("a",)) -> GroupRun:
    return GroupRun(scenario="concurrent", group="g", side="new", members=members, rounds=tuple(map(tuple, rounds)))


def probe_of(directory: str, outcomes_: Mapping[str, Outcome], **more: Any) -> ProbeResult:
    return probed(*(result(name, outcome) for name, outcome in outcomes_.items()), directory=directory, **more)


def test_worst_copy_speaks_for_the_model_and_every_copy_that_answered_is_kept() -> None:
    copies = {"a": Outcome.COMPLETED, "a#1": Outcome.RUNTIME_ERROR, "a#2": Outcome.COMPLETED}
    found = standing(one_run([probe_of("/1", copies)]), "a")
    assert (found.result.model, found.result.outcome) == ("a", Outcome.RUNTIME_ERROR)
    assert found.answers == (("a", "/1"), ("a#2", "/1"))


def test_first_failure_is_shown_with_what_belongs_to_it() -> None:
    seen = Evidence(tool="gdb")
    run = one_run(
        [probe_of("/1", {"a": Outcome.COMPLETED})],
        [probe_of("/2", {"a": Outcome.HANG}, evidence=seen, exit_detail="killed")],
        [probe_of("/3", {"a": Outcome.CRASH})],
    )
    found = standing(run, "a")
    assert (found.result.outcome, found.directory, found.evidence, found.exit_detail) == (
        Outcome.HANG,
        "/2",
        seen,
        "killed",
    )
    assert (found.rounds, found.failed_rounds) == (3, 2)


def test_model_that_one_round_never_reached_is_not_called_completed() -> None:
    run = one_run([probe_of("/1", {"a": Outcome.COMPLETED})], [probe_of("/2", {"a": Outcome.NOT_RUN})])
    found = standing(run, "a")
    assert (found.result.outcome, found.directory, found.failed_rounds) == (Outcome.NOT_RUN, "/2", 0)


def test_model_that_was_reached_in_a_later_attempt_of_the_round_is_well() -> None:
    attempts = [probe_of("/1", {"a": Outcome.NOT_RUN, "b": Outcome.HANG}), probe_of("/2", {"a": Outcome.COMPLETED})]
    found = standing(one_run(attempts, members=("a", "b")), "a")
    assert (found.result.outcome, found.directory, found.failed_rounds) == (Outcome.COMPLETED, "/2", 0)


def test_numbers_of_its_graph_come_with_the_model() -> None:
    fine, off = ({"max_abs_difference": difference, "scale": 2.0} for difference in (0.0, 0.5))
    rounds = [[probe_of("/1", {"a": Outcome.COMPLETED}, data={"graph:a": item, "graph:b": {}})] for item in (fine, off)]
    assert standing(one_run(*rounds), "a").graph == off
    assert standing(one_run([probe_of("/1", {"a": Outcome.COMPLETED})]), "a").graph is None


def test_name_that_begins_alike_is_another_model() -> None:
    run = one_run([probe_of("/1", {"a": Outcome.COMPLETED, "a#1": Outcome.COMPLETED, "a1": Outcome.HANG})])
    assert standing(run, "a").result.outcome is Outcome.COMPLETED


# what is asked


def test_group_starts_its_threads_at_once_even_if_one_was_configured() -> None:
    for configured, started in ((1, 2), (2, 2), (6, 6)):
        runner = answering({})
        names = [f"m{index}" for index in range(7)]
        brought_up(runner, facts_of(*names, settings={"init_threads": configured}))
        (script,) = {len(item.script.threads) for item in runner.asked if item.script is not None}
        assert script == started


def test_worker_and_script_are_those_of_the_run() -> None:
    runner = answering({})
    facts = facts_of("a", "b", scenarios=("alone", "concurrent", "sequential"), worker="libtorch")
    initialize_groups(facts, effects(runner))
    assert {item.runtime for item in runner.asked} == {"libtorch"}
    scripts = [item.script for item in runner.asked if item.side == "new"]
    assert scripts == [INITIALIZATIONS[name].write(["a", "b"], 4) for name in ("concurrent", "sequential")]


def test_copies_are_artifacts_of_their_own_name() -> None:
    runner = answering({})
    initialize_groups(facts_of("a", scenarios=("same_file",), settings={"init_threads": 3}), effects(runner))
    assert runner.models("new") == [["a", "a#1", "a#2"]]
    assert {run.artifact.path for item in runner.asked for run in item.runs} == {artifact("a").path}


@pytest.mark.parametrize("copy", ["a", "a#1"])
def test_failing_copy_takes_its_whole_model_out_of_the_next_attempt(copy: str) -> None:
    runner = answering({"new": {copy: Outcome.CRASH}})
    found = brought_up(runner, facts_of("a", "b", scenarios=("same_file",), settings={"init_threads": 2}))
    assert outcomes(found) == {"a": Outcome.CRASH, "b": Outcome.COMPLETED}
    assert [sorted({model_of(name) for name in names}) for names in runner.models("new")] == [["a", "b"], ["b"]]


def test_models_that_share_a_process_get_more_time() -> None:
    runner = answering({"new": {"a": Outcome.HANG}})
    names = ("a", "b", "c")
    slow = Baseline(results=(result(load_ns=5_000_000_000),))
    brought_up(runner, facts_of(*names, baselines=dict.fromkeys(names, slow)))
    new = [item.deadline.load_s for item in runner.asked if item.side == "new"]
    assert new == [pytest.approx(300.0), pytest.approx(200.0)]


def test_small_pools_replace_those_of_the_profile() -> None:
    runner = answering({})
    profile = ServingProfile(intra_op_threads=4, inter_op_threads=8, switches={"profiling": False})
    facts = facts_of("a", scenarios=("small_pools", "inter_op"), settings={"profile": profile}, worker="libtorch")
    initialize_groups(facts, effects(runner))
    pools = [(item.profile.intra_op_threads, item.profile.inter_op_threads) for item in runner.asked]
    assert sorted(pools) == [(1, 1)] * 2 + [(4, 8)] * 2
    assert {tuple(item.profile.switches.items()) for item in runner.asked} == {(("profiling", False),)}


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_graphs_are_captured_in_the_mode_of_the_settings(mode: str) -> None:
    runner = answering({})
    initialize_groups(facts_of("a", "b", scenarios=("cuda_graphs",), settings={"capture_mode": mode}), effects(runner))
    modes = {
        step[2]
        for item in runner.asked
        if item.script is not None
        for steps in item.script.threads
        for step in steps
        if step[0] == "capture"
    }
    assert modes == {mode}


def test_trial_may_have_other_threads_or_go_one_after_another() -> None:
    runner = answering({})
    ready = launcher(runner, facts_of("a", "b", "c"))
    ready.probe(["a", "b", "c"], 0, threads=3)
    ready.probe(["a", "b", "c"], 1, alone=True)
    ready.probe(["a"], 2, floor_s=5.0)
    scripts = [item.script for item in runner.asked]
    assert [len(script.threads) for script in scripts if script is not None] == [3, 1, 1]
    assert [item.deadline.load_s for item in runner.asked] == [60.0, 60.0, 5.0]


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
    assert sorted(item.repeat for item in runner.asked) == list(range(6))
    assert runner.models("new") == [["a", "b"]] * 6


def test_one_process_that_fails_is_a_failure_of_the_model_and_of_that_round() -> None:
    runner = answering({"new": {"b": Outcome.CRASH}}, only_first=1)
    facts = facts_of("a", "b", scenarios=("processes",), settings={"init_threads": 2, "init_rounds": 2})
    run = bring_up(launcher(runner, facts, "processes"), "g", ["a", "b"])
    found = standing(run, "b")
    assert (found.result.outcome, found.rounds, found.failed_rounds, len(found.answers)) == (Outcome.CRASH, 2, 1, 3)
    assert len(runner.asked) == 4  # nobody is tried again: the other processes had everyone


# a fresh attempt, for a cure


def test_fresh_attempt_asks_the_new_release_only_and_remembers_the_old_one() -> None:
    runner = answering({})
    facts = facts_of("a", "b", initialized={("a", "concurrent"): initialized(Outcome.HANG, Outcome.CRASH, "a")})
    found = initialize_together(launcher(runner, facts), ["a", "b"], repeat=1)
    assert runner.models("old") == []
    assert (found["a"].old, found["b"].old) == (came("a", Outcome.CRASH), None)
    assert found["a"].new.result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("rounds", [1, 3])
def test_fresh_attempts_share_no_probe(rounds: int) -> None:
    runner = answering({"new": {"a": Outcome.HANG}})
    ready = launcher(runner, facts_of("a", "b", settings={"init_rounds": rounds}))
    for repeat in range(3):
        initialize_together(ready, ["a", "b"], repeat=repeat)
    repeats = [item.repeat for item in runner.asked]
    assert len(set(repeats)) == len(repeats) == 6 * rounds


# who takes part


def facts_of_groups(**changes: Outcome) -> Facts:
    names = ("a", "b", "c")
    alone = {name: probed(result(name, changes.get(name, Outcome.COMPLETED))) for name in names}
    plan = planned(*names, groups={"g": ("a", "b"), "h": ("c",)}, scenarios=("alone", "concurrent"))
    return known(plan, alone=alone)


def test_model_that_fails_alone_is_kept_out_of_its_group() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_groups(a=Outcome.LOAD_ERROR), effects(runner))
    assert sorted(runner.models("new")) == sorted(runner.models("old")) == [["b"], ["c"]]
    assert {name for name, _ in facts.initialized} == {"b", "c"}


def test_group_without_a_working_member_is_not_started() -> None:
    runner = answering({})
    facts = initialize_groups(facts_of_groups(c=Outcome.CRASH), effects(runner))
    assert runner.models("new") == [["a", "b"]]
    assert {name for name, _ in facts.initialized} == {"a", "b"}
    assert [(run.group, run.side) for run in facts.group_runs] == [("g", "new"), ("g", "old")]


def test_scenario_that_was_not_asked_for_probes_nothing() -> None:
    runner = answering({})
    facts = facts_of("a", scenarios=("alone", "latency"))
    assert initialize_groups(facts, effects(runner)) is facts
    assert runner.asked == []


def test_model_that_was_never_probed_does_not_work_alone() -> None:
    facts = facts_of_groups(a=Outcome.HANG)
    assert [works_alone(name, facts) for name in ("a", "b", "unknown")] == [False, True, False]


def test_module_that_keeps_state_is_shared_with_nobody() -> None:
    facts = facts_of("a", "b", scenarios=("shared", "same_file"))
    stateful = Export(
        declaration=facts.exports["a"].declaration, outcome=Outcome.COMPLETED, artifact=artifact("a", reset="clear")
    )
    found = initialize_groups(
        known(facts.plan, exports={**facts.exports, "a": stateful}), effects(answering({}))
    ).initialized
    assert set(found) == {("b", "shared"), ("a", "same_file"), ("b", "same_file")}


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
    assert len(facts.initialized["a", "while_serving"].new.answers) > SERVING_ROUNDS
