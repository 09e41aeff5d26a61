"""Threads of both workers: their pools, what they serve, who is blamed for a crash, and what is our own failure."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ModelRun, ProbeRequest, Script, ServingProfile, Step
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.processes import BOOTSTRAP
from harness.probing.requests import wire_request
from harness.probing.runner import ZygoteRunner
from harness.store import probe_files
from harness.worker import wire
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
ONE_EACH = ServingProfile(intra_op_threads=1, inter_op_threads=2)
NO_STACK_IS_THAT_LARGE = 1 << 48


@dataclass
class Bench:
    """Both workers of torch 2.6.0 as plain commands."""

    runner: ZygoteRunner
    commands: dict[str, list[str]]
    artifacts: dict[str, Artifact] = field(default_factory=dict)

    def request(self, worker: str, script: Script, names: Mapping[str, str], calls: int = 1) -> ProbeRequest:
        runs = []
        for name, model in names.items():
            artifact = replace(self.artifacts[model], model=name)
            runs.append(ModelRun(artifact=artifact, schedule=(("example", calls),)))
        return replay.asked("run", worker, profile=ONE_EACH, runs=tuple(runs), script=script)

    def start(self, worker: str, folder: Path, request: Mapping[str, Any], **more: Any) -> "subprocess.Popen[bytes]":
        folder.mkdir(exist_ok=True)
        (folder / wire.REQUEST).write_text(json.dumps(request))
        command = [*self.commands[worker], str(folder), str(os.getpid())]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in probe_files.read(folder, wire.EVENTS).splitlines()]


@pytest.fixture(scope="module")
def bench(new_python: str, new_workers: ZygoteRunner) -> Bench:
    commands = {"libtorch": [str(new_workers.native["old"])], "python": [new_python, "-s", "-u", str(BOOTSTRAP)]}
    wanted = [
        *replay.models(),
        *read_fixtures(PROJECT / "tests" / "integration" / "checks" / "startup" / "concurrency"),
    ]
    names = ("matmul", "turns", "counts", "wild_read")
    declared = tuple(item for item in wanted if item.name in names)
    return Bench(new_workers, commands, replay.export(new_workers, declared))


# intra-op pools


@dataclass
class Tasks:
    """What the kernel has shown of the threads of a process while it lived."""

    most: int = 0
    cpu_ns: dict[int, int] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        try:
            tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
            self.most = max(self.most, len(tids))
            for tid in tids:
                self.cpu_ns[tid] = int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            return


@pytest.mark.parametrize(
    ("worker", "through"),
    [
        ("libtorch", "thread"),
        pytest.param("libtorch", "inter_op", marks=pytest.mark.slow),
        pytest.param("python", "thread", marks=pytest.mark.slow),
    ],
)
def test_threads_keep_to_the_intra_op_pool_and_spend_no_cpu_elsewhere(
    bench: Bench, tmp_path: Path, worker: str, through: str
) -> None:
    """MKL gives a thread that never asked torch as many helpers as there are cores; they spin between two calls."""
    names = ("matmul", "matmul#1")
    threads = tuple((("load", name), ("barrier", "loaded"), ("calls", name)) for name in names)
    script = Script(threads=threads, barriers={"loaded": 2}, calls_through=through)
    request = wire_request(bench.request(worker, script, dict.fromkeys(names, "matmul"), calls=60))
    child, seen = bench.start(worker, tmp_path / "run", request), Tasks()
    while child.poll() is None:
        seen.look(child.pid)
        time.sleep(0.002)
    assert child.returncode == 0
    events = events_of(tmp_path / "run")
    ours = {child.pid, *(event["tid"] for event in events if "tid" in event)}
    in_calls_ns = sum(event["cpu_ns"] for event in events if event["ev"] == "end" and event["phase"] == wire.CALL)
    elsewhere_ns = sum(spent for tid, spent in seen.cpu_ns.items() if tid not in ours)
    assert seen.most == (5 if through == "inter_op" else 3)  # the main thread, two that initialize, the pool's two
    assert in_calls_ns > 100e6
    assert elsewhere_ns < 0.02 * in_calls_ns
    assert [event["name"] for event in events if event["ev"] == "mark"] == ["switches", "numerics"]


@pytest.mark.parametrize("through", ["thread", "inter_op"])
def test_thread_with_another_pool_than_was_asked_for_says_so(bench: Bench, tmp_path: Path, through: str) -> None:
    script = Script(threads=((("load", "turns"), ("calls", "turns")), ()), calls_through=through)
    request = wire_request(bench.request("libtorch", script, {"turns": "turns"}, calls=3))
    request["pools"]["intra_op"] = 2**32 + 1  # more than torch counts
    assert bench.start("libtorch", tmp_path / "run", request).wait(60) == 0
    marks = {event["name"]: event["data"] for event in events_of(tmp_path / "run") if event["ev"] == "mark"}
    assert set(marks) == {"switches", "numerics", "intra_op_otherwise:0", "intra_op_otherwise:1"}
    assert marks["intra_op_otherwise:0"] == {"requested": 2**32 + 1, "read_back": 1}


# calls in the inter-op pool


def test_call_in_a_pool_is_in_the_hands_of_a_thread_of_the_pool(bench: Bench, tmp_path: Path) -> None:
    names = ("matmul", "matmul#1", "matmul#2")
    script = Script(threads=tuple((("load", name), ("calls", name)) for name in names), calls_through="inter_op")
    request = wire_request(bench.request("libtorch", script, dict.fromkeys(names, "matmul"), calls=5))
    assert bench.start("libtorch", tmp_path / "run", request).wait(60) == 0
    events = events_of(tmp_path / "run")
    waiting = {event["thread"]: event["tid"] for event in events if event.get("phase") == wire.LOAD and "tid" in event}
    tasks = [event for event in events if event["ev"] == "task"]
    assert len(tasks) == 15
    assert {event["tid"] for event in tasks}.isdisjoint(waiting.values())
    assert len({event["tid"] for event in tasks}) <= 2
    assert all(event["ident"] for event in tasks)
    for thread in waiting:
        mine = [(event["ev"], event.get("call")) for event in events if event.get("thread") == thread]
        calls = [pair for pair in mine if pair[0] == "task"]
        assert calls == [("task", index) for index in range(5)]
        assert all(mine.index(pair) < mine.index(("end", pair[1]), mine.index(pair)) for pair in calls)


def test_crash_in_a_pool_thread_blames_the_call_that_it_has_taken_up(bench: Bench) -> None:
    healthy: tuple[Step, ...] = (("load", "matmul"), ("barrier", "loaded"), ("calls", "matmul"))
    sick: tuple[Step, ...] = (("load", "wild"), ("barrier", "loaded"), ("delay", 300), ("calls", "wild"))
    script = Script(threads=(healthy, sick), barriers={"loaded": 2}, calls_through="inter_op")
    names = {"matmul": "matmul", "wild": "wild_read"}
    result = bench.runner(bench.request("libtorch", script, names, calls=100_000))
    assert result.exit_detail == "signal SIGSEGV"
    outcomes = {item.model: (item.outcome, item.phase_words) for item in result.models}
    assert outcomes["wild"] == (Outcome.CRASH, "call 0 of example")
    assert outcomes["matmul"][0] is Outcome.NOT_RUN
    assert result.evidence is not None


# what is served


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_served_answer_that_differs_from_the_recorded_one_is_marked(bench: Bench, worker: str) -> None:
    names = ("turns", "matmul", "counts")
    threads: tuple[tuple[Step, ...], ...] = (
        *((("load", name), ("calls", name), ("barrier", "up"), ("serve", name, "done")) for name in names),
        (("barrier", "up"), ("delay", 400), ("count_down", "done")),
    )
    script = Script(threads=threads, barriers={"up": 4}, latches={"done": 1})
    result = bench.runner(bench.request(worker, script, {name: name for name in names}, calls=3))
    found = {name: data for name, data in result.data.items() if "otherwise" in name}
    assert list(found) == ["served_otherwise:turns"]
    told = found["served_otherwise:turns"]
    assert told["first"] == 4  # its eighth call: three were recorded
    assert told["different"] == told["calls"] - 4 > 0


# our own failures


@pytest.mark.parametrize("worker", ["libtorch", pytest.param("python", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("threads", "words"),
    [
        ([[["barrier", "nowhere"]], [["load"]]], "a step cannot be done: "),
        ([[["barrier", "nowhere"]], [["dance", "matmul"]]], "a step cannot be done: no step is called 'dance'"),
        ([[["perform"]]], "a step cannot be done: no step is called 'perform'"),
        ([[["serve"]]], "the request cannot be done: "),
    ],
    ids=["nothing to load", "unknown step", "alone", "nothing to serve"],
)
def test_what_cannot_be_done_is_our_own_failure(
    bench: Bench, tmp_path: Path, worker: str, threads: list[list[list[str]]], words: str
) -> None:
    request = wire_request(bench.request(worker, Script(threads=()), {}))
    request["script"] = {"threads": threads, "barriers": {"nowhere": 2}, "latches": {}}
    assert bench.start(worker, tmp_path / "run", request).wait(60) == wire.EXIT_BROKEN
    last = events_of(tmp_path / "run")[-1]
    assert (last["ev"], last["phase"], last["type"]) == ("error", "", "ProtocolError")
    assert last["message"].startswith(words)


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_thread_that_cannot_be_started_is_our_own_failure(bench: Bench, tmp_path: Path, worker: str) -> None:
    def claim_endless_stacks() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (NO_STACK_IS_THAT_LARGE, resource.RLIM_INFINITY))

    script = Script(threads=((("barrier", "met"),),) * 3, barriers={"met": 3})
    request = wire_request(bench.request(worker, script, {}))
    child = bench.start(worker, tmp_path / "run", request, preexec_fn=claim_endless_stacks)
    assert child.wait(60) == wire.EXIT_BROKEN
    last = events_of(tmp_path / "run")[-1]
    assert (last["ev"], last["phase"], last["type"]) == ("error", "", "ProtocolError")
    assert last["message"].startswith("cannot start one of 3 threads: ")


def test_calls_through_nobody_knows_what_are_refused(bench: Bench, tmp_path: Path) -> None:
    request = wire_request(bench.request("libtorch", Script(threads=((),), calls_through="carrier_pigeons"), {}))
    assert bench.start("libtorch", tmp_path / "run", request).wait(60) == wire.EXIT_BROKEN
    assert "carrier_pigeons" in events_of(tmp_path / "run")[-1]["message"]
