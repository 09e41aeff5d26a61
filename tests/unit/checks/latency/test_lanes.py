"""Rounds in two lanes: over real processes with a stub of torch, and the lock that keeps the lanes apart."""

import json
import os
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.core.machine import GpuState, MachineState
from harness.checks.latency.lanes import Lane, ReadWriteLock, combined
from harness.machine.cores import Placement
from harness.worker import wire
from tests.programs import stub
from tests.unit.builders.rounds import BUDGET, HERE, measure_round, make_round

# On a machine with one core both lanes are on it: what they do is the same.
CORES = (HERE, max(os.sched_getaffinity(0)))
TWO = Placement(cores=CORES[:1], ranked=CORES)


def phases(folder: Path) -> list[tuple[str, str, int, int]]:
    """(lane, phase, begin, end) of what the processes did."""
    found = []
    for path in (folder / "benchmark").glob("round-*/events.jsonl"):
        begun: dict[tuple[int, str], int] = {}
        for event in map(json.loads, path.read_text().splitlines()):
            if event["ev"] == "begin":
                begun[event["thread"], event["phase"]] = event["ns"]
            elif event["ev"] == "end":
                begin = begun.pop((event["thread"], event["phase"]))
                found.append((path.parent.name.rpartition("-")[0], event["phase"], begin, event["ns"]))
    return found


def test_models_are_shared_out_to_the_lanes_and_each_is_measured_once(
    tmp_path: Path, stub_environment: Environment
) -> None:
    models = "abcdef"
    round_ = make_round(tmp_path, stub_environment, {name: {} for name in models}, placement=TWO, lanes=2)
    found = measure_round(round_, tmp_path, *models)
    assert (list(found), round_.problems) == (list(models), {})
    assert all(len(sample.blocks) == 6 for sample in found.values())
    assert round_.machine_state is not None
    assert round_.machine_state.cores == tuple(sorted(CORES))
    lanes = {path.name.rpartition("-")[0] for path in (tmp_path / "benchmark").iterdir()}
    assert lanes == {"round-0", "round-0-lane-1"}


def test_nobody_does_anything_while_another_lane_has_callers_on_all_cores(
    tmp_path: Path, stub_environment: Environment
) -> None:
    models = "abcdef"
    round_ = make_round(tmp_path, stub_environment, {name: {} for name in models}, placement=TWO, lanes=2)
    measure_round(round_, tmp_path, *models)
    done = [one for one in phases(tmp_path) if one[1] != wire.IMPORT]
    together = [one for one in done if one[1] == wire.SERVE]
    assert len(together) == 2 * BUDGET.threads * len(models)
    for lane, _, begin, end in together:
        assert [one for one in done if one[0] != lane and one[2] < end and one[3] > begin] == []


def test_one_model_has_one_lane(tmp_path: Path, stub_environment: Environment) -> None:
    measure_round(make_round(tmp_path, stub_environment, {"a": {}}, placement=TWO, lanes=2), tmp_path, "a")
    assert {path.name for path in (tmp_path / "benchmark").iterdir()} == {"round-0-old", "round-0-new"}


def test_model_that_breaks_its_lane_costs_the_other_nothing(tmp_path: Path, stub_environment: Environment) -> None:
    programs: dict[str, dict[str, object]] = {
        "bad": {"load": "segfault"},
        "a": {},
        "b": {},
        "worse": {"calls": {"17": "abort"}},
        "c": {},
    }
    round_ = make_round(tmp_path, stub_environment, programs, placement=TWO, lanes=2)
    assert list(measure_round(round_, tmp_path, *programs)) == ["a", "b", "c"]
    assert round_.problems == dict.fromkeys(("bad", "worse"), "the new process died")


def test_interrupted_round_ends_the_processes_of_all_lanes(tmp_path: Path, stub_environment: Environment) -> None:
    programs: dict[str, dict[str, object]] = {name: {"calls": {"1": "hang_asleep"}} for name in "ab"}
    round_ = make_round(tmp_path, stub_environment, programs, 600.0, placement=TWO, lanes=2)

    def interrupt() -> None:
        assert stub.eventually(lambda: len(stub.processes_naming(tmp_path)) == 4)
        signal.pthread_kill(main, signal.SIGUSR1)

    main, before = threading.get_ident(), signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            round_.measure(["a", "b"], lambda _: None)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path))
    assert stub.zombies() == []


def test_lane_that_cannot_start_leaves_its_model_to_the_other(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Lane._start

    def refuse_one(lane: Lane) -> None:
        if lane._name.endswith("-lane-1"):
            lane._environments = {"old": Environment(name="gone", interpreter="/gone", spec=stub_environment.spec)}
        start(lane)

    monkeypatch.setattr(Lane, "_start", refuse_one)
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "b": {}, "c": {}}, placement=TWO, lanes=2)
    assert list(measure_round(round_, tmp_path, "a", "b", "c")) == ["a", "b", "c"]
    assert round_.problems == {}


def test_whoever_is_alone_waits_for_everyone_and_everyone_for_him() -> None:
    lock, seen, waited = ReadWriteLock(), list[str](), list[str]()

    def waiting() -> nullcontext[None]:
        waited.append("shared")
        return nullcontext()

    def alone() -> None:
        with lock.alone():
            seen.append("alone begins")
            time.sleep(0.05)
            seen.append("alone ends")

    def shared() -> None:
        with lock.shared(waiting):
            seen.append("shared")

    with lock.shared(waiting):
        first = threading.Thread(target=alone)
        first.start()
        assert stub.eventually(lambda: lock._wanting == 1)
        second = threading.Thread(target=shared)
        second.start()
        assert stub.eventually(lambda: waited == ["shared"])
        seen.append("the first that shares ends")
    first.join()
    second.join()
    assert seen == ["the first that shares ends", "alone begins", "alone ends", "shared"]


def test_state_of_several_lanes_is_the_worst_of_each() -> None:
    quiet = MachineState(cores=(1,), others=0.01, stolen=0.2)
    busy = MachineState(cores=(0,), others=0.3, quota_throttled_s=0.5, gpu=GpuState(name="one"))
    assert combined([quiet, busy]) == MachineState(
        cores=(0, 1), others=0.3, stolen=0.2, quota_throttled_s=0.5, gpu=GpuState(name="one")
    )
    assert combined([quiet, MachineState(why_not_pinned="refused")]).why_not_pinned == "refused"
