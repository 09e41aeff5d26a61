"""The benchmark's protocol over real processes with a stub of torch: a process that fails costs one model, not the round."""

import json
import os
import random
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.checks.latency import lanes
from harness.checks.latency.lanes import Lane
from harness.checks.latency.model_round import FIRST_CALLS, ModelRound
from harness.checks.latency.processes import BenchmarkProcess, ProcessLost
from harness.checks.latency.rounds import Round, with_control
from harness.machine.processes import reap
from tests.programs import stub
from tests.unit.builders.rounds import BUDGET, HERE, InOrder, measure_round, make_round


def test_round_times_every_arm_in_equal_blocks(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "b": {}}, 60.0)
    found = measure_round(round_, tmp_path, "a", "b")
    assert round_.problems == {}
    assert list(found) == ["a", "b"]
    for sample in found.values():
        turns = [block.turn for block in sample.blocks]
        assert turns == [0, 0, 1, 1, 2, 2]
        assert all({sample.blocks[at].arm, sample.blocks[at + 1].arm} == {"old", "new"} for at in (0, 2, 4))
        assert len({block.calls for block in sample.blocks}) == 1
        assert all(block.p50_s > 0 and 0 <= block.waited <= 1 for block in sample.blocks)
        assert set(sample.arms) == {"old", "new"}
        assert 0 < sample.spent_s < 60
        for arm in sample.arms.values():
            assert arm.load_s > 0
            assert len(arm.calls_s) == FIRST_CALLS
            assert arm.request_s is not None and arm.request_s > 0
            assert arm.peak_rss_bytes is not None and arm.peak_rss_bytes >= 0
            assert isinstance(arm.growth_bytes, int)
            assert (arm.device_bytes, arm.replay_s, arm.shapes_s) == (None, None, {})


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ({"load": "segfault"}, "the new process died"),
        ({"calls": {"1": "exit_at_once"}}, "the new process died"),
        ({"calls": {"17": "abort"}}, "the new process died"),  # in a block
        ({"calls": {"17": "raise_error"}}, "new: RuntimeError: planted"),
        ({"load": "raise_error"}, "new: RuntimeError: planted"),
        ({"calls": {"17": "raise_memory_error"}}, "new: MemoryError"),
        ({"load": "exit_politely"}, "new: SystemExit: 3"),
        ({"calls": {"1": "close_everything"}}, "the new process died"),
        ({"calls": {"1": "scribble_on_pipes"}}, "the new process answered with garbage: 'what is this?'"),
    ],
)
def test_failing_process_names_the_model_and_the_round_goes_on(
    tmp_path: Path, stub_environment: Environment, program: Mapping[str, object], problem: str
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"before": {}, "bad": program, "after": {}}, 60.0)
    found = measure_round(round_, tmp_path, "before", "bad", "after")
    assert list(found) == ["before", "after"]
    assert list(round_.problems) == ["bad"]
    assert problem in round_.problems["bad"]


@pytest.mark.parametrize(
    "action",
    [
        "hang_asleep",
        pytest.param("hang_busy_holding_gil", marks=pytest.mark.slow),
        "hang_stopped",
        pytest.param("leave_grandchild_and_hang", marks=pytest.mark.slow),
    ],
)
def test_silent_process_names_the_model_and_leaves_its_stacks(
    tmp_path: Path, stub_environment: Environment, action: str
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"bad": {"calls": {"1": action}}, "after": {}}, 1.5)
    found = measure_round(round_, tmp_path, "bad", "after")
    assert list(found) == ["after"]
    assert "the new process gave no answer" in round_.problems["bad"]
    stacks = (tmp_path / "benchmark" / "round-0-new" / "stacks.txt").read_text()
    assert f"in {action}" in stacks or action == "hang_stopped"


def test_closed_standard_input_costs_no_more_than_the_models_after_it_need(
    tmp_path: Path, stub_environment: Environment
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"bad": {"calls": {"1": "close_stdin"}}, "after": {}}, 60.0)
    assert list(measure_round(round_, tmp_path, "bad", "after")) == ["after"]
    assert list(round_.problems) == ["bad"]


@pytest.mark.parametrize("action", ["print_garbage", "flood_stderr", "fork_once_and_go_on"])
def test_noise_of_a_model_changes_nothing(tmp_path: Path, stub_environment: Environment, action: str) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {"calls": {"1": action}}}, 60.0)
    assert list(measure_round(round_, tmp_path, "a")) == ["a"]
    assert round_.problems == {}


def test_first_model_that_is_lost_does_not_take_the_evidence_of_the_next(
    tmp_path: Path, stub_environment: Environment
) -> None:
    programs = {"a": {"load": "segfault"}, "b": {"load": "abort"}}
    round_ = make_round(tmp_path, stub_environment, programs, 60.0)
    measure_round(round_, tmp_path, "a", "b")
    folders = {path.parent.name: path.read_text() for path in (tmp_path / "benchmark").glob("*-new/stacks.txt")}
    assert "in segfault" in folders["round-0-new"]
    assert "in abort" in folders["round-0-1-new"]


@pytest.mark.parametrize("on_import", ["raise_error", "exit_at_once", "segfault"])
def test_environment_that_cannot_start_names_every_model(tmp_path: Path, on_import: str) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import=on_import)
    round_ = make_round(tmp_path, environment, {"a": {}, "b": {}}, 60.0)
    assert measure_round(round_, tmp_path, "a", "b") == {}
    assert set(round_.problems) == {"a", "b"}
    assert all("could not start" in problem for problem in round_.problems.values())


def test_interpreter_that_is_gone_names_every_model(tmp_path: Path) -> None:
    gone = str(tmp_path / "nothing")
    environment = Environment(name="gone", interpreter=gone, spec=EnvSpec(name="gone", interpreter=gone))
    round_ = make_round(tmp_path, environment, {"a": {}}, 60.0)
    assert measure_round(round_, tmp_path, "a") == {}
    assert "could not be started: No such file" in round_.problems["a"]


def test_process_that_never_gets_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "START_DEADLINE_S", 1.0)
    environment = stub.make_environment(tmp_path / "env", on_import="hang_busy_holding_gil")
    round_ = make_round(tmp_path, environment, {"a": {}}, 60.0)
    assert measure_round(round_, tmp_path, "a") == {}
    assert "no answer within 1 s" in round_.problems["a"]


def test_noisy_import_is_no_obstacle(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="print_garbage")
    assert list(measure_round(make_round(tmp_path, environment, {"a": {}}, 60.0), tmp_path, "a")) == ["a"]


def test_killed_process_is_lost_at_the_next_order(tmp_path: Path, stub_environment: Environment) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "a")], stub.PATIENT, verb="benchmark")
    process = BenchmarkProcess("old", stub_environment, request, tmp_path / "process")
    try:
        assert process.answer(60.0) == {"ready": True, "gpu_uuid": None}
        (pid,) = stub.processes_naming(tmp_path / "process")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ProcessLost, match="the old process died"):
            process.order(60.0, order="load", model="a")
    finally:
        process.close()


def test_first_operators_that_a_release_lacks_are_reported_and_no_obstacle(
    tmp_path: Path, stub_environment: Environment
) -> None:
    measure_round(make_round(tmp_path, stub_environment, {"a": {}}), tmp_path, "a")
    events = map(json.loads, (tmp_path / "benchmark" / "round-0-old" / "events.jsonl").read_text().splitlines())
    (lacking,) = (event["data"] for event in events if event.get("name") == "first_operators")
    assert set(lacking) == {"integers", "matrices", "convolution", "embedding", "int8", "second thread"}
    assert all(why.startswith("AttributeError: ") for why in lacking.values())


def test_orders_that_cannot_be_done_are_answered(tmp_path: Path, stub_environment: Environment) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "a")], stub.PATIENT, verb="benchmark")
    process = BenchmarkProcess("old", stub_environment, request, tmp_path / "process")
    crowd = {"order": "together", "model": "a", "threads": 2, "seconds": 0.01}
    try:
        process.answer(60.0)
        assert process.order(60.0, order="dance", model="a") == {"error": "ValueError: no order is called 'dance'"}
        assert process.order(60.0, order="block", model="a", calls=1) == {"error": "KeyError: 'a'"}  # not loaded
        process.order(60.0, order="load", model="a")
        assert "cannot run on cores 4095" in process.order(60.0, **crowd, cores=[4095])["skipped"]
        assert process.order(60.0, **crowd, cores=[HERE])["calls"] >= 2
        assert len(process.order(60.0, order="block", model="a", calls=50_000)["times_ns"]) == 16_667
        assert process.order(60.0, order="drop", model="a") == {"dropped": True}
        assert process.order(60.0, order="drop", model="a") == {"dropped": True}
        assert process.order(60.0, order="block", model="a", calls=1) == {"error": "KeyError: 'a'"}
    finally:
        process.close()


def test_model_stays_when_an_order_beside_the_blocks_fails(tmp_path: Path, stub_environment: Environment) -> None:
    program = {"in_threads": "raise_error", "calls": {"8": "raise_error", "10": "raise_error", "11": "raise_error"}}
    request = stub.run_request([stub.write_artifact(tmp_path, "a", **program)], stub.PATIENT, verb="benchmark")
    process = BenchmarkProcess("old", stub_environment, request, tmp_path / "process")
    shape = {"order": "shape", "model": "a", "set": "example", "calls": 1}
    error = "RuntimeError: planted\nsecond line"
    try:
        process.answer(60.0)
        process.order(60.0, order="load", model="a", calls=3)
        crowd = {"order": "together", "model": "a", "threads": 2, "seconds": 0.01}
        assert process.order(60.0, **crowd) == {
            "error": error,
            "spoilt": False,
        }  # calls 3 to 5: two threads, a plain one
        assert len(process.order(60.0, **{**shape, "calls": 2})["calls_s"]) == 2
        assert process.order(60.0, **shape) == {"error": error, "spoilt": False}  # call 8; 9 is a plain one
        assert process.order(60.0, **shape) == {"error": error, "spoilt": True}
        assert len(process.order(60.0, order="block", model="a", calls=1)["times_ns"]) == 1
    finally:
        process.close()


def test_spoilt_processes_are_replaced_and_their_sample_is_kept(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ModelRound, "measure_extras", lambda model_round: setattr(model_round, "spoilt", model_round.model == "a")
    )
    assert list(measure_round(make_round(tmp_path, stub_environment, {"a": {}, "b": {}}), tmp_path, "a", "b")) == [
        "a",
        "b",
    ]
    assert len(list((tmp_path / "benchmark").glob("*-new"))) == 2


def test_process_that_is_lost_at_the_end_costs_no_sample(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(model_round: ModelRound) -> None:
        raise ProcessLost("the new process died")

    monkeypatch.setattr(ModelRound, "drop", drop)
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "b": {}})
    assert list(measure_round(round_, tmp_path, "a", "b")) == ["a", "b"]
    assert round_.problems == {}
    assert len(list((tmp_path / "benchmark").glob("*-new"))) == 2


def test_restart_that_fails_leaves_the_samples_and_names_the_others(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "bad": {"load": "segfault"}, "b": {}})
    start = Lane._start

    def start_once(lane: Lane) -> None:
        if lane._starts:
            raise ProcessLost("no memory")
        start(lane)

    monkeypatch.setattr(Lane, "_start", start_once)
    assert list(measure_round(round_, tmp_path, "a", "bad", "b")) == ["a"]
    assert round_.problems["b"] == "the benchmark could not start: no memory"
    assert "the new process died" in round_.problems["bad"]
    assert set(round_.problems) == {"bad", "b"}


def test_processes_that_cannot_be_ended_are_named(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.probing.processes.reap", lambda one: reap(one) and "round-0-new" not in str(one.args))
    round_ = make_round(tmp_path, stub_environment, {"a": {}})
    measure_round(round_, tmp_path, "a")
    assert round_.unreaped == [f"benchmark {tmp_path / 'benchmark' / 'round-0-new'}"]


def test_models_come_in_an_order_of_their_own_in_every_round_of_every_run(
    tmp_path: Path, stub_environment: Environment
) -> None:
    models = "abcdefgh"
    made = make_round(tmp_path, stub_environment, {name: {} for name in models})
    seen = []
    for folder, number in (("run-1", 0), ("run-1", 0), ("run-1", 1), ("run-2", 0)):
        # A folder of another run; the process that starts there is not needed.
        round_ = Round({}, {}, Path(folder), number=number, budget=BUDGET, deadline_s=1.0)
        seen.append(round_._random.sample(models, len(models)))
    assert seen[0] == seen[1]
    assert len({tuple(order) for order in seen}) == 3
    made._random = random.Random(1)
    ticks: list[str] = []
    samples = made.measure(models, ticks.append, extras=False)
    assert sorted(ticks) == [sample.model for sample in samples] == list(models)
    assert ticks != list(models)


@pytest.mark.parametrize(
    ("models", "rounds", "fewest"), [(1, 1, 1), (15, 1, 15), (16, 2, 8), (26, 3, 8), (1000, 125, 8)]
)
def test_control_times_every_model_of_a_small_round_and_eight_or_more_of_a_large_one(
    models: int, rounds: int, fewest: int
) -> None:
    names = [f"m{index}" for index in range(models)]
    found = [with_control(names, number) for number in range(rounds)]
    assert min(map(len, found)) >= fewest
    assert sorted(name for some in found for name in some) == sorted(names)  # each once in so many rounds


def test_processes_of_the_control_time_only_its_share_of_a_large_round(
    tmp_path: Path, stub_environment: Environment
) -> None:
    names = [f"m{index}" for index in range(16)]
    request = stub.run_request([stub.write_artifact(tmp_path, name) for name in names], stub.PATIENT, verb="benchmark")
    arms = ("old", "new", "control")
    round_ = Round(
        dict.fromkeys(arms, stub_environment),
        dict.fromkeys(arms, request),
        tmp_path / "benchmark",
        number=1,
        budget=BUDGET,
        deadline_s=60.0,
    )
    round_._random = InOrder()
    found = round_.measure(names, lambda _: None, confirming=["m2"])
    controlled = with_control(names, 1).union(["m0", "m2"])  # the first of the lane, and what is confirmed
    assert controlled > with_control(names, 1)
    for sample in found:
        timed = set(arms) if sample.model in controlled else {"old", "new"}
        assert set(sample.arms) == {block.arm for block in sample.blocks} == timed
        assert not any(told.missing for told in sample.arms.values())


def test_sample_has_spent_no_time_on_extras(tmp_path: Path, stub_environment: Environment) -> None:
    budget = replace(BUDGET, together_s=1.0)  # in both arms
    sample = measure_round(make_round(tmp_path, stub_environment, {"a": {}}, budget=budget), tmp_path, "a")["a"]
    assert 0 < sample.spent_s < 1.5


def test_rounds_leak_no_descriptors(tmp_path: Path, stub_environment: Environment) -> None:
    programs = {"a": {}, "bad": {"load": "segfault"}}
    measure_round(make_round(tmp_path / "0", stub_environment, programs, 60.0), tmp_path / "0", "a", "bad")
    before = stub.open_descriptors()
    measure_round(make_round(tmp_path / "1", stub_environment, programs, 60.0), tmp_path / "1", "a", "bad")
    assert stub.open_descriptors() == before
