"""The probe runner over real zygotes with a stub of torch: every misbehaviour, and what is left of it."""

import contextlib
import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.verdict.cell import judge_alone
from harness.core.devices import CPU, TABLE, Device
from harness.core.environment import Environment, Fingerprint
from harness.core.outcome import Outcome, Status
from harness.core.probe import Deadline, ModelResult, ProbeRequest, ProbeResult, ServingProfile, WorkerLimits
from harness.core.errors import EnvironmentUnavailable, InternalError, RunDirError
from harness.checks.hang import watchdog
from harness.probing import conclusion, events, processes, verification
from harness.probing import runner as probing_runner
from harness.probing.conclusion import conclude
from harness.probing.requests import wire_request
from harness.probing.runner import ZygoteRunner, require_seen
from harness.probing.zygote import Child, Zygote
from harness.store import codec, probe_files
from harness.store.results import WhyNot
from harness.artifacts.tensors.recorded import read_outputs
from harness.worker import wire
from tests.programs import stub

Probe = Callable[..., ProbeResult]


@pytest.fixture
def runner(
    tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment
) -> Iterator[ZygoteRunner]:
    runner = ZygoteRunner({"old": stub_environment, "new": other_stub_environment}, tmp_path / "probes", watchdog)
    yield runner
    runner.close()
    assert runner.unreaped == []
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)
    assert stub.zombies() == []


@pytest.fixture
def probe(runner: ZygoteRunner, artifacts: Path) -> Probe:
    """Run one artifact, made of a program, alone."""

    def run(deadline: Deadline = stub.PATIENT, *, name: str = "model", **program: object) -> ProbeResult:
        return runner(stub.run_request([stub.write_artifact(artifacts, name, **program)], deadline))

    return run


HANGS = (
    "hang_asleep",
    "hang_busy",
    "hang_busy_holding_gil",
    "hang_asleep_holding_gil",
    "hang_deaf",
    "hang_stopped",
    "hang_while_forking",
    "leave_grandchild_and_hang",
)
COMMON_HANGS = ("hang_asleep", "hang_busy_holding_gil", "hang_stopped")
NAMED_BY_STACKS = HANGS[:4]  # asleep or busy, with the GIL or without it


@pytest.mark.parametrize(
    "action", [pytest.param(hang, marks=() if hang in COMMON_HANGS else pytest.mark.slow) for hang in HANGS]
)
def test_hanging_call_is_a_hang_of_that_call_and_its_stack_names_the_function(probe: Probe, action: str) -> None:
    result = probe(stub.BRIEF, calls={"1": action})
    (model,) = result.models
    assert (result.outcome, model.outcome, model.phase_words) == (Outcome.HANG, Outcome.HANG, "call 1 of example")
    assert model.failure is None
    if action in NAMED_BY_STACKS:
        assert f"in {action}" in result.stacks
        assert f"in {action}" in Path(result.directory, "stacks.txt").read_text()


@pytest.mark.parametrize("action", ["write_by_bare_names", "spoil_event_log"])
def test_what_an_artifact_writes_over_the_event_log_costs_nothing(probe: Probe, action: str) -> None:
    result = probe(calls={"1": action}, answer=[1])
    assert result.outcomes == {Outcome.COMPLETED}
    assert verification.legible_outputs(result.directory, "model").calls.keys() == {("example", n) for n in range(3)}


def test_a_mark_that_no_file_can_hold_is_kept_in_another_spelling(probe: Probe) -> None:
    assert probe(calls={"1": "spoil_event_log"}).data["x"] == {"?": "?"}


@pytest.mark.parametrize(
    ("action", "words"),
    [("spoil_record", "what it has recorded cannot be read: line "), ("forge_mark", "the mark numerics is damaged")],
)
def test_a_record_that_an_artifact_has_spoilt_costs_its_own_row(probe: Probe, action: str, words: str) -> None:
    result = probe(calls={"1": action})
    (model,) = result.models
    assert (model.outcome, model.phase) == (Outcome.PROTOCOL_ERROR, wire.RECORD)
    assert model.failure is not None
    assert words in model.failure.message
    assert "numerics" not in result.data or action != "forge_mark"
    assert probe(name="healthy").outcomes == {Outcome.COMPLETED}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([[7] * 100_000] * 3, "answers with more than 200000 values, which are not compared"),
        ("a" * (8 << 20), "answers with what takes more than 4 MiB to describe, which is not compared"),
        ({"a" * (9 << 20): 1}, "answers with what takes more than 4 MiB to describe, which is not compared"),
    ],
    ids=["lists", "text", "key"],
)
def test_an_answer_that_is_too_large_to_be_compared_is_an_error_of_its_model(
    probe: Probe, answer: object, words: str
) -> None:
    result = probe(answer=answer)
    (model,) = result.models
    assert (model.outcome, model.phase) == (Outcome.PROTOCOL_ERROR, wire.RECORD)
    assert model.failure is not None
    assert (model.failure.type, model.failure.message) == ("TooLarge", words)
    assert probe_files.read(Path(result.directory), f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}") == b""


@pytest.mark.slow
def test_the_largest_answer_that_is_compared_is_compared(runner: ZygoteRunner, artifacts: Path) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model", answer=[7] * 200_000)], stub.PATIENT)
    result = runner(replace(request, runs=(replace(request.runs[0], schedule=(("example", 1),)),)))
    assert result.outcomes == {Outcome.COMPLETED}
    assert len(verification.legible_outputs(result.directory, "model").calls["example", 0][1]) == 200_000


def test_hanging_load_is_a_hang_of_the_load(probe: Probe) -> None:
    (model,) = probe(stub.BRIEF, load="hang_busy_holding_gil").models
    assert (model.outcome, model.phase, model.load_ns) == (Outcome.HANG, "load", None)


@pytest.mark.parametrize(
    ("action", "outcome", "exit_detail"),
    [
        ("segfault", Outcome.CRASH, "signal SIGSEGV"),
        ("abort", Outcome.CRASH, "signal SIGABRT"),
        ("exit_at_once", Outcome.CRASH, "exit code 3"),
        ("exit_as_if_well", Outcome.CRASH, "exit code 0"),
        ("half_an_event_then_die", Outcome.CRASH, "exit code 3"),
        ("killed_from_outside", Outcome.OUT_OF_MEMORY, "signal SIGKILL"),  # as the kernel's killer does it
    ],
)
@pytest.mark.parametrize("where", ["load", "call"])
def test_process_that_ends_in_a_phase_is_blamed_on_it(
    probe: Probe, action: str, outcome: Outcome, exit_detail: str, where: str
) -> None:
    result = probe(load=action) if where == "load" else probe(calls={"1": action})
    (model,) = result.models
    assert (result.outcome, model.outcome, result.exit_detail) == (outcome, outcome, exit_detail)
    assert model.phase_words == ("load" if where == "load" else "call 1 of example")
    assert "in segfault" in result.stacks or action != "segfault"


@pytest.mark.parametrize(
    ("action", "at_load", "at_call", "type_"),
    [
        ("raise_error", Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR, "RuntimeError"),
        ("raise_without_message", Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR, "ImportError"),
        ("exit_politely", Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR, "SystemExit"),
        ("raise_memory_error", Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY, "MemoryError"),
        ("raise_allocator_error", Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY, "RuntimeError"),
    ],
)
def test_exception_of_a_model_is_data(
    probe: Probe, action: str, at_load: Outcome, at_call: Outcome, type_: str
) -> None:
    loaded, called = probe(name="a", load=action), probe(name="b", calls={"2": action})
    assert (loaded.outcome, called.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    load, call = loaded.models[0], called.models[0]
    assert (load.outcome, call.outcome) == (at_load, at_call)
    assert load.failure is not None
    assert call.failure is not None
    assert (load.failure.type, load.failure.phase, load.failure.call) == (type_, "load", None)
    assert (call.failure.type, call.failure.phase, call.failure.call) == (type_, "call", 2)
    assert f"in {action}" in call.failure.traceback
    assert len(call.calls) == 2


@pytest.mark.parametrize(
    "action",
    ["print_garbage", "flood_stderr", "close_stdin", "strange_events", "scribble_on_pipes", "fork_once_and_go_on"],
)
def test_noise_of_a_model_changes_nothing(probe: Probe, action: str) -> None:
    result = probe(calls={"1": action})
    assert (result.outcome, result.models[0].outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert [call.call for call in result.models[0].calls] == [0, 1, 2]
    assert len(read_outputs(result.directory, "model").calls) == 3


def test_torn_event_costs_that_event_only(probe: Probe) -> None:
    result = probe(calls={"1": "half_an_event"})
    assert result.models[0].outcome is Outcome.COMPLETED
    assert [call.call for call in result.models[0].calls] == [0, 2]


def test_what_the_model_prints_lies_in_the_folder_of_its_probe(probe: Probe) -> None:
    result = probe(calls={"0": "print_garbage"})
    assert b"garbage without end" in probe_files.read(Path(result.directory), "stdout")


def test_model_that_closes_the_event_log_is_ours_and_not_a_regression(probe: Probe) -> None:
    result = probe(calls={"1": "close_everything"})
    assert (result.outcome, result.exit_detail) == (Outcome.PROTOCOL_ERROR, "exit code 71")
    assert result.models[0].outcome is Outcome.NOT_RUN


@pytest.mark.parametrize(
    "action",
    [
        pytest.param("hang_stopped", marks=pytest.mark.slow),
        *("segfault", "leave_grandchild", "scribble_on_pipes", "close_everything"),
    ],
)
def test_neighbours_of_a_bad_probe_are_unaffected(runner: ZygoteRunner, artifacts: Path, action: str) -> None:
    def run(index: int) -> Outcome:
        bad = index == 2
        program: dict[str, object] = {"every_call": action} if bad else {"every_call": "nap"}
        artifact = stub.write_artifact(artifacts, f"model_{index}", **program)
        result = runner(stub.run_request([artifact], stub.BRIEF if bad else stub.PATIENT))
        return Outcome.NOT_RUN if bad else result.models[0].outcome

    with ThreadPoolExecutor(5) as pool:
        outcomes = list(pool.map(run, range(5)))
    assert outcomes == [Outcome.NOT_RUN if index == 2 else Outcome.COMPLETED for index in range(5)]


def test_equal_requests_at_the_same_time_run_once_and_answer_all(runner: ZygoteRunner, artifacts: Path) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model", every_call="nap")], stub.PATIENT)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(runner, [request] * 4))
    assert all(result == results[0] for result in results)
    assert results[0].models[0].outcome is Outcome.COMPLETED


def test_hang_of_one_thread_blames_its_model_and_keeps_the_others(runner: ZygoteRunner, artifacts: Path) -> None:
    good = stub.write_artifact(artifacts, "good")
    bad = stub.write_artifact(artifacts, "bad", calls={"1": "hang_asleep"})
    result = runner(stub.run_request([good, bad], stub.BRIEF, threads=2))
    assert {model.model: model.outcome for model in result.models} == {"good": Outcome.COMPLETED, "bad": Outcome.HANG}
    assert "in hang_asleep" in result.stacks
    assert "in perform" in result.stacks  # the main thread, which waits for the others


def test_crash_of_one_thread_blames_its_model_alone(runner: ZygoteRunner, artifacts: Path) -> None:
    waiting = stub.write_artifact(artifacts, "waiting", calls={"0": "hang_asleep"})
    bad = stub.write_artifact(artifacts, "bad", calls={"2": "segfault"})
    result = runner(stub.run_request([waiting, bad], stub.PATIENT, threads=2))
    assert {model.model: model.outcome for model in result.models} == {"waiting": Outcome.NOT_RUN, "bad": Outcome.CRASH}


def test_model_after_a_failed_one_still_runs_in_the_same_process(runner: ZygoteRunner, artifacts: Path) -> None:
    names = {"a": "raise_error", "b": "exit_politely", "c": "nap"}
    made = [stub.write_artifact(artifacts, name, load=action) for name, action in names.items()]
    result = runner(stub.run_request(made, stub.PATIENT))
    assert [model.outcome for model in result.models] == [Outcome.LOAD_ERROR, Outcome.LOAD_ERROR, Outcome.COMPLETED]


def test_model_after_a_crashed_one_was_not_run(runner: ZygoteRunner, artifacts: Path) -> None:
    made = [stub.write_artifact(artifacts, "a", load="segfault"), stub.write_artifact(artifacts, "b")]
    result = runner(stub.run_request(made, stub.PATIENT))
    assert [model.outcome for model in result.models] == [Outcome.CRASH, Outcome.NOT_RUN]


# What is left behind.


@pytest.mark.parametrize(
    ("action", "deadline", "outcome"),
    [
        ("leave_grandchild", stub.PATIENT, Outcome.COMPLETED),
        ("leave_grandchild_in_own_session", stub.PATIENT, Outcome.COMPLETED),
        ("leave_a_daemon", stub.PATIENT, Outcome.COMPLETED),
        ("leave_daemons_of_daemons", stub.PATIENT, Outcome.COMPLETED),
        ("leave_a_daemon_and_crash", stub.PATIENT, Outcome.CRASH),
        ("leave_a_daemon_and_hang", stub.BRIEF, Outcome.HANG),
    ],
)
def test_what_a_model_starts_ends_with_its_probe_whatever_session_it_has_moved_to(
    tmp_path: Path, artifacts: Path, stub_environment: Environment, action: str, deadline: Deadline, outcome: Outcome
) -> None:
    note = tmp_path / "grandchild"
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    try:
        artifact = stub.write_artifact(artifacts, "model", calls={"1": action}, note=str(note))
        result = runner(stub.run_request([artifact], deadline))
        left = [path for path in tmp_path.glob("grandchild*") if stub.is_alive(int(path.read_text()))]
        twin = runner(stub.run_request([stub.write_artifact(artifacts, "twin")], stub.PATIENT))
    finally:
        runner.close()
    assert note.exists()
    assert (result.outcome, left, twin.outcome) == (outcome, [], Outcome.COMPLETED)
    assert (runner.unreaped, stub.processes_naming(tmp_path)) == ([], {})


def test_closing_in_the_middle_of_probes_leaves_no_process_and_no_result(
    tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    actions = ("hang_asleep", "hang_deaf", "leave_grandchild_and_hang")
    refused = []

    def run(action: str) -> None:
        note = str(tmp_path / f"{action}.pid")
        artifact = stub.write_artifact(artifacts, action, calls={"1": action}, note=note)
        try:
            runner(stub.run_request([artifact], stub.PATIENT))
        except InternalError as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    assert stub.eventually(lambda: _calls_begun(tmp_path / "probes") == len(actions))
    assert stub.eventually((tmp_path / "leave_grandchild_and_hang.pid").exists)
    runner.close()
    for thread in threads:
        thread.join(30)
    assert len(refused) == len(actions)
    assert list((tmp_path / "probes").rglob("result.json")) == []
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)
    assert stub.zombies() == []


def _calls_begun(probes: Path) -> int:
    """How many probes have reached their second call, the one that hangs."""
    return sum('"call":1' in path.read_text() for path in probes.glob("*/events.jsonl"))


def test_descriptors_do_not_leak(tmp_path: Path, artifacts: Path, stub_environment: Environment) -> None:
    made = [
        stub.write_artifact(artifacts, action, calls={"0": action})
        for action in ("nap", "segfault", "hang_asleep", "exit_at_once", "raise_error")
    ]

    def use(number: int) -> None:
        runner = ZygoteRunner({"old": stub_environment}, tmp_path / f"probes-{number}", watchdog)
        for artifact in made:
            runner(stub.run_request([artifact], Deadline(load_s=0.3, call_s=0.3, total_s=60.0)))
        runner.close()

    use(0)
    before = stub.open_descriptors()
    use(1)
    assert stub.open_descriptors() == before


# The zygote itself dies.


def test_probe_whose_zygote_was_killed_is_repeated_once_with_a_new_one(probe: Probe, tmp_path: Path) -> None:
    result = probe(calls={"1": "kill_zygote_once"}, note=str(tmp_path / "done"))
    assert (result.outcome, result.models[0].outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert len(list((tmp_path / "probes").glob("zygote-old-*"))) == 2


def test_probe_that_kills_every_zygote_is_reported_as_ours(probe: Probe, tmp_path: Path) -> None:
    result = probe(calls={"1": "kill_zygote"})
    (model,) = result.models
    assert (result.outcome, result.exit_detail) == (Outcome.PROTOCOL_ERROR, "")
    assert len(list((tmp_path / "probes").glob("zygote-old-*"))) == 2
    assert not Path(result.directory, "result.json").exists()
    verdict = judge_alone("cell", old=(), new=model, comparison=None, old_name="old", new_name="new")
    assert verdict.status is Status.INCONCLUSIVE
    assert probe(name="next").outcome is Outcome.COMPLETED


def test_zygote_killed_between_probes_is_replaced(runner: ZygoteRunner, probe: Probe, tmp_path: Path) -> None:
    probe(name="first")
    (zygote,) = stub.processes_naming(tmp_path / "probes")
    os.kill(zygote, signal.SIGKILL)
    assert probe(name="second").outcome is Outcome.COMPLETED


def test_neighbours_survive_the_death_of_their_zygote(runner: ZygoteRunner, artifacts: Path, tmp_path: Path) -> None:
    def run(index: int) -> Outcome:
        action = "kill_zygote_once" if index == 0 else "nap"
        artifact = stub.write_artifact(artifacts, f"m{index}", every_call=action, note=str(tmp_path / "done"))
        return runner(stub.run_request([artifact], stub.PATIENT)).models[0].outcome

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [Outcome.COMPLETED] * 4


@pytest.mark.slow
def test_zygote_that_does_not_answer_is_replaced(
    tmp_path: Path, artifacts: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One probe stops it, and is done all the same; the next one is never forked, and gets a new zygote."""
    monkeypatch.setattr(probing_runner, "FORK_DEADLINE_S", 1.0)
    monkeypatch.setattr("harness.checks.hang.watchdog.REAP_DEADLINE_S", 1.0)
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    stopper = stub.write_artifact(artifacts, "stopper", calls={"1": "stop_zygote_once"}, note=str(tmp_path / "done"))
    impatient = Deadline(load_s=60.0, call_s=60.0, total_s=2.0)
    assert runner(stub.run_request([stopper], impatient)).outcome is Outcome.COMPLETED
    assert runner.unreaped  # nobody was there to say that it has ended
    following = stub.write_artifact(artifacts, "following")
    assert runner(stub.run_request([following], stub.PATIENT)).outcome is Outcome.COMPLETED
    runner.close()
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path))


def test_second_environment_of_one_side_has_a_folder_of_its_own(
    runner: ZygoteRunner, probe: Probe, tmp_path: Path
) -> None:
    """Also after a replacement, when there are fewer zygotes than have been started."""
    probe(calls={"1": "kill_zygote_once"}, note=str(tmp_path / "done"))
    for value in ("1", "2"):
        runner.start("old", ServingProfile(env={"OMP_NUM_THREADS": value}))
    folders = [path for path in (tmp_path / "probes").glob("zygote-old-*")]
    assert len(folders) == 4


# Hanging outside of every phase, results and environments.


def test_hang_outside_of_every_phase_is_a_hang_and_no_lack_of_memory() -> None:
    request = stub.run_request([], stub.BRIEF)
    ending = conclusion.Ending(event_log=events.EventLog(), end_ns=1, killed=True)
    result = conclude(
        request, "key", Path("/nowhere"), ending, watchdog.crash_evidence, status=signal.SIGKILL, max_rss_bytes=None
    )
    assert result.outcome is Outcome.HANG


def test_worker_that_fails_outside_of_every_phase_is_ours() -> None:
    request = stub.run_request([], stub.BRIEF)
    ending = conclusion.Ending(event_log=events.EventLog(), end_ns=1)
    result = conclude(
        request, "key", Path("/nowhere"), ending, watchdog.crash_evidence, status=1 << 8, max_rss_bytes=None
    )
    assert result.outcome is Outcome.PROTOCOL_ERROR


def at_work(folder: Path) -> conclusion.Ending:
    """A worker that was at a call when it ended; its words go to standard error."""
    begin = {"ev": "begin", "phase": "call", "model": "m", "thread": 0, "ident": 1, "tid": 1, "ns": 1}
    event_log = events.EventLog()
    event_log.feed([json.dumps(begin)])
    (folder / "stderr").write_text("something else\n")
    return conclusion.Ending(event_log=event_log, end_ns=2)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", Outcome.OUT_OF_MEMORY),
        ("LLVM ERROR: out of memory\n", Outcome.OUT_OF_MEMORY),
        ("double free or corruption (out)\n", Outcome.CRASH),
    ],
)
def test_abort_whose_last_words_are_of_memory_is_out_of_memory(tmp_path: Path, words: str, outcome: Outcome) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "m")], stub.BRIEF)
    request = dataclasses.replace(request, limits=WorkerLimits(memory_bytes=8))
    ending = at_work(tmp_path)
    (tmp_path / "stderr").write_text(words)
    result = conclude(
        request, "key", tmp_path, ending, watchdog.crash_evidence, status=signal.SIGABRT, max_rss_bytes=None
    )
    assert result.models[0].outcome is outcome
    assert (result.exit_detail, result.memory_limit_bytes) == ("signal SIGABRT", 8)


@pytest.mark.parametrize(
    ("status", "process", "model", "phase"),
    [
        (0, Outcome.COMPLETED, Outcome.COMPLETED, "serve"),
        (signal.SIGABRT, Outcome.CRASH, Outcome.CRASH, "exit"),
        (3 << 8, Outcome.CRASH, Outcome.CRASH, "exit"),
    ],
)
def test_process_that_exits_says_no_goodbye_and_its_status_tells_how_that_went(
    tmp_path: Path, status: int, process: Outcome, model: Outcome, phase: str
) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "m")], stub.BRIEF)
    serve = {"ev": "begin", "phase": "serve", "model": "m", "thread": 1, "ident": 2, "tid": 2, "ns": 2}
    leave = {"ev": "begin", "phase": "exit", "model": "", "thread": 0, "ident": 1, "tid": 1, "ns": 3}
    event_log = events.EventLog()
    event_log.feed(map(json.dumps, [{"ev": "ready", "model": "m", "thread": 1, "ns": 1}, serve, leave]))
    ending = conclusion.Ending(event_log=event_log, end_ns=4)
    result = conclude(request, "key", tmp_path, ending, watchdog.crash_evidence, status=status, max_rss_bytes=None)
    assert (result.outcome, result.models[0].outcome, result.models[0].phase) == (process, model, phase)


def test_cpu_time_limit_is_named(tmp_path: Path) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "m")], stub.BRIEF)
    limited = dataclasses.replace(request, limits=WorkerLimits(cpu_s=3))
    result = conclude(
        limited, "key", tmp_path, at_work(tmp_path), watchdog.crash_evidence, status=signal.SIGXCPU, max_rss_bytes=None
    )
    assert (result.models[0].outcome, result.exit_detail) == (
        Outcome.CRASH,
        "signal SIGXCPU: its CPU time limit of 3 s",
    )


def test_cpu_time_is_derived_from_the_deadline_but_for_a_benchmark() -> None:
    request = dataclasses.replace(stub.run_request([], stub.PATIENT), limits=WorkerLimits(memory_bytes=5))
    told = wire_request(request)["limits"]
    assert (told["memory_bytes"], told["network"]) == (5, True)
    assert told["cpu_s"] == 2 * stub.PATIENT.total_s * (os.cpu_count() or 1)
    assert wire_request(dataclasses.replace(request, verb="benchmark"))["limits"]["cpu_s"] is None
    assert wire_request(dataclasses.replace(request, limits=None))["limits"] is None


def test_stored_result_is_returned_in_place_of_a_new_probe(runner: ZygoteRunner, artifacts: Path) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    first = runner(request)
    stored = Path(first.directory, probe_files.PACKED)
    written = stored.stat().st_mtime_ns
    assert codec.canonical(runner(request)) == codec.canonical(first)
    assert stored.stat().st_mtime_ns == written


def test_damaged_result_is_named_in_one_line(runner: ZygoteRunner, artifacts: Path) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    stored = Path(runner(request).directory, probe_files.PACKED)
    stored.write_bytes(stored.read_bytes()[:100])
    with pytest.raises(RunDirError) as raised:
        runner(request)
    assert str(stored) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_probe_left_without_a_result_is_run_anew(runner: ZygoteRunner, artifacts: Path) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    stored = Path(runner(request).directory, probe_files.PACKED)
    stored.unlink()
    (stored.parent / ".result.json.1.part").write_text("half")
    assert runner(request).outcome is Outcome.COMPLETED
    assert list(stored.parent.iterdir()) == [stored]


@pytest.mark.parametrize("action", ["raise_error", "segfault", "hang_asleep"])
def test_a_probe_that_completes_leaves_one_file_and_one_that_fails_its_evidence(probe: Probe, action: str) -> None:
    completed = probe(name="completes")
    assert [path.name for path in Path(completed.directory).iterdir()] == [probe_files.PACKED]
    failed = probe(stub.BRIEF, name="fails", calls={"1": action})
    left = {path.name for path in Path(failed.directory).iterdir()}
    told = {"raise_error": set(), "segfault": {"stacks.txt"}, "hang_asleep": {"stacks.txt"}}
    assert left == {probe_files.PACKED} | told[action]


@pytest.mark.parametrize("precision", [None, "float64"])
def test_a_reference_that_fails_is_no_failure_of_the_probe(
    runner: ZygoteRunner, artifacts: Path, precision: str | None
) -> None:
    made = [
        stub.write_artifact(artifacts, "model", calls={"0": "flood_stderr"}),
        stub.write_artifact(artifacts, "other", load="raise_error"),
    ]
    request = stub.run_request(made, stub.PATIENT)
    first, second = request.runs
    result = runner(replace(request, runs=(first, replace(second, precision=precision))))
    assert [model.failed for model in result.models] == [False, True]
    assert Path(result.directory, wire.STDERR).exists() is (precision is None)


def test_a_model_cannot_leave_the_file_of_a_probe_that_completed(probe: Probe, runner: ZygoteRunner) -> None:
    forging = probe(calls={"1": "forge_completed"})
    assert codec.canonical(runner.results.reusable(forging.key)) == codec.canonical(forging)
    failing = probe(name="fails", calls={"1": "forge_completed", "2": "raise_error"})
    assert probe_files.read(Path(failing.directory), wire.REQUEST)


def test_a_probe_whose_files_were_not_put_together_yet_is_reused_and_they_are(
    runner: ZygoteRunner, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    with monkeypatch.context() as killed:
        killed.setattr(probe_files, "compact", lambda _, *, failed: None)
        folder = Path(runner(request).directory)
    assert (folder / "result.json").exists()
    runner(request)
    assert (runner.results.reused, list(folder.iterdir())) == ({folder.name}, [folder / probe_files.PACKED])


def test_each_side_says_its_own_torch(runner: ZygoteRunner) -> None:
    found = [runner.fingerprint(side, ServingProfile()).torch for side in ("old", "new")]
    assert found == ["2.1.2", "2.6.0"]
    assert 0.0 < runner.import_cpu_s < 60.0


@pytest.mark.parametrize(
    ("device", "gpu", "cuda", "said"),
    [
        (CPU, None, None, ""),
        (TABLE["cuda"], "H100", "12.4", ""),
        (TABLE["cuda"], None, "12.4", "this machine has a GPU and env sees none"),
        (TABLE["cuda"], "MI300", None, "--device cuda: env is no CUDA build of torch"),
        (TABLE["rocm"], "MI300", None, ""),
        (TABLE["rocm"], "H100", "12.4", "--device rocm: env is no ROCm build of torch"),
        (Device(name="npu", words="npu", torch="npu"), "npu 0", "12.4", ""),
        (Device(name="npu", words="npu", torch="npu"), None, None, "env sees no npu"),
    ],
)
def test_an_environment_must_see_the_device_and_no_other_makers(
    device: Device, gpu: str | None, cuda: str | None, said: str
) -> None:
    refused = pytest.raises(EnvironmentUnavailable, match=f"^{said};") if said else contextlib.nullcontext()
    with refused:
        require_seen(device, Fingerprint(torch="2.6.0", gpu=gpu, cuda=cuda), "env")


def test_closed_runner_refuses_work(tmp_path: Path, stub_environment: Environment) -> None:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    runner.close()
    with pytest.raises(InternalError, match="closed"):
        runner(stub.run_request([], stub.PATIENT))


def test_broken_environment_is_unavailable_and_no_probe_result(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import="raise_error")
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes", watchdog)
    with pytest.raises(EnvironmentUnavailable, match="planted"):
        runner(stub.run_request([], stub.PATIENT))
    runner.close()


@pytest.mark.parametrize("again", [Outcome.COMPLETED, Outcome.PROTOCOL_ERROR])
def test_garbled_model_is_tried_once_more_and_never_stored(
    runner: ZygoteRunner, artifacts: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: Outcome
) -> None:
    outcomes = [Outcome.PROTOCOL_ERROR, again]

    def attempt(request: ProbeRequest, key: str, folder: Path) -> ProbeResult:
        folder.mkdir(parents=True, exist_ok=True)
        model = ModelResult(model="model", outcome=outcomes.pop(0))
        return ProbeResult(key=key, side="old", outcome=Outcome.COMPLETED, directory=str(folder), models=(model,))

    monkeypatch.setattr(runner, "_attempt", attempt)
    result = runner(stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT))
    assert (result.models[0].outcome, outcomes) == (again, [])
    assert (runner.results.reusable(result.key) is WhyNot.MISSING) is (again is Outcome.PROTOCOL_ERROR)


# A machine too busy.


class Attempts:
    """Stands in for what a runner does with a request: each outcome in turn, and what was asked for."""

    def __init__(self, *outcomes: Outcome, pause_s: float = 0.0) -> None:
        self.outcomes, self.pause_s = list(outcomes), pause_s
        self.totals_s: list[float] = []
        self.running, self.most = 0, 0
        self._lock = threading.Lock()

    def __call__(self, request: ProbeRequest, key: str, folder: Path) -> ProbeResult:
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self.totals_s.append(request.deadline.total_s)
            repeated = request.deadline.total_s > stub.PATIENT.total_s
            self.running += repeated
            self.most = max(self.most, self.running)
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        time.sleep(self.pause_s)
        with self._lock:
            self.running -= repeated
        model = ModelResult(model="model", outcome=outcome)
        return ProbeResult(key=key, side="old", outcome=outcome, directory=str(folder), models=(model,))


STARVED, COMPLETED, GARBLED = Outcome.STARVED, Outcome.COMPLETED, Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("outcomes", "totals", "expected"),
    [
        ([STARVED, COMPLETED], [1, 3], COMPLETED),
        ([STARVED, STARVED, COMPLETED], [1, 3, 9], COMPLETED),
        ([STARVED, STARVED, STARVED, COMPLETED], [1, 3, 9], STARVED),
        ([STARVED, Outcome.HANG], [1, 3], Outcome.HANG),
        ([GARBLED, STARVED, COMPLETED], [1, 1, 3], COMPLETED),
        ([STARVED, GARBLED, COMPLETED], [1, 3], GARBLED),
    ],
)
def test_starved_probe_is_tried_twice_more_with_a_growing_total(
    runner: ZygoteRunner,
    artifacts: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcomes: list[Outcome],
    totals: list[int],
    expected: Outcome,
) -> None:
    attempts = Attempts(*outcomes)
    monkeypatch.setattr(runner, "_attempt", attempts)
    result = runner(stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT))
    assert result.outcome is expected
    assert attempts.totals_s == [stub.PATIENT.total_s * factor for factor in totals]
    assert (runner.results.reusable(result.key) is WhyNot.MISSING) is (expected not in (COMPLETED, Outcome.HANG))


def test_starved_probes_are_repeated_one_after_another(
    runner: ZygoteRunner, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(STARVED, pause_s=0.05)
    monkeypatch.setattr(runner, "_attempt", attempts)
    requests = [stub.run_request([stub.write_artifact(artifacts, f"m{i}")], stub.PATIENT) for i in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert [result.outcome for result in pool.map(runner, requests)] == [STARVED] * 3
    assert (len(attempts.totals_s), attempts.most) == (9, 1)


# C++ workers and closing.


@pytest.fixture
def native(runner: ZygoteRunner, tmp_path: Path) -> ProbeRequest:
    """Return a request for a C++ worker that hangs."""
    binary = tmp_path / "worker"
    binary.write_text("#!/bin/sh\nsleep 1000 & wait\n")
    binary.chmod(0o755)
    runner.use_native("old", binary)
    return replace(stub.run_request([], stub.PATIENT), runtime="libtorch")


def in_vain(runner: ZygoteRunner, request: ProbeRequest) -> None:
    with contextlib.suppress(InternalError):
        runner(request)


def test_closing_ends_a_native_worker_in_the_middle_of_a_probe(runner: ZygoteRunner, native: ProbeRequest) -> None:
    running = threading.Thread(target=in_vain, args=(runner, native))
    running.start()
    assert stub.eventually(lambda: len(runner._natives) == 1)
    runner.close()
    running.join(30)
    assert (runner.unreaped, runner._natives) == ([], set())


def test_closing_does_not_wait_for_a_look_into_what_it_has_ended(
    runner: ZygoteRunner, native: ProbeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several at once, as planted defects of initialization hang beside each other; together they would take long."""
    looking, done = threading.Semaphore(0), threading.Event()

    def wait(*_: object, **__: object) -> None:
        looking.release()
        done.wait(60)

    monkeypatch.setattr("harness.checks.hang.watchdog.investigate", wait)
    brief = replace(native, deadline=Deadline(load_s=0.3, call_s=0.3, total_s=0.3), look=True)
    requests = [replace(brief, repeat=number) for number in range(4)]
    running = [threading.Thread(target=in_vain, args=(runner, request)) for request in requests]
    try:
        for thread in running:
            thread.start()
        assert all(looking.acquire(timeout=60) for _ in running)
        runner.close()
        for thread in running:
            thread.join(30)
        assert not any(thread.is_alive() for thread in running)
    finally:
        done.set()
    assert (runner.unreaped, runner._natives) == ([], set())


def test_native_worker_leaves_the_set_only_under_the_lock(
    runner: ZygoteRunner, native: ProbeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``close`` iterates over it."""
    begun, locked = threading.Event(), threading.Event()

    def watch(child: Child, *_: object, **__: object) -> conclusion.Ending:
        child.kill()
        begun.set()
        assert locked.wait(30)
        return conclusion.Ending(event_log=events.EventLog(), end_ns=1)

    monkeypatch.setattr(watchdog, "watch", watch)
    running = threading.Thread(target=in_vain, args=(runner, native))
    running.start()
    assert begun.wait(30)
    with runner._lock:
        locked.set()
        running.join(0.3)
        assert len(runner._natives) == 1
    running.join(30)
    assert runner._natives == set()


def test_native_worker_is_ended_and_forgotten_if_its_watch_fails(
    runner: ZygoteRunner, native: ProbeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = []

    def watch(child: Child, *_: object, **__: object) -> conclusion.Ending:
        children.append(child)
        raise OSError("no such disk")

    monkeypatch.setattr(watchdog, "watch", watch)
    with pytest.raises(OSError, match="no such disk"):
        runner(native)
    assert children[0].ended.wait(30)
    assert runner._natives == set()


def test_closing_goes_on_after_what_cannot_be_closed(
    tmp_path: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    for value in ("1", "2"):
        runner.start("old", ServingProfile(env={"OMP_NUM_THREADS": value}))
    close, closed = Zygote.close, list[Zygote]()

    def first_fails(zygote: Zygote) -> bool:
        closed.append(zygote)
        done = close(zygote)
        if len(closed) == 1:
            raise OSError("no such pipe")
        return done

    monkeypatch.setattr(Zygote, "close", first_fails)
    runner.close()
    assert len(closed) == 2
    assert runner.unreaped == [f"zygote of {stub_environment.name}"]
