"""The trace against the rules of the Trace Event Format."""

import json
from collections import defaultdict
from typing import Any

from harness.core.outcome import Outcome
from harness.core.timeline import HangSample, ProcessTrace, RunTrace
from harness.report.trace import nested, render_trace
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.pages import span

REQUIRED = {
    "X": {"name", "cat", "ph", "pid", "tid", "ts", "dur"},
    "i": {"name", "ph", "pid", "tid", "ts", "s"},
    "M": {"name", "ph", "pid", "args"},
}
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def process(name: str = "probes/1", *spans: Any, **more: Any) -> ProcessTrace:
    told: dict[str, Any] = {"side": "new", "title": "new: run ranker", "outcome": Outcome.COMPLETED} | more
    return ProcessTrace(name=name, spans=spans or (span("load", 5, 9), span("call", 10, 12)), **told)


def events(trace: RunTrace) -> list[dict[str, Any]]:
    """Return the events of a trace that keeps every rule of the format."""
    text = render_trace(trace)
    document = json.loads(text)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"} and document["displayTimeUnit"] == "ms"
    found: list[dict[str, Any]] = document["traceEvents"]
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in found:
        assert set(event) >= REQUIRED[event["ph"]], event
        assert isinstance(event["pid"], int) and isinstance(event.get("tid", 0), int) and event["ts"] >= 0
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
        if event["ph"] == "i":
            assert event["s"] in ("t", "p", "g")
        if event["ph"] == "X":
            assert event["dur"] >= 0
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        ends: list[float] = []
        for begin, end in sorted(spans, key=lambda item: (item[0], -item[1])):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or end <= ends[-1] + 1e-6, "slices of one thread overlap without being nested"
            ends.append(end)
    threads = {(event["pid"], event["tid"]) for event in found if "tid" in event}
    assert len({tid for _, tid in threads} | {pid for pid, _ in threads}) == len(threads) + len(
        {pid for pid, _ in threads}
    )
    named = {event["pid"] for event in found if event["name"] == "process_name"}
    assert named == {event["pid"] for event in found}
    return found


def test_processes_threads_and_phases_are_named() -> None:
    found = events(RunTrace(run="r", processes=(process(), process("probes/2", span("load", 7, 8, thread=3)))))
    slices = [event for event in found if event["ph"] == "X"]
    assert [(event["name"], event["pid"], event["tid"], event["ts"], event["dur"]) for event in slices] == [
        ("load ranker", 10_000, 10_001, 0.0, 4000.0),
        ("call ranker", 10_000, 10_001, 5000.0, 2000.0),
        ("load ranker", 20_000, 20_004, 2000.0, 1000.0),
    ]
    assert [event["args"]["name"] for event in found if event["name"] == "thread_name"] == ["thread 0", "thread 3"]


def test_a_phase_that_never_ended_says_so_and_the_samples_stand_at_its_end() -> None:
    stuck = span("call", 10, 900, thread=1, finished=False)
    samples = (
        HangSample(
            tid=4711, thread=1, words="ranker call: waits for a lock", frames=("pthread_mutex_lock (libc.so.6)",)
        ),
        HangSample(tid=4712, thread=None, words="pt_pool: 0.0 s on a CPU"),
    )
    found = events(
        RunTrace(run="r", processes=(process("p", stuck, outcome=Outcome.HANG, hang="blocked", samples=samples),))
    )
    (call,) = [event for event in found if event["ph"] == "X"]
    assert call["args"]["never_ended"] == "blocked" and call["cat"] == "call,unfinished"
    first, second = [event for event in found if event["ph"] == "i"]
    assert first["tid"] == call["tid"] and first["ts"] == call["ts"] + call["dur"]
    assert first["name"] == "blocked: ranker call: waits for a lock"
    assert first["args"] == {"tid": 4711, "stack": ["pthread_mutex_lock (libc.so.6)"]}
    assert second["tid"] != call["tid"] and second["tid"] in {e["tid"] for e in found if e["name"] == "thread_name"}
    assert [event["args"]["labels"] for event in found if event["name"] == "process_labels"] == ["hang blocked"]


def test_spans_that_overlap_are_cut_so_that_they_nest() -> None:
    kept = list(nested([span("serve", 0, 10), span("call", 5, 15), span("call", 12, 20), span("load", 1, 2, thread=1)]))
    assert [(item.begin_ns // 10**6, item.end_ns // 10**6) for item in kept] == [(0, 10), (5, 10), (12, 20), (1, 2)]
    events(RunTrace(run="r", processes=(process("p", span("serve", 0, 10), span("call", 5, 15)),)))


def test_the_shortest_phases_are_left_out_first_and_counted() -> None:
    spans = (span("call", 0, 1), span("call", 1, 4), span("call", 4, 6), span("load", 6, 6, finished=False))
    run = RunTrace(run="r", processes=(process("p", *spans), process("q", span("call", 0, 1))))
    document = json.loads(render_trace(run, most_spans=2))
    kept = [event["dur"] for event in document["traceEvents"] if event["ph"] == "X"]
    assert kept == [3000.0, 2000.0, 0.0]
    assert document["otherData"] == {"run": "r", "phases_left_out": 2}


def test_hostile_names_stay_text_and_a_run_without_processes_is_a_trace() -> None:
    for name in HOSTILE_NAMES:
        sample = HangSample(tid=1, thread=None, words=name, frames=(name,))
        told = process("p", span(name, 0, 1, name), title=name, outcome=Outcome.CRASH, hang=name, samples=(sample,))
        found = events(RunTrace(run=name, processes=(told,)))
        assert all(str(event["name"]).isprintable() and len(event["name"]) <= 200 for event in found)
    assert events(RunTrace(run="r", processes=())) == []
