"""Scripts performed by a real worker process with a stub of torch: what each step does, and what a failure leaves out."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checks.hang import watchdog
from harness.core.environment import Environment
from harness.core.outcome import Outcome
from harness.core.probe import ModelRun, ProbeRequest, ProbeResult, Script, ServingProfile, Step
from harness.probing.runner import ZygoteRunner
from harness.serving.scenarios import INITIALIZATIONS, CYCLES, copies
from harness.store import probe_files
from harness.worker import wire
from tests.programs import stub

CALLS = 2
RAISES: Mapping[str, object] = {"load": "raise_error"}
SLOW: Mapping[str, object] = {"every_call": "nap"}  # 50 ms
Perform = Callable[..., "Played"]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, stub_environment: Environment) -> Iterator[ZygoteRunner]:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path_factory.mktemp("scripts"), watchdog)
    yield runner
    runner.close()
    assert runner.unreaped == []


class Played:
    """What a worker made of a script."""

    def __init__(self, result: ProbeResult) -> None:
        self.result = result
        lines = probe_files.read(Path(result.directory), wire.EVENTS).splitlines()
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines]

    @property
    def outcomes(self) -> dict[str, Outcome]:
        return {item.model: item.outcome for item in self.result.models}

    def of(self, ev: str, phase: str = "", **fields: object) -> list[dict[str, Any]]:
        """Return the events of a kind, in the order in which they were written."""
        wanted = {"ev": ev, **({"phase": phase} if phase else {}), **fields}
        return [event for event in self.events if all(event.get(key) == value for key, value in wanted.items())]

    def phases(self, thread: int = 0) -> list[tuple[str, str]]:
        """Return the phases that a thread began for a model, but for those that surround every call."""
        began = self.of("begin", thread=thread)
        hidden = (wire.PREPARE, wire.RECORD, wire.INPUTS, wire.IMPORT)
        return [(event["phase"], event["model"]) for event in began if event["phase"] not in hidden]


@pytest.fixture
def perform(runner: ZygoteRunner, artifacts: Path) -> Perform:
    """Do a script; ``programs`` say what a name's artifact does where it does not simply answer."""

    def run(
        script: Script | None,
        names: Sequence[str] = (),
        profile: ServingProfile | None = None,
        **programs: Mapping[str, object],
    ) -> Played:
        wanted = names or (copies(script) if script is not None else ())
        made = [stub.write_artifact(artifacts, name, **programs.get(name, {})) for name in wanted]
        runs = tuple(
            ModelRun(artifact=artifact, schedule=(("example", CALLS),), larger_inputs=["tuple", []])
            for artifact in made
        )
        request = ProbeRequest(
            verb="run",
            side="old",
            environment="stub",
            deadline=stub.PATIENT,
            runs=runs,
            script=script,
            profile=profile or ServingProfile(),
        )
        return Played(runner(request))

    return run


def both(name: str) -> tuple[Step, Step]:
    return ("load", name), ("calls", name)


def made_of(name: str) -> list[tuple[str, str]]:
    return [("load", name), *[("call", name)] * CALLS]


# threads


def test_thread_with_another_pool_than_was_asked_for_says_so(perform: Perform) -> None:
    alike = perform(Script(threads=(both("a"), both("b"))))
    assert [event["name"] for event in alike.of("mark")] == ["switches", "numerics"]
    played = perform(
        Script(threads=(both("c"), both("d"))), profile=ServingProfile(intra_op_threads=3)
    )  # the stub's torch always says 1
    marks = {event["name"]: event["data"] for event in played.of("mark")}
    assert set(marks) == {"switches", "numerics", "intra_op_otherwise:0", "intra_op_otherwise:1"}
    assert marks["intra_op_otherwise:1"] == {"requested": 3, "read_back": 1}


@pytest.mark.parametrize("step", [("dance", "a"), ("load",), ("perform",), ("act", 0)], ids=lambda value: str(value[0]))
@pytest.mark.parametrize("others", [(), (("barrier", "x"),)], ids=["alone", "while another thread waits"])
def test_step_that_cannot_be_done_is_our_own_failure(perform: Perform, step: Step, others: tuple[Step, ...]) -> None:
    threads = ((*both("a"), step), others) if others else ((*both("a"), step),)
    played = perform(Script(threads=threads, barriers={"x": 2}), ("a",))
    (error,) = played.of("error")
    assert (error["phase"], error["type"]) == ("", "ProtocolError")
    assert error["message"].startswith("a step cannot be done: ")
    assert "Traceback" in error["traceback"]
    assert played.result.outcome is Outcome.PROTOCOL_ERROR
    assert played.result.exit_detail == f"exit code {wire.EXIT_BROKEN}"


# load, calls


def test_without_a_script_every_model_is_loaded_and_called_in_order(perform: Perform) -> None:
    played = perform(None, ("a", "b"), a=RAISES)
    assert played.phases() == [("load", "a"), *made_of("b")]
    assert played.outcomes == {"a": Outcome.LOAD_ERROR, "b": Outcome.COMPLETED}


def test_one_thread_is_the_main_thread(perform: Perform) -> None:
    played = perform(Script(threads=((*both("a"), *both("b")),)))
    (hello,) = played.of("hello")
    assert {event["tid"] for event in played.of("begin")} == {hello["pid"]}
    assert played.phases() == [*made_of("a"), *made_of("b")]
    assert [event["model"] for event in played.of("ready")] == ["a", "b"]


def test_each_thread_does_its_own_steps_under_its_own_numbers(perform: Perform) -> None:
    played = perform(Script(threads=(both("a"), (*both("b"), *both("c")))))
    assert (played.phases(0), played.phases(1)) == (made_of("a"), [*made_of("b"), *made_of("c")])
    tids = [{event["tid"] for event in played.of("begin", thread=thread, phase="load")} for thread in (0, 1)]
    assert [len(found) for found in tids] == [1, 1]
    assert tids[0] != tids[1]
    assert {item.model: item.thread for item in played.result.models} == {"a": 0, "b": 1, "c": 1}


def test_every_phase_tells_the_cpu_time_of_its_thread(perform: Perform) -> None:
    played = perform(Script(threads=(both("a"),)), a=SLOW)
    ends = played.of("end", "call")
    assert len(ends) == CALLS
    assert all(0 < event["cpu_ns"] < 40_000_000 for event in ends)  # the rest of its 50 ms it sleeps
    spans = [span for span in played.result.spans if span.phase == "call"]
    assert [span.cpu_ns for span in spans] == [event["cpu_ns"] for event in ends]


def test_every_answer_is_recorded_under_the_name_of_its_copy(perform: Perform) -> None:
    script = INITIALIZATIONS["same_file"].write(["a"], 2)
    played = perform(script, **{"a": {"answer": 1}, "a#1": {"answer": 2}})
    lines = probe_files.read(Path(played.result.directory), f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}").splitlines()
    recorded = [json.loads(line) for line in lines]
    assert Counter((item["model"], item["tree"][1]) for item in recorded) == {("a", 1): CALLS, ("a#1", 2): CALLS}


# share, drop


def test_shared_module_is_one_module(perform: Perform) -> None:
    script = Script(threads=((*both("a"), ("share", "a#1", "a"), ("calls", "a#1")),))
    played = perform(script, a={"calls": {str(CALLS): "raise_error"}})  # the stub counts the calls of a module
    assert played.phases() == [*made_of("a"), *[("call", "a#1")] * CALLS]
    assert played.outcomes == {"a": Outcome.COMPLETED, "a#1": Outcome.RUNTIME_ERROR}


def test_loaded_copy_is_a_module_of_its_own(perform: Perform) -> None:
    program: Mapping[str, object] = {"calls": {str(CALLS): "raise_error"}}
    played = perform(Script(threads=((*both("a"), *both("a#1")),)), **{"a": program, "a#1": program})
    assert set(played.outcomes.values()) == {Outcome.COMPLETED}


def test_nobody_shares_what_was_never_loaded(perform: Perform) -> None:
    script = Script(threads=((("load", "a"), ("share", "a#1", "a"), ("calls", "a#1"), *both("b")),))
    played = perform(script, a=RAISES)
    assert played.phases() == [("load", "a"), *made_of("b")]
    assert played.outcomes == {"a": Outcome.LOAD_ERROR, "a#1": Outcome.NOT_RUN, "b": Outcome.COMPLETED}


def test_dropped_module_is_gone(perform: Perform) -> None:
    played = perform(Script(threads=((*both("a"), ("drop", "a"), ("calls", "a"), ("drop", "a")),)))
    assert played.phases() == [*made_of("a"), ("drop", "a")]
    assert len(played.of("end", "drop")) == 1
    (result,) = played.result.models
    assert (result.outcome, result.phase) == (Outcome.RUNTIME_ERROR, "prepare")


def test_dropped_module_lives_while_another_name_shares_it(perform: Perform) -> None:
    script = Script(threads=((*both("a"), ("share", "a#1", "a"), ("drop", "a"), ("calls", "a#1")),))
    assert perform(script).outcomes == {"a": Outcome.COMPLETED, "a#1": Outcome.COMPLETED}


# barrier, delay, latch


def test_barrier_holds_everyone_until_all_are_there(perform: Perform) -> None:
    script = Script(
        threads=(
            (("delay", 150), ("barrier", "x"), *both("a")),
            (("barrier", "x"), *both("b")),
            (("barrier", "x"), *both("c")),
        ),
        barriers={"x": 3},
    )
    played = perform(script)
    last_arrival = max(event["ns"] for event in played.of("begin", "barrier"))
    assert min(event["ns"] for event in played.of("end", "barrier")) >= last_arrival
    assert min(event["ns"] for event in played.of("begin", "load")) >= last_arrival
    assert played.phases(1) == [("barrier", ""), *made_of("b")]


def test_delay_waits_between_two_steps(perform: Perform) -> None:
    played = perform(Script(threads=((("load", "a"), ("delay", 120), ("calls", "a")),)))
    (loaded,), called = played.of("end", "load"), played.of("begin", "call")[0]
    assert called["ns"] - loaded["ns"] >= 120_000_000


def test_server_answers_until_the_latch_is_open_and_shows_that_it_lives(perform: Perform) -> None:
    script = Script(
        threads=(
            (*both("a"), ("barrier", "serving"), ("serve", "a", "loaded"), *both("c")),
            (("barrier", "serving"), ("delay", 650), *both("b"), ("count_down", "loaded")),
            (("barrier", "serving"), ("delay", 20), ("count_down", "loaded")),
        ),
        barriers={"serving": 3},
        latches={"loaded": 2},
    )
    played = perform(script, a=SLOW)
    (served,) = played.of("end", "serve")
    assert served["ns"] >= played.of("ready", model="b")[0]["ns"]
    assert played.phases(0)[-4:] == [("serve", "a"), *made_of("c")]
    beats = played.of("beat")
    assert beats
    assert {(event["model"], event["thread"]) for event in beats} == {("a", 0)}
    calls = [event["calls"] for event in beats]
    assert calls[0] >= 1
    assert calls == sorted(set(calls))
    times = [event["ns"] for event in beats]
    assert all(later - before >= wire.BEAT_S * 0.9e9 for before, later in itertools.pairwise(times))
    assert played.outcomes == dict.fromkeys("abc", Outcome.COMPLETED)
    recorded = probe_files.read(Path(played.result.directory), f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}").splitlines()
    assert len(recorded) == 3 * CALLS  # what was answered to requests is dropped


def test_server_goes_on_when_the_latch_is_open_already(perform: Perform) -> None:
    script = Script(threads=((*both("a"), ("count_down", "x"), ("serve", "a", "x"), *both("b")),), latches={"x": 1})
    played = perform(script)
    assert played.of("beat") == []
    assert played.outcomes == {"a": Outcome.COMPLETED, "b": Outcome.COMPLETED}


def test_error_while_serving_is_that_of_the_server(perform: Perform) -> None:
    script = Script(
        threads=(
            (*both("a"), ("barrier", "serving"), ("serve", "a", "loaded")),
            (("barrier", "serving"), ("delay", 100), *both("b"), ("count_down", "loaded")),
        ),
        barriers={"serving": 2},
        latches={"loaded": 1},
    )
    played = perform(script, a={"calls": {str(CALLS): "raise_error"}})
    assert played.outcomes == {"a": Outcome.RUNTIME_ERROR, "b": Outcome.COMPLETED}
    assert played.result.models[0].phase == "serve"


# memory


def test_memory_is_what_the_process_holds_now(perform: Perform) -> None:
    played = perform(Script(threads=((("memory", "before"), *both("a"), ("memory", "after")),)))
    labels, sizes, threads = zip(*played.result.memory, strict=True)
    assert labels == ("before", "after")
    assert played.result.max_rss_bytes is not None
    # The kernel keeps the largest value in pages per thread, and adds them up late.
    assert all(0.5 < size / played.result.max_rss_bytes < 1.5 for size in sizes)
    assert threads == (1, 1)


# one request, and pools of another size


@pytest.mark.parametrize(("where", "is_new"), [("own", False), ("ends", True), ("stays", True)])
def test_request_is_answered_in_this_thread_or_in_a_new_one_that_ends_or_stays(
    perform: Perform, where: str, is_new: bool
) -> None:
    steps: tuple[Step, ...] = (*both("a"), *[("answer", "a", where, 0)] * 3, ("memory", "after"))
    played = perform(Script(threads=(steps,)))
    (hello,) = played.of("hello")
    threads = [event["tid"] for event in played.of("begin", "serve", model="a", thread=0)]
    assert len(threads) == len(played.of("end", "serve")) == 3
    assert (set(threads) == {hello["pid"]}, hello["pid"] in threads) == (not is_new, not is_new)
    ((_, _, os_threads),) = played.result.memory
    assert (os_threads == 4) is (where == "stays")  # the kernel may still know the last one that has ended
    assert played.result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("where", ["own", "ends", "stays"])
def test_request_that_fails_is_the_models_and_its_later_ones_are_left_out(perform: Perform, where: str) -> None:
    steps: tuple[Step, ...] = (*both("a"), *[("answer", "a", where, 0)] * 3, *both("b"))
    played = perform(Script(threads=(steps,)), a={"calls": {str(CALLS + 1): "raise_error"}})
    assert played.outcomes == {"a": Outcome.RUNTIME_ERROR, "b": Outcome.COMPLETED}
    assert [item.phase for item in played.result.models if item.failed] == ["serve"]
    assert [len(played.of(ev, "serve")) for ev in ("begin", "end", "error")] == [2, 1, 1]


def test_pool_that_reads_back_as_another_size_is_marked(perform: Perform) -> None:
    threads = (("set_threads", 1), *both("a"), ("set_threads", 4), *both("b"))
    played = perform(Script(threads=(threads,)))
    (mark,) = (event for event in played.of("mark") if event["name"].startswith("intra_op_otherwise"))
    assert (mark["name"], mark["data"]) == ("intra_op_otherwise:0", {"requested": 4, "read_back": 1})


# failures


@pytest.mark.parametrize("action", ["raise_error", "exit_politely"])
@pytest.mark.parametrize("where", ["load", "call"])
def test_failed_model_leaves_its_later_steps_out_and_keeps_nobody_waiting(
    perform: Perform, where: str, action: str
) -> None:
    bad: tuple[Step, ...] = (
        *both("bad"),
        ("barrier", "serving"),
        ("serve", "bad", "loaded"),
        ("drop", "bad"),
        ("memory", "later"),
        ("count_down", "other"),
        *both("after"),
    )
    good: tuple[Step, ...] = (
        ("barrier", "serving"),
        *both("good"),
        ("count_down", "loaded"),
        ("serve", "good", "other"),
        ("drop", "good"),
    )
    script = Script(threads=(bad, good), barriers={"serving": 2}, latches={"loaded": 1, "other": 1})
    played = perform(script, bad={"load": action} if where == "load" else {"calls": {"0": action}})
    error = Outcome.LOAD_ERROR if where == "load" else Outcome.RUNTIME_ERROR
    assert played.outcomes == {"bad": error, "after": Outcome.COMPLETED, "good": Outcome.COMPLETED}
    began = made_of("bad") if where == "call" else [("load", "bad")]
    assert played.phases(0) == [*began, ("barrier", ""), *made_of("after")]
    assert played.phases(1) == [("barrier", ""), *made_of("good"), ("serve", "good"), ("drop", "good")]
    assert played.result.memory != ()
    assert played.result.outcome is Outcome.COMPLETED


def test_failed_loader_still_counts_down_for_those_who_serve(perform: Perform) -> None:
    models = ["a", "b", "c"]
    script = INITIALIZATIONS["while_serving"].write(models, 3)
    sick = {name: RAISES for name in copies(script) if name.startswith("b")}
    played = perform(script, **sick)
    assert played.result.outcome is Outcome.COMPLETED
    assert {name for name, outcome in played.outcomes.items() if outcome is not Outcome.COMPLETED} == set(sick)


def test_model_whose_inputs_cannot_be_read_is_left_out(runner: ZygoteRunner, artifacts: Path) -> None:
    script = Script(threads=((("barrier", "x"), *both("a")), (("barrier", "x"), *both("b"))), barriers={"x": 2})
    made = [stub.write_artifact(artifacts, name) for name in ("a", "b")]
    Path(made[0].inputs_dir, wire.TENSORS_INDEX).unlink()
    played = Played(runner(replace(stub.run_request(made, stub.PATIENT), script=script)))
    assert played.phases(0) == [("barrier", "")]
    assert played.outcomes["b"] is Outcome.COMPLETED


def test_pool_calls_are_refused_and_not_pretended(perform: Perform) -> None:
    played = perform(INITIALIZATIONS["inter_op"].write(["a", "b"], 2))
    assert played.result.failure is not None
    assert "only the C++ worker" in played.result.failure.message
    assert played.of("begin", "load") == []
    assert set(played.outcomes.values()) == {Outcome.NOT_RUN}


def test_capture_without_a_gpu_is_an_error_of_the_model(perform: Perform) -> None:
    played = perform(Script(threads=((*both("a"), ("capture", "a", "relaxed", 3), *both("b")),)))
    assert played.outcomes == {"a": Outcome.RUNTIME_ERROR, "b": Outcome.COMPLETED}
    failure = played.result.models[0].failure
    assert failure is not None
    assert failure.phase == "capture"


# scenarios as they are written


@pytest.mark.parametrize(
    "name", [name for name, found in INITIALIZATIONS.items() if not found.native_only and not found.graphs]
)
def test_every_scenario_of_the_python_worker_completes(perform: Perform, name: str) -> None:
    script = INITIALIZATIONS[name].write(["a", "b", "c"], 3)
    played = perform(script)
    assert played.result.outcome is Outcome.COMPLETED
    assert set(played.outcomes) == set(copies(script))
    assert set(played.outcomes.values()) == {Outcome.COMPLETED}
    assert all(len(item.calls) == CALLS for item in played.result.models)


# forked processes

FORKED = Script(threads=((*both("a"), ("fork", 1), ("join", 1)), (("share", "b", "a"), ("calls", "b"), *both("c"))))


def test_forked_process_does_its_steps_with_what_was_loaded_before(perform: Perform) -> None:
    played = perform(FORKED)
    assert played.result.outcome is Outcome.COMPLETED
    assert set(played.outcomes.values()) == {Outcome.COMPLETED}
    assert played.phases(1) == [*made_of("b")[1:], *made_of("c")]
    (forked,) = played.of("forked")
    (hello,) = played.of("hello")
    assert forked["pid"] != hello["pid"] and forked["thread"] == 1
    assert {event["tid"] for event in played.of("begin", thread=1)} == {forked["pid"]}


@pytest.mark.parametrize(
    ("program", "exit_detail"),
    [("segfault", "signal SIGSEGV"), ("exit_at_once", "exit code 3"), ("exit_as_if_well", "exit code 0")],
)
def test_worker_ends_as_its_forked_process_does(perform: Perform, program: str, exit_detail: str) -> None:
    played = perform(FORKED, ("a", "b", "c"), c={"load": program})
    assert (played.result.outcome, played.result.exit_detail) == (Outcome.CRASH, exit_detail)
    assert played.outcomes == {"a": Outcome.COMPLETED, "b": Outcome.COMPLETED, "c": Outcome.CRASH}


def test_step_that_a_forked_process_cannot_do_is_our_own_failure(perform: Perform) -> None:
    played = perform(Script(threads=((*both("a"), ("fork", 1), ("join", 1)), (("dance", "a"),))))
    (error,) = played.of("error")
    assert (error["phase"], error["type"]) == ("", "ProtocolError")
    assert played.result.exit_detail == f"exit code {wire.EXIT_BROKEN}"


def test_cycles_read_the_memory_when_everything_is_gone(perform: Perform) -> None:
    played = perform(INITIALIZATIONS["reinit"].write(["a", "b", "c"], 2))
    assert [label for label, *_ in played.result.memory] == [f"cycle {index}" for index in range(CYCLES)]
    here = 0
    for event in played.events:
        if event["ev"] == "end" and event.get("phase") in ("load", "drop"):
            here += 1 if event["phase"] == "load" else -1
        elif event["ev"] == "memory":
            assert here == 0
