"""The watchdog over real processes that hang, or only seem to; the rules by themselves are in test_hang_proof."""

import json
import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.core.hang import Evidence, Frame, HangKind, HangProof, ThreadStack
from harness.core.probe import Deadline
from harness.checks.hang import watchdog
from harness.probing import processes
from harness.probing.conclusion import Ending
from harness.probing.events import EventLog, EventTail, OpenPhase
from harness.probing.zygote import Child
from harness.worker import wire
from tests.programs import stub, watching
from tests.programs.watching import PATIENT, WELL

REPORTED_WITHIN_S = 5.0
"""The product's promise: from the last progress to the proof of a blocked process, on a machine with CPUs to give."""

# Name of the program -> models that are blamed.
BLOCKED = {
    "abba": ["m0", "m1"],
    "inherited_gil": ["owner", "waiter"],
    "polls": ["m0", "m1"],
    "stopped": ["m"],
    "own_pipe": ["m"],
    "forked_processes": ["m"],
    "loads_while_serving": ["loader"],
    "without_a_phase": [],
    "alone_at_the_barrier": [],
    "beside_an_idle_pool": ["m"],
    "beside_the_helpers_of_cuda": ["m"],
}
WAITS = {
    "abba": "a lock",
    "inherited_gil": "a lock, with a time limit",
    "polls": "a lock, with a time limit",
    "stopped": "being continued",
    "own_pipe": "a pipe of its own",
    "forked_processes": "a lock",
    "beside_an_idle_pool": "a lock",
    "beside_the_helpers_of_cuda": "a lock",
}

SILENT_S = 3.7

# Past a deadline of one second: what kind of hang it is, and what the phase's thread waits for.
LATE = {
    "abba": (HangKind.BLOCKED, "a lock"),
    "sleeps": (HangKind.OVERDUE, "a timer"),
    "waits_once_with_a_limit": (HangKind.BLOCKED, "a lock, with a time limit"),
    "hears_nothing": (HangKind.OVERDUE, "the network"),
    "polls_a_socket": (HangKind.OVERDUE, "the network"),
    "reads_from_another_process": (HangKind.OVERDUE, "a pipe"),
    "waits_for_a_child": (HangKind.OVERDUE, "another process"),
    "waits_for_a_file_lock": (HangKind.OVERDUE, "a file lock"),
    "stopped": (HangKind.BLOCKED, "being continued"),
    "retries": (HangKind.BLOCKED, "a lock, with a time limit"),
    "helper_sleeps": (HangKind.OVERDUE, "a lock"),
}
WORKS = ("computes", "livelock", "child_computes", "helper_computes")


def kinds(endings: dict[str, Ending]) -> dict[str, HangKind | None]:
    return {name: ending.proof.kind if ending.proof is not None else None for name, ending in endings.items()}


def blamed(ending: Ending) -> list[str]:
    return sorted(phase.model for phase in ending.overdue)


def at_work(ending: Ending) -> set[str]:
    assert ending.proof is not None
    return {one.waits_for for one in ending.proof.threads if one.phase in ("load", "call", "save") and one.waits_for}


def alarms(endings: dict[str, Ending]) -> dict[str, HangProof | None]:
    return {name: ending.proof for name, ending in endings.items() if ending.killed or not ending.event_log.bye}


WOKEN = "polls:woken"
PLANTED_DEFECT = Deadline(load_s=0.7, call_s=0.7, total_s=60.0)
BATCHES: dict[str, tuple[Mapping[str, float | None], Deadline]] = {
    "blocked": (dict.fromkeys([*BLOCKED, WOKEN]), PATIENT),
    "retries": ({"retries": None, "retries_until_a_helper_is_done": 10.8}, PATIENT),
    "late": (dict.fromkeys(LATE), Deadline(load_s=1.0, call_s=1.0, total_s=60.0)),
    "planted_defect": ({"sleeps": None}, PLANTED_DEFECT),
    "slow": ({"overtaken:well": 1.2, "overtaken": None}, Deadline(load_s=0.5, call_s=0.5, total_s=60.0)),
    "no tool": ({"sleeps": None}, Deadline(load_s=0.3, call_s=0.3, total_s=60.0)),
    "no stacks": ({"sleeps": None}, Deadline(load_s=0.3, call_s=0.3, total_s=60.0)),
    "woken by the look": ({"sleeps": 2.0}, Deadline(load_s=0.4, call_s=0.4, total_s=60.0)),
    "ends by itself": ({"own_pipe_of_a_timer": 4.5}, PATIENT),
    "dies in a look": ({"abba": None}, PATIENT),
    "well": (dict.fromkeys(WELL[:12], SILENT_S), PATIENT),
    "also well": (dict.fromkeys(WELL[12:], SILENT_S), PATIENT),
    "late and dies in a look": ({"sleeps": None}, Deadline(load_s=0.3, call_s=0.3, total_s=60.0)),
}
BIRTHS: dict[str, tuple[int | None, int | None]] = {}
Watched = Callable[[str], dict[str, Ending]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Watch all batches beside each other (only their starts use CPUs); a test waits for the one that it asks for."""
    folder = tmp_path_factory.mktemp("watched")

    def watch(name: str, after_s: float) -> dict[str, Ending]:
        time.sleep(after_s)
        return watching.watch_all(folder / name, *BATCHES[name], look)

    with ThreadPoolExecutor(len(BATCHES)) as pool:
        running = {name: pool.submit(watch, name, 0.4 * index) for index, name in enumerate(BATCHES)}
        yield lambda name: running[name].result()


def look(pid: int, run_dir: Path, proof: HangProof) -> Evidence:
    if run_dir.name == WOKEN:
        go_on(run_dir)
        threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    match run_dir.parent.name:
        case "no tool":
            raise RuntimeError("no such tool")
        case "no stacks":
            return Evidence(remarks=("nothing works",))
        case "woken by the look" | "ends by itself":
            assert stub.eventually(lambda: '"bye"' in (run_dir / "events.jsonl").read_text())
        case "dies in a look" | "late and dies in a look":
            before = processes.birth_of(pid)
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.3)
            BIRTHS[run_dir.name] = before, processes.birth_of(pid)
            return Evidence()
        case _:
            pass
    return Evidence(tool="a look", stacks=(ThreadStack(tid=pid),))


def go_on(run_dir: Path) -> None:
    event = {"ev": "mark", "name": "on", "data": None, "ns": time.monotonic_ns()}
    with (run_dir / "events.jsonl").open("a") as stream:
        stream.write(json.dumps(event) + "\n")


# Blocked.


@pytest.mark.parametrize("name", BLOCKED)
def test_blocked_process_is_reported_within_five_seconds_of_its_last_progress(watched: Watched, name: str) -> None:
    ending = watched("blocked")[name]
    assert ending.proof is not None
    assert ending.proof.kind is HangKind.BLOCKED
    assert 3.0 <= ending.proof.silent_s - ending.proof.stalled_s < REPORTED_WITHIN_S
    assert (ending.killed, ending.reaped, blamed(ending)) == (True, True, BLOCKED[name])


@pytest.mark.parametrize("name", WAITS)
def test_proof_names_what_a_blocked_thread_waits_for(watched: Watched, name: str) -> None:
    assert WAITS[name] in at_work(watched("blocked")[name])


def test_forked_process_that_is_blamed_is_the_one_that_is_looked_into(watched: Watched) -> None:
    ending = watched("blocked")["forked_processes"]
    assert ending.evidence is not None
    assert [stack.tid for stack in ending.evidence.stacks] == [ending.event_log.forked[1]]


def test_serving_thread_is_shown_as_serving(watched: Watched) -> None:
    proof = watched("blocked")["loads_while_serving"].proof
    assert proof is not None
    server, loader = proof.threads[:2]
    assert (server.phase, server.model, loader.phase, loader.waits_for) == ("serve", "server", "load", "a lock")
    assert server.on_cpu_s > loader.on_cpu_s


def test_process_that_goes_on_while_it_is_looked_into_was_not_blocked(watched: Watched) -> None:
    woken = watched("blocked")[WOKEN]
    assert woken.event_log.marks == {"on": None}
    assert (woken.killed, woken.proof) == (False, None)


# Well.


@pytest.mark.parametrize("name", WELL)
def test_silent_but_healthy_process_raises_no_alarm(watched: Watched, name: str) -> None:
    ending = watched("well" if name in WELL[:12] else "also well")[name]
    assert (ending.proof, ending.killed, ending.event_log.bye) == (None, False, True)


def initialize(folder: Path, seconds: float) -> dict[str, HangProof | None]:
    """Run 200 initializations in ten processes and return the alarms."""

    def one(index: int) -> Ending:
        run_dir = folder / str(index)
        child = watching.start(run_dir, "slow_initializations", seconds)
        try:
            return watchdog.watch(child, run_dir, PATIENT)
        finally:
            watching.end(child)

    with ThreadPoolExecutor(10) as pool:
        endings = dict(enumerate(pool.map(one, range(10))))
    assert sum(len(ending.event_log.load_ns) for ending in endings.values()) == 200
    return alarms({str(index): ending for index, ending in endings.items()})


@pytest.mark.slow
def test_on_busy_cpus_two_hundred_slow_initializations_raise_no_alarm_and_deadlocks_are_found(tmp_path: Path) -> None:
    sick = dict.fromkeys(("abba", "inherited_gil", "loads_while_serving"))
    with watching.hogs(2), ThreadPoolExecutor(1) as beside:
        found = beside.submit(watching.watch_all, tmp_path / "sick", sick, PATIENT)
        assert initialize(tmp_path, SILENT_S) == {}
        assert kinds(found.result()) == dict.fromkeys(sick, HangKind.BLOCKED)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0, 4])
def test_two_hundred_very_slow_initializations_raise_no_alarm(tmp_path: Path, load: int) -> None:
    with watching.hogs(load):
        assert initialize(tmp_path, 30.0) == {}


# Deadlines.


@pytest.mark.parametrize("name", LATE)
def test_kind_past_a_deadline_follows_what_the_thread_waits_for(watched: Watched, name: str) -> None:
    ending = watched("late")[name]
    kind, words = LATE[name]
    assert ending.proof is not None
    assert (ending.proof.kind, at_work(ending)) == (kind, {words})


def test_process_that_works_past_its_deadline_is_busy(tmp_path: Path) -> None:
    deadline = Deadline(load_s=0.4, call_s=0.4, total_s=60.0)
    endings = watching.watch_all(tmp_path, dict.fromkeys(WORKS), deadline)
    assert kinds(endings) == dict.fromkeys(WORKS, HangKind.BUSY)
    assert blamed(endings["livelock"]) == ["m0", "m1"]


def test_load_that_computes_past_its_own_limit_is_busy_long_before_its_deadline(tmp_path: Path) -> None:
    deadline = Deadline(load_s=60.0, call_s=60.0, total_s=60.0, load_cpu_s=0.2)
    ending = watching.watch_all(tmp_path, {"livelock": None}, deadline)["livelock"]
    assert ending.proof is not None
    assert ending.proof.kind is HangKind.BUSY
    assert set(blamed(ending)) <= {"m0", "m1"}
    assert ending.proof.own_s < 60.0


def test_hang_of_a_planted_defect_is_found_at_once(watched: Watched) -> None:
    proof = watched("planted_defect")["sleeps"].proof
    assert proof is not None
    assert 0.7 <= proof.own_s < 3.0


def test_hang_of_a_planted_defect_is_distinguished_from_a_busy_machine(tmp_path: Path) -> None:
    with watching.hogs(4):
        endings = watching.watch_all(tmp_path, {"computes": None, "sleeps": None}, PLANTED_DEFECT)
    assert kinds(endings) == {"computes": HangKind.BUSY, "sleeps": HangKind.OVERDUE}


def test_late_call_is_slow_while_others_get_on_up_to_a_cap(watched: Watched) -> None:
    endings = watched("slow")
    assert endings["overtaken:well"].proof is None
    hung = endings["overtaken"]
    assert (hung.killed, blamed(hung)) == (True, ["long"])
    assert hung.proof is not None
    assert hung.proof.kind is HangKind.OVERDUE
    assert hung.proof.silent_s < hung.proof.own_s


# Starved.


@pytest.mark.slow
def test_process_without_a_cpu_is_starved_and_not_busy_and_may_finish_once_it_has_one(tmp_path: Path) -> None:
    """Both share one CPU with twelve others, all of which have the right of way."""
    cpu = watching.one_cpu()
    before = ("taskset", "-c", str(cpu), "nice", "-n", "19")

    def watch(name: str, seconds: float | None, deadline: Deadline) -> Ending:
        child = watching.start(tmp_path / name, "computes", seconds, before)
        try:
            return watchdog.watch(child, tmp_path / name, deadline)
        finally:
            watching.end(child)

    with ThreadPoolExecutor(1) as pool:
        with watching.hogs(12, {cpu}):
            well = pool.submit(watch, "well", 0.3, Deadline(load_s=0.6, call_s=0.6, total_s=60.0))
            sick = watch("sick", None, Deadline(load_s=0.5, call_s=0.5, total_s=2.5))
        assert (well.result().proof, well.result().event_log.bye) == (None, True)
    assert sick.killed
    assert sick.proof is not None
    assert sick.proof.kind is HangKind.STARVED
    assert sick.proof.threads[0].run_delay_s > sick.proof.threads[0].on_cpu_s


# Evidence and the kill.


def test_phase_that_only_wants_the_gil_is_not_blamed_where_another_one_has_it() -> None:
    taking = ("take_gil", "PyEval_RestoreThread")
    serve, load = (
        OpenPhase(phase=phase, model="m", thread=tid, begin_ns=0, ident=tid, tid=tid)
        for tid, phase in ((1, "serve"), (2, "load"))
    )
    wants = ThreadStack(tid=1, frames=tuple(Frame(function=name, file="libpython3.11.so") for name in (*taking, "f")))
    waits = ThreadStack(tid=2, frames=(Frame(function="pthread_cond_wait", file="libc.so.6"),))
    assert watchdog._not_held_up((serve, load), Evidence(stacks=(wants, waits))) == (load,)
    assert watchdog._not_held_up((serve,), Evidence(stacks=(wants, waits))) == (serve,)
    assert watchdog._not_held_up((serve, load), None) == (serve, load)


def test_evidence_is_taken_before_the_kill_and_goes_with_the_proof(watched: Watched) -> None:
    ending = watched("blocked")["abba"]
    assert ending.evidence is not None
    assert (ending.evidence.tool, ending.evidence.proof) == ("a look", ending.proof)


def test_tool_that_fails_does_not_prevent_the_kill(watched: Watched) -> None:
    ending = watched("no tool")["sleeps"]
    assert (ending.killed, ending.reaped) == (True, True)
    assert ending.evidence is not None
    assert ending.evidence.proof == ending.proof
    assert "RuntimeError: no such tool" in ending.evidence.remarks[0]


def test_tool_that_takes_too_long_does_not_prevent_the_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "INVESTIGATION_DEADLINE_S", 0.2)
    done = threading.Event()

    def wait(pid: int, run_dir: Path, proof: HangProof) -> Evidence:
        done.wait(60)
        return Evidence()

    deadline = Deadline(load_s=0.3, call_s=0.3, total_s=60.0)
    try:
        (ending,) = watching.watch_all(tmp_path, {"sleeps": None}, deadline, wait).values()
    finally:
        done.set()
    assert (ending.killed, ending.reaped) == (True, True)
    assert ending.evidence is not None
    assert "took more than" in ending.evidence.remarks[0]


def test_look_at_a_process_that_somebody_else_ends_is_not_waited_for(tmp_path: Path) -> None:
    """Else whoever interrupts a run would wait for tools that look into what is gone."""
    done = threading.Event()
    child = watching.start(tmp_path / "sleeps", "sleeps")

    def wait(pid: int, run_dir: Path, proof: HangProof) -> Evidence:
        child.kill()
        done.wait(60)
        return Evidence()

    deadline = Deadline(load_s=0.3, call_s=0.3, total_s=60.0)
    try:
        ending = watchdog.watch(child, tmp_path / "sleeps", deadline, investigate=wait)
    finally:
        done.set()
        watching.end(child)
    assert (ending.killed, ending.reaped) == (True, True)
    assert ending.evidence is not None
    assert ending.evidence.remarks == ("the process was ended while it was looked into",)


def test_stacks_of_the_worker_itself_are_taken_where_no_tool_has_shown_any(watched: Watched) -> None:
    ending = watched("no stacks")["sleeps"]
    assert "in sleeps" in ending.stacks
    assert ending.evidence is not None
    assert ending.evidence.remarks == ("nothing works",)


def test_process_that_ends_while_it_is_looked_into_was_late_all_the_same(watched: Watched) -> None:
    """The look may have ended the wait: a signal wakes who sleeps."""
    ending = watched("woken by the look")["sleeps"]
    assert (ending.killed, ending.reaped, ending.event_log.bye, blamed(ending)) == (True, True, True, ["m"])


def test_blocked_process_that_ends_while_it_is_looked_into_was_not_blocked(watched: Watched) -> None:
    ending = watched("ends by itself")["own_pipe_of_a_timer"]
    assert (ending.killed, ending.event_log.bye, ending.proof) == (False, True, None)


@pytest.mark.parametrize("name", ["sleeps", "abba"])
def test_number_of_a_process_is_kept_while_it_is_looked_into(watched: Watched, name: str) -> None:
    """It may end at any time; whoever has its number then would get the signals."""
    ending = watched("dies in a look" if name == "abba" else "late and dies in a look")[name]
    assert (ending.reaped, BIRTHS[name][0] is not None) == (True, True)
    assert BIRTHS[name][0] == BIRTHS[name][1]


def test_blocked_process_that_dies_while_it_is_looked_into_was_not_killed(watched: Watched) -> None:
    ending = watched("dies in a look")["abba"]
    assert (ending.killed, ending.proof) == (False, None)
    assert watched("late and dies in a look")["sleeps"].killed


def test_child_that_was_never_forked_ends_with_the_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.checks.hang.watchdog.REAP_DEADLINE_S", 0.1)
    ending = watchdog.watch(Child(run_dir=str(tmp_path)), tmp_path, Deadline(load_s=1, call_s=1, total_s=0.1))
    assert (ending.killed, ending.reaped, ending.overdue) == (True, False, ())
    assert ending.proof is not None
    assert ending.proof.kind is HangKind.OVERDUE


def test_child_that_has_ended_is_not_killed(tmp_path: Path) -> None:
    child = Child(run_dir=str(tmp_path))
    child.ended.set()
    ending = watchdog.watch(child, tmp_path, Deadline(load_s=0, call_s=0, total_s=0))
    assert (ending.killed, ending.reaped, ending.stacks, ending.proof) == (False, True, "", None)


def test_watching_adds_nothing_to_a_process_that_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "WorkerSampler", None)  # nobody looks before the first poll
    delays = []
    for _ in range(5):
        child = Child(run_dir=str(tmp_path), pid=1)
        ended_s: list[float] = []

        def leave(child: Child = child, ended_s: list[float] = ended_s) -> None:
            time.sleep(0.05)
            ended_s.append(watching.monotonic_s())
            child.ended.set()

        leaving = threading.Thread(target=leave)
        leaving.start()
        watchdog.watch(child, tmp_path, PATIENT)
        delays.append(watching.monotonic_s() - ended_s[0])
        leaving.join()
    assert min(delays) < 0.02


# The event_log that it follows.


def began(phase: str, *, model: str = "m", thread: int = 0) -> str:
    ns = time.monotonic_ns()
    return json.dumps({"ev": "begin", "phase": phase, "model": model, "thread": thread, "ident": 1, "ns": ns})


def test_tail_reads_each_line_once_and_waits_for_the_rest_of_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    assert not tail.refresh().hello
    line = began("load").encode() + b"\n"
    path.write_bytes(b'{"ev":"hello","ns":1}\n' + line[:20])
    assert tail.refresh().hello
    assert not tail.event_log.open
    path.write_bytes(path.read_bytes() + line[20:])
    assert [opened.phase for opened in tail.refresh().open.values()] == ["load"]
    assert len(tail.refresh().open) == 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "5",
        "[]",
        "null",
        '"text"',
        "{}",
        '{"ev":"begin","ns":1}',
        '{"ev":"end","ns":1}',
        '{"ev":3,"ns":1}',
        '{"ev":"x","ns":"y"}',
        "{",
    ],
)
def test_strange_line_in_the_event_log_is_skipped(line: str) -> None:
    event_log = EventLog()
    event_log.feed([line, began("load")])
    assert len(event_log.open) == 1


# Last, because it takes longest.


def test_loop_that_looks_every_second_is_blocked_after_ten_of_them(watched: Watched) -> None:
    endings = watched("retries")
    assert alarms({name: endings[name] for name in endings if name != "retries"}) == {}
    ending = endings["retries"]
    assert ending.proof is not None
    assert (ending.proof.kind, blamed(ending)) == (HangKind.BLOCKED, ["m"])
    assert 10.0 <= ending.proof.silent_s - ending.proof.stalled_s < 12.0


def test_only_the_end_of_a_huge_dump_is_read(tmp_path: Path) -> None:
    with (tmp_path / wire.STACKS).open("wb") as stream:
        stream.truncate(64 << 20)
        stream.seek(0, 2)
        stream.write(b"last words")
    tracemalloc.start()
    try:
        assert watchdog._read_stacks(tmp_path).endswith("last words")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
