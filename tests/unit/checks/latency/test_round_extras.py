"""What a round tells beside its blocks, and where it ran; over real processes with a stub of torch."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.core.machine import GpuState
from harness.checks.latency.lanes import SPIN_S, Lane
from harness.checks.latency.model_round import ModelRound
from harness.checks.latency.rounds import Round
from harness.machine import cores, gpu
from harness.machine.cores import Placement
from tests.programs import stub
from tests.unit.builders.rounds import BUDGET, HERE, measure_round, make_round, with_sets


def test_control_takes_turns_like_the_others_and_is_asked_for_the_steady_call_alone(
    tmp_path: Path, stub_environment: Environment
) -> None:
    request = with_sets(
        stub.run_request([stub.write_artifact(tmp_path, "a")], stub.PATIENT, verb="benchmark"), "b", "c"
    )
    arms = ("old", "new", "control")
    environments, requests = dict.fromkeys(arms, stub_environment), dict.fromkeys(arms, request)
    round_ = Round(environments, requests, tmp_path / "benchmark", number=0, budget=BUDGET, deadline_s=60.0)
    sample = measure_round(round_, tmp_path, "a")["a"]
    assert sorted(block.arm for block in sample.blocks if block.turn == 1) == ["control", "new", "old"]
    for arm, told in sample.arms.items():
        shapes = {name: len(calls) for name, calls in told.shapes_s.items()}
        assert shapes == ({} if arm == "control" else {"b": 6, "c": 6})
        assert (told.request_s is None) == (arm == "control")


def test_without_extras_no_arm_is_asked_for_them(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {"in_threads": "segfault"}})
    sample = measure_round(round_, tmp_path, "a", extras=False)["a"]
    assert [told.request_s for told in sample.arms.values()] == [None, None]


@pytest.mark.parametrize(
    ("action", "why", "starts"),
    [
        ("raise_error", "RuntimeError: planted", 1),
        ("exit_politely", "SystemExit: 3", 1),
        ("segfault", "the new process died", 2),
        ("hang_asleep", "the new process gave no answer", 2),
    ],
)
def test_callers_at_the_same_time_that_fail_cost_no_sample(
    tmp_path: Path, stub_environment: Environment, action: str, why: str, starts: int
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"bad": {"in_threads": action}, "after": {}}, 2.0)
    found = measure_round(round_, tmp_path, "bad", "after")
    assert (list(found), round_.problems) == (["bad", "after"], {})
    bad = found["bad"].arms["new"]
    assert (bad.request_s, list(bad.missing)) == (None, ["request"])
    assert why in bad.missing["request"]
    assert len(found["bad"].blocks) == 6
    for told in (found["bad"].arms["old"], *found["after"].arms.values()):
        assert told.request_s
        assert not told.missing
    assert len(list((tmp_path / "benchmark").glob("*-new"))) == starts


def test_model_with_a_state_has_one_caller_at_a_time(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = with_a_state(tmp_path, stub_environment, in_threads="segfault")
    for told in measure_round(round_, tmp_path, "a")["a"].arms.values():
        assert told.request_s is None
        assert told.missing == {"request": "it has a state, which callers would share"}


def test_state_is_brought_back_before_every_call(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = with_a_state(tmp_path, stub_environment, most_calls=1)
    assert list(measure_round(round_, tmp_path, "a")) == ["a"]
    assert round_.problems == {}


def with_a_state(folder: Path, environment: Environment, **program: object) -> Round:
    request = stub.run_request([stub.write_artifact(folder, "a", **program)], stub.PATIENT, verb="benchmark")
    requests = dict.fromkeys(("old", "new"), with_sets(request, reset="reset"))
    environments = dict.fromkeys(requests, environment)
    return Round(environments, requests, folder / "benchmark", number=0, budget=BUDGET, deadline_s=60.0)


def test_one_caller_is_no_throughput(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(
        tmp_path, stub_environment, {"a": {"in_threads": "segfault"}}, budget=replace(BUDGET, threads=1)
    )
    assert [told.request_s for told in measure_round(round_, tmp_path, "a")["a"].arms.values()] == [None, None]


def test_state_tells_the_cores_and_what_others_used_of_them(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}})
    measure_round(round_, tmp_path, "a")
    machine_state = round_.machine_state
    assert machine_state is not None
    assert (machine_state.cores, machine_state.why_not_pinned, machine_state.gpu) == ((HERE,), "", None)
    assert 0 <= machine_state.others <= 1


def test_processes_of_the_only_lane_start_on_all_cores_and_are_timed_on_their_own(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_on: list[Sequence[int]] = []
    pin = cores.pin

    def noted(pid: int, on: Sequence[int]) -> str:
        started_on.append(on)
        return pin(pid, on)

    monkeypatch.setattr("harness.checks.latency.processes.pin", noted)
    placement = Placement(cores=(HERE,), ranked=(HERE, *(core for core in os.sched_getaffinity(0) if core != HERE)))
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "b": {}}, placement=placement)
    seen: list[set[int]] = []
    round_.measure(
        ["a", "b"], lambda _: seen.extend(os.sched_getaffinity(pid) for pid in stub.processes_naming(tmp_path))
    )
    assert started_on == [placement.ranked] * 2
    assert seen == [{HERE}] * 4  # of both, at the turn of each model


def test_refused_pin_is_no_error_and_is_reported(tmp_path: Path, stub_environment: Environment) -> None:
    nowhere = Placement(cores=(4095,), ranked=(4095,))
    round_ = make_round(tmp_path, stub_environment, {"a": {}}, placement=nowhere)
    sample = measure_round(round_, tmp_path, "a")["a"]
    assert round_.machine_state is not None
    assert round_.machine_state.cores == ()
    assert "Invalid argument" in round_.machine_state.why_not_pinned
    assert all(told.request_s for told in sample.arms.values())  # its callers run where they like, then


def test_one_refused_pin_leaves_nobody_pinned(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["", "refused"])
    pin = cores.pin
    monkeypatch.setattr("harness.checks.latency.processes.pin", lambda pid, cores: next(answers) or pin(pid, cores))
    round_ = make_round(tmp_path, stub_environment, {"bad": {"load": "segfault"}, "a": {}})
    seen: list[list[set[int]]] = []
    round_.measure(
        ["bad", "a"], lambda _: seen.append([os.sched_getaffinity(p) for p in stub.processes_naming(tmp_path)])
    )
    assert seen == [[os.sched_getaffinity(0)] * 2] * 2  # nor after a restart
    assert round_.machine_state is not None
    assert (round_.machine_state.cores, round_.machine_state.why_not_pinned) == ((), "refused")


def test_gpu_is_checked_while_blocks_run_that_are_not_recorded(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocks() -> int:
        events = map(json.loads, (tmp_path / "benchmark" / "round-0-old" / "events.jsonl").read_text().splitlines())
        return sum((event["ev"], event.get("phase")) == ("begin", "block") for event in events)

    def look(uuid: str | None, own: Sequence[int]) -> GpuState:
        assert sorted(own) == sorted(stub.processes_naming(tmp_path))
        before = blocks()
        assert before > 3  # the last model's
        assert stub.eventually(lambda: blocks() > before)
        return GpuState(name=f"the GPU {uuid}")

    monkeypatch.setattr(Lane, "_on_gpu", True)
    monkeypatch.setattr(gpu, "look", look)
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "b": {}})
    found = measure_round(round_, tmp_path, "a", "b")
    assert round_.machine_state is not None
    assert round_.machine_state.gpu == GpuState(name="the GPU None")
    assert [len(sample.blocks) for sample in found.values()] == [6, 6]


@pytest.mark.parametrize(("threads", "pause_s"), [(1, 0.0), (2, SPIN_S)])
def test_arms_with_a_pool_wait_for_its_threads(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch, threads: int, pause_s: float
) -> None:
    pauses: list[float] = []
    take = ModelRound.time

    def note_and_take(model_round: ModelRound) -> None:
        pauses.append(model_round.pause_s)
        take(model_round)

    monkeypatch.setattr(ModelRound, "time", note_and_take)
    measure_round(make_round(tmp_path, stub_environment, {"a": {}}, threads=threads), tmp_path, "a")
    assert pauses == [pause_s]


def test_processes_run_on_the_cores_of_the_round(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "bad": {"load": "segfault"}, "b": {}})
    seen: dict[str, list[set[int]]] = {}

    def look(model: str) -> None:
        seen[model] = [os.sched_getaffinity(pid) for pid in stub.processes_naming(tmp_path)]

    round_.measure(["a", "bad", "b"], look)
    assert seen == dict.fromkeys(["a", "bad", "b"], [{HERE}] * 2)


def test_unpinned_round_says_so(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}}, placement=Placement(why_not="switched off"))
    measure_round(round_, tmp_path, "a")
    assert round_.machine_state is not None
    assert (round_.machine_state.cores, round_.machine_state.why_not_pinned) == ((), "switched off")
