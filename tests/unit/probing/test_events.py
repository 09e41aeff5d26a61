"""Events of a worker -> what happened, per model."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult
from harness.probing import events
from harness.probing.events import EventLog, EventTail, blamed_phases, failure_outcome, model_results
from harness.store import codec
from tests.unit.builders.requests import begin, end, error, event, event_log

HEALTHY = (
    event("hello"),
    begin("inputs", ns=5),
    end("inputs", ns=9),
    begin("load", ns=10),
    end("load", ns=110),
    begin("call", ns=200, set="example", call=0),
    end("call", ns=230, set="example", call=0),
    begin("record", ns=230),
    end("record", ns=231),
    begin("call", ns=240, set="example", call=1),
    end("call", ns=250, set="example", call=1),
    event("ready", 260, model="m", thread=0),
    event("bye", 300),
)


def task(model: str = "m", *, thread: int = 0, tid: int, ns: int = 0, phase: str = "call", ident: int = 0x99) -> str:
    """Return a task: a pool's thread has taken up the call of a phase."""
    return event("task", ns, phase=phase, model=model, thread=thread, ident=ident, tid=tid)


def one(found: EventLog, process: Outcome = Outcome.COMPLETED, model: str = "m") -> ModelResult:
    """Return the result of one model; every open phase that may be to blame is blamed."""
    blamed = () if process is Outcome.COMPLETED else blamed_phases(found, None)
    (result,) = model_results(found, [model], process, blamed)
    return result


def test_healthy_worker_gives_times_of_load_and_every_call() -> None:
    found = event_log(*HEALTHY)
    result = one(found)
    assert (result.outcome, result.failure, result.load_ns) == (Outcome.COMPLETED, None, 100)
    assert [(call.input_set, call.call, call.duration_ns) for call in result.calls] == [
        ("example", 0, 30),
        ("example", 1, 10),
    ]
    assert (found.hello, found.bye, found.open, found.last_ns) == (True, True, {}, 300)


def test_worker_without_a_bye_did_not_finish() -> None:
    assert not event_log(*HEALTHY[:-1]).bye
    assert not event_log().hello


def test_marks_are_kept_by_name() -> None:
    assert event_log(event("mark", name="switches", data={"profiling": 1})).marks == {"switches": {"profiling": 1}}


def test_unknown_events_are_no_trouble() -> None:
    assert event_log(event("novelty", 7)).last_ns == 7


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_torn_last_line_is_ignored(cut: int) -> None:
    found = event_log(*HEALTHY[:-2], HEALTHY[-2][:cut])
    assert "m" not in found.ready_ns
    assert len(found.calls["m"]) == 2


def test_lines_may_come_in_portions() -> None:
    found = EventLog()
    found.feed(HEALTHY[:6])
    assert [opened.phase for opened in found.open.values()] == ["call"]
    found.feed(HEALTHY[6:])
    assert one(found) == one(event_log(*HEALTHY))


def test_hang_is_a_begin_without_an_end() -> None:
    result = one(event_log(*HEALTHY[:9], begin("call", ns=240, set="example", call=1)), Outcome.HANG)
    assert (result.outcome, result.phase_words, result.failure) == (Outcome.HANG, "call 1 of example", None)
    assert [call.call for call in result.calls] == [0]


def test_hang_in_load_names_the_phase_and_has_no_load_time() -> None:
    result = one(event_log(*HEALTHY[:4]), Outcome.HANG)
    assert (result.outcome, result.phase, result.load_ns) == (Outcome.HANG, "load", None)


def test_hang_blames_only_the_model_of_the_overdue_phase() -> None:
    found = event_log(
        begin("load", "a", thread=0),
        begin("load", "b", thread=1),
        end("load", "b", thread=1),
        event("ready", 1, model="b"),
    )
    results = model_results(found, ["a", "b", "c"], Outcome.HANG, tuple(found.open.values()))
    assert [(item.model, item.outcome) for item in results] == [
        ("a", Outcome.HANG),
        ("b", Outcome.COMPLETED),
        ("c", Outcome.NOT_RUN),
    ]


def test_model_that_finished_before_the_crash_completed() -> None:
    found = event_log(*HEALTHY[:-1], begin("load", "n", thread=0, ns=400))
    results = model_results(found, ["m", "n"], Outcome.CRASH, blamed_phases(found, None))
    assert [item.outcome for item in results] == [Outcome.COMPLETED, Outcome.CRASH]


def test_crash_belongs_to_the_thread_that_faulted() -> None:
    found = event_log(begin("load", "a", thread=0, tid=70), begin("call", "b", thread=1, tid=71, set="example", call=2))
    assert [(opened.model, opened.tid) for opened in blamed_phases(found, 71)] == [("b", 71)]
    results = model_results(found, ["a", "b"], Outcome.CRASH, blamed_phases(found, 71))
    assert [(item.outcome, item.phase_words, item.thread) for item in results] == [
        (Outcome.NOT_RUN, "load", 0),
        (Outcome.CRASH, "call 2 of example", 1),
    ]


@pytest.mark.parametrize("faulting", [None, 99], ids=["nobody knows", "a helper thread"])
def test_crash_of_an_unknown_thread_blames_every_open_phase(faulting: int | None) -> None:
    found = event_log(begin("load", "a", thread=0, tid=70), begin("load", "b", thread=1, tid=71))
    assert {opened.model for opened in blamed_phases(found, faulting)} == {"a", "b"}


def test_crash_in_a_pool_belongs_to_the_call_that_its_thread_has_taken_up() -> None:
    found = event_log(
        begin("call", "a", thread=0, tid=70, set="example", call=0),
        begin("call", "b", thread=1, tid=71, set="example", call=1),
        begin("call", "c", thread=2, tid=72, set="example", call=2),
        task("a", thread=0, tid=80),
        task("b", thread=1, tid=81, ident=0x81),
    )
    (guilty,) = blamed_phases(found, 81)
    assert (guilty.model, guilty.thread, guilty.tid, guilty.ident, guilty.call) == ("b", 1, 81, 0x81, 1)
    results = model_results(found, ["a", "b", "c"], Outcome.CRASH, blamed_phases(found, 81))
    assert [(item.outcome, item.phase_words) for item in results] == [
        (Outcome.NOT_RUN, "call"),
        (Outcome.CRASH, "call 1 of example"),
        (Outcome.NOT_RUN, "call"),
    ]


@pytest.mark.parametrize("faulting", [None, 99], ids=["nobody knows", "a forked sub-task"])
def test_call_that_waits_for_the_pool_is_not_blamed_for_a_crash(faulting: int | None) -> None:
    found = event_log(
        begin("call", "a", thread=0, tid=70, set="example", call=0),
        begin("call", "b", thread=1, tid=71, set="example", call=0),
        begin("load", "c", thread=2, tid=72),
        task("a", thread=0, tid=80),
    )
    assert [opened.model for opened in blamed_phases(found, faulting)] == ["a", "c"]


def test_starved_pool_shows_as_an_open_call_of_the_thread_that_waits() -> None:
    found = event_log(begin("call", "a", thread=0, tid=70, ns=5, set="example", call=0))
    (waiting,) = found.open.values()
    assert (waiting.tid, waiting.asked_by) == (70, None)
    found.feed([task("a", thread=0, tid=80, ns=900)])
    (running,) = found.open.values()
    assert (running.tid, running.asked_by, running.begin_ns) == (80, (0x70, 70), 5)
    assert found.progress_ns == 900
    found.feed([end("call", "a", thread=0, ns=950, set="example", call=0)])
    assert found.open == {}
    assert [call.duration_ns for call in found.calls["a"]] == [945]


def test_pool_thread_that_has_taken_up_another_call_is_at_that_one_only() -> None:
    """The end of the former call is written by the thread that waited for it, and that one may be late."""
    found = event_log(
        begin("call", "a", thread=0, tid=70, set="example", call=0),
        begin("call", "b", thread=1, tid=71, set="example", call=0),
        task("a", thread=0, tid=80),
        task("b", thread=1, tid=80),
    )
    assert [(opened.model, opened.tid) for opened in found.open.values()] == [("a", 70), ("b", 80)]
    assert [opened.model for opened in blamed_phases(found, 80)] == ["b"]


def test_task_of_a_server_is_a_sign_of_life_and_no_progress() -> None:
    found = event_log(begin("serve", ns=10, tid=70, set="example"), task(phase="serve", tid=80, ns=500))
    assert (found.progress_ns, found.last_ns) == (10, 500)
    (serving,) = found.open.values()
    assert serving.tid == 80
    found.feed([task(phase="serve", tid=81, ns=600)])
    (serving,) = found.open.values()
    assert (serving.tid, serving.asked_by) == (81, (0x70, 70))


def test_task_of_no_open_phase_is_no_trouble() -> None:
    assert event_log(task(tid=80, ns=7)).open == {}


def test_phase_of_no_model_is_never_blamed() -> None:
    assert blamed_phases(event_log(begin("barrier", "")), None) == ()


def test_model_that_never_began_was_not_run() -> None:
    result = one(event_log(event("hello")), Outcome.CRASH)
    assert (result.outcome, result.phase) == (Outcome.NOT_RUN, "")


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [
        ("load", Outcome.LOAD_ERROR),
        ("call", Outcome.RUNTIME_ERROR),
        ("prepare", Outcome.RUNTIME_ERROR),
        ("serve", Outcome.RUNTIME_ERROR),
        ("drop", Outcome.RUNTIME_ERROR),
        ("capture", Outcome.RUNTIME_ERROR),
        ("replay", Outcome.RUNTIME_ERROR),
        ("construct", Outcome.EXPORT_ERROR),
        ("convert", Outcome.EXPORT_ERROR),
        ("save", Outcome.EXPORT_ERROR),
        ("inputs", Outcome.PROTOCOL_ERROR),
        ("record", Outcome.PROTOCOL_ERROR),
        ("import", Outcome.PROTOCOL_ERROR),
    ],
)
def test_phase_of_an_error_decides_the_outcome(phase: str, outcome: Outcome) -> None:
    result = one(event_log(begin(phase), error(phase)))
    assert (result.outcome, result.phase) == (outcome, phase)
    assert result.failure == Failure(type="RuntimeError", message="boom", phase=phase, traceback="Traceback")


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB"),
        ("RuntimeError", "DefaultCPUAllocator: not enough memory"),
        ("MemoryError", ""),
    ],
)
@pytest.mark.parametrize("phase", ["load", "call", "convert"])
def test_lack_of_memory_is_no_defect_of_the_phase(type_: str, message: str, phase: str) -> None:
    assert failure_outcome(Failure(type=type_, message=message, phase=phase)) is Outcome.OUT_OF_MEMORY


def test_other_words_about_memory_are_no_lack_of_it() -> None:
    assert failure_outcome(Failure(type="RuntimeError", message="memory format", phase="load")) is Outcome.LOAD_ERROR


def test_error_of_a_call_names_input_set_and_call() -> None:
    result = one(event_log(begin("call", set="batch 2", call=1), error("call", set="batch 2", call=1)))
    assert result.failure is not None
    assert (result.failure.input_set, result.failure.call) == ("batch 2", 1)
    assert result.calls == ()


def test_error_ends_its_phase() -> None:
    found = event_log(begin("load", ns=1), error("load", ns=4))
    assert found.open == {}
    (span,) = found.all_spans(9)
    assert (span.phase, span.begin_ns, span.end_ns, span.finished) == ("load", 1, 4, True)


def test_error_counts_although_the_process_crashed_later() -> None:
    found = event_log(begin("load"), error("load"), begin("load", "n", thread=0))
    assert one(found, Outcome.CRASH).outcome is Outcome.LOAD_ERROR


def test_error_without_a_model_is_that_of_the_process() -> None:
    found = event_log(event("error", 0, phase="import", type="ImportError", message="no torch", traceback=""))
    assert found.own_failure is not None and found.own_failure.type == "ImportError"
    assert one(found).outcome is Outcome.NOT_RUN


def test_time_to_ready_counts_from_the_barrier_of_its_own_thread() -> None:
    lines = [begin("barrier", "", thread=index) for index in (0, 1)]
    lines += [end("barrier", "", thread=0, ns=1000), end("barrier", "", thread=1, ns=1100)]
    lines += [
        begin("load", thread=1, ns=1100),
        end("load", thread=1, ns=1200),
        event("ready", 1500, model="m", thread=1),
    ]
    result = one(event_log(*lines))
    assert (result.ready_ns, result.thread) == (400, 1)


def test_model_alone_has_no_barrier_and_no_time_to_ready() -> None:
    assert one(event_log(*HEALTHY)).ready_ns is None


def test_same_phase_in_two_threads_is_kept_apart() -> None:
    found = event_log(
        begin("load", "a", thread=0, ns=0), begin("load", "b", thread=1, ns=10), end("load", "a", thread=0, ns=100)
    )
    assert found.load_ns == {"a": 100}
    assert [opened.model for opened in found.open.values()] == ["b"]


def test_end_without_a_begin_is_ignored() -> None:
    found = event_log(end("load", ns=5))
    assert (found.load_ns, found.spans) == ({}, [])


def test_open_phases_are_unfinished_spans_up_to_the_end() -> None:
    found = event_log(begin("load", ns=10), end("load", ns=20), begin("call", ns=30, set="example", call=0))
    assert [(span.phase, span.begin_ns, span.end_ns, span.finished) for span in found.all_spans(99)] == [
        ("load", 10, 20, True),
        ("call", 30, 99, False),
    ]
    assert found.all_spans(5)[1].end_ns == 30


@pytest.mark.parametrize(
    "afterwards",
    [(end("call", set="example", call=0), event("ready", 9, model="m")), (error("call", set="example", call=0),)],
    ids=["it went on", "it raised"],
)
def test_model_that_hung_is_blamed_although_the_stack_dump_woke_it(afterwards: tuple[str, ...]) -> None:
    found = event_log(begin("call", set="example", call=0))
    overdue = tuple(found.open.values())
    found.feed(afterwards)
    (result,) = model_results(found, ["m"], Outcome.HANG, overdue)
    assert (result.outcome, result.phase_words, result.failure) == (Outcome.HANG, "call 0 of example", None)


@pytest.mark.parametrize(
    "line",
    [
        *("", "3", "[]", "null", '"text"', "{}", "{", "loss: 0.3", '{"ns": 1}', '{"ev": "begin", "ns": 1}'),
        *('{"ev": "end", "ns": 1}', '{"ev": 3, "ns": 1}', '{"ev": "x", "ns": "y"}'),
    ],
)
def test_line_that_is_no_event_costs_nothing_of_the_rest(line: str) -> None:
    assert one(event_log(*HEALTHY[:3], line, *HEALTHY[3:])) == one(event_log(*HEALTHY))


# beats, memory, CPU time


def test_beat_is_a_sign_of_life_and_no_progress() -> None:
    found = event_log(begin("serve", ns=10, set="example"), event("beat", 500, model="m", thread=0, calls=7))
    assert (found.progress_ns, found.last_ns, found.beat_ns) == (10, 500, {0: 500})
    found.feed([event("beat", 700, model="m", thread=0, calls=9)])
    assert (found.progress_ns, found.beat_ns) == (10, {0: 700})


@pytest.mark.parametrize(
    "line",
    [
        begin("call", ns=600, set="example", call=0),
        end("serve", ns=600),
        error("serve", ns=600),
        event("ready", 600, model="m", thread=0),
        event("mark", 600, name="x", data=1),
        event("memory", 600, label="x", rss_bytes=1),
        event("bye", 600),
        event("novelty", 600),
    ],
    ids=["begin", "end", "error", "ready", "mark", "memory", "bye", "unknown"],
)
def test_everything_else_is_progress(line: str) -> None:
    found = event_log(begin("serve", ns=10), event("beat", 500, model="m", thread=0, calls=7), line)
    assert found.progress_ns == 600


def test_progress_after_a_beat_that_was_written_later_counts_from_its_own_time() -> None:
    """Threads write one after another, and yet an event may carry an older time than the line before it."""
    found = event_log(event("beat", 500, model="m", thread=1, calls=1), end("load", ns=490))
    assert found.progress_ns == 490


def test_beats_of_several_servers_are_kept_apart() -> None:
    beats = [event("beat", ns, model=name, thread=thread, calls=1) for thread, ns, name in ((0, 5, "a"), (1, 9, "b"))]
    assert event_log(*beats).beat_ns == {0: 5, 1: 9}


def test_serving_is_no_call_and_hangs_like_one() -> None:
    found = event_log(begin("serve", ns=10, set="example"), event("beat", 500, model="m", thread=0, calls=7))
    result = one(found, Outcome.HANG)
    assert (result.outcome, result.phase, result.calls) == (Outcome.HANG, "serve", ())


def test_memory_is_kept_in_order() -> None:
    read = [("cycle 0", 10, 3), ("cycle 1", 30, 5), ("cycle 2", 20, 4)]
    lines = [event("memory", 0, label=label, rss_bytes=size, os_threads=threads) for label, size, threads in read]
    assert event_log(*lines).memory == read


def test_spans_carry_the_cpu_time_of_their_thread() -> None:
    found = event_log(
        begin("load", "a", thread=0, ns=0),
        begin("load", "b", thread=1, ns=10),
        end("load", "a", thread=0, ns=100, cpu_ns=90),
        end("load", "b", thread=1, ns=110),
        begin("call", "a", thread=0, ns=120),
    )
    assert [(span.model, span.thread, span.cpu_ns) for span in found.all_spans(200)] == [
        ("a", 0, 90),
        ("b", 1, 0),
        ("a", 0, 0),
    ]


def test_error_ends_a_span_without_cpu_time() -> None:
    (span,) = event_log(begin("load", ns=1), error("load", ns=4)).all_spans(9)
    assert (span.cpu_ns, span.finished) == (0, True)


def test_open_phase_knows_its_thread_by_the_numbers_of_kernel_and_library() -> None:
    (opened,) = event_log(begin("load", thread=3, ident=0x7F, tid=4711)).open.values()
    assert (opened.thread, opened.ident, opened.tid) == (3, 0x7F, 4711)
    (opened,) = event_log(begin("load", thread=3, ident=0x7F)).open.values()
    assert opened.tid == 0


def test_each_copy_of_a_model_has_a_result_of_its_own() -> None:
    found = event_log(
        begin("load", "m", thread=0),
        end("load", "m", thread=0, ns=5),
        event("ready", 9, model="m", thread=0),
        begin("load", "m#1", thread=1),
        error("load", "m#1", thread=1),
    )
    results = model_results(found, ["m", "m#1", "m#2"], Outcome.COMPLETED, ())
    assert [(item.model, item.outcome) for item in results] == [
        ("m", Outcome.COMPLETED),
        ("m#1", Outcome.LOAD_ERROR),
        ("m#2", Outcome.NOT_RUN),
    ]


def test_ready_model_whose_later_step_failed_did_not_complete() -> None:
    found = event_log(event("ready", 9, model="m", thread=0), begin("serve"), error("serve"))
    assert one(found).outcome is Outcome.RUNTIME_ERROR


def test_time_to_ready_is_unaffected_by_barriers_that_come_later() -> None:
    """As in cycles of initialization and teardown: every one ends at a barrier."""
    found = event_log(
        begin("barrier", "", ns=0),
        end("barrier", "", ns=1000),
        begin("load", ns=1000),
        end("load", ns=1200),
        event("ready", 1500, model="m", thread=0),
        begin("barrier", "", ns=1500),
        end("barrier", "", ns=9000),
    )
    assert one(found).ready_ns == 500


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        event("begin", 10**30, phase="load", model="m", thread=0, ident=1),
        event("begin", 1, phase="load", model=["m"], thread=0, ident=1),
        event("begin", 1, phase="load", model="m", thread="0", ident=1),
        event("begin", 1, phase="load", model="m", thread=10**12, ident=1),
        event("begin", 1, phase=1, model="m", thread=0, ident=1),
        event("ready", "7", model="m", thread=0),  # type: ignore[arg-type]
        '{"ev": "mark", "name": "x", "data": 1' + "0" * 5000 + ', "ns": 1}',
    ],
)
def test_what_an_artifact_has_written_into_the_event_log_is_no_event(line: str) -> None:
    found = event_log(*HEALTHY[:-1], line, HEALTHY[-1])
    healthy = event_log(*HEALTHY)
    assert (one(found), found.marks, found.open) == (one(healthy), {}, {})
    assert found.bye


def test_names_that_no_file_can_hold_are_reported_in_another_spelling() -> None:
    found = event_log(
        '{"ev": "mark", "name": "x", "data": {"\\ud800": ["\\udc00", "\\u00e9", "\\ud83d\\ude00"]}, "ns": 1}'
    )
    assert found.marks == {"x": {"?": ["?", "é", "😀"]}}
    assert codec.canonical(found.marks)


def test_requests_that_somebody_gave_wrongly_are_no_failure_of_ours() -> None:
    wrong = Failure(type="BadInputs", message="no method encod", phase="inputs")
    assert failure_outcome(wrong) is Outcome.EXPORT_ERROR
    assert failure_outcome(replace(wrong, type="OSError")) is Outcome.PROTOCOL_ERROR


def test_lines_come_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    assert not tail.refresh().hello
    path.write_text(event("hello") + "\n" + event("bye")[:5])
    assert (tail.refresh().hello, tail.event_log.bye) == (True, False)
    path.write_text(event("hello") + "\n" + event("bye") + "\n")
    assert tail.refresh().bye


def test_a_long_event_log_is_read_in_pieces_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([event("hello"), *(event("mark", name=str(n), data=n) for n in range(50)), event("bye")]))
    found = EventTail(path).refresh()
    assert (found.hello, len(found.marks), found.bye) == (True, 50, False)


def test_a_line_that_is_none_of_ours_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    path = tmp_path / "events.jsonl"
    path.write_text(event("hello") + "\n" + "[" * 1000 + "\n" + event("bye") + "\n")
    found = EventTail(path).refresh()
    assert (found.hello, found.bye) == (True, True)


def test_a_event_log_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    monkeypatch.setattr(events, "MOST_EVENT_LOG_BYTES", 1000)
    path = tmp_path / "events.jsonl"
    path.write_text(event("hello") + "\n" * 2000 + event("bye") + "\n")
    found = EventTail(path).refresh()
    assert (found.hello, found.bye) == (True, False)


def test_request_that_raises_does_not_end_the_others() -> None:
    found = event_log(
        *(begin("load"), end("load")),
        *(begin("call", set="half", call=0), error("call", set="half", call=0)),
        *(begin("call", set="nan", call=0), end("call", set="nan", call=0)),
    )
    result = one(found)
    assert (result.outcome, result.phase) == (Outcome.RUNTIME_ERROR, "call")
    assert [(item.input_set, item.outcome) for item in result.failed_requests] == [("half", Outcome.RUNTIME_ERROR)]
    assert result.of_request("half").outcome is Outcome.RUNTIME_ERROR
    assert result.of_request("nan").outcome is Outcome.COMPLETED
    assert result.of_request("never").outcome is Outcome.NOT_RUN


def test_request_in_which_the_process_ends_has_failed_like_those_before_it() -> None:
    found = event_log(
        *(begin("call", set="half", call=0), error("call", set="half", call=0)),
        begin("call", set="nan", call=0),
    )
    result = one(found, Outcome.CRASH)
    assert (result.outcome, result.phase_words) == (Outcome.CRASH, "call 0 of nan")
    assert [(item.input_set, item.outcome) for item in result.failed_requests] == [
        ("half", Outcome.RUNTIME_ERROR),
        ("nan", Outcome.CRASH),
    ]


def test_a_request_that_raises_more_than_once_failed_at_the_first_unless_the_process_ended_in_it() -> None:
    raised = [
        *(begin("call", set="half", call=0), error("call", set="half", call=0)),
        *(begin("call", set="half", call=1), end("call", set="half", call=1)),
        *(begin("call", set="half", call=2), error("call", set="half", call=2)),
    ]
    (failed,) = one(event_log(*raised)).failed_requests
    assert failed.failure is not None
    assert (failed.outcome, failed.failure.call) == (Outcome.RUNTIME_ERROR, 0)
    (failed,) = one(event_log(*raised, begin("call", set="half", call=3)), Outcome.CRASH).failed_requests
    assert (failed.outcome, failed.phase, failed.call) == (Outcome.CRASH, "call", 3)


def test_load_error_is_shared_by_all_requests() -> None:
    result = one(event_log(begin("load"), error("load")))
    assert not result.failed_requests
    assert result.of_request("any").outcome is Outcome.LOAD_ERROR
