"""``trace.json``: the processes of a run for Perfetto and chrome://tracing, in the Trace Event Format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Times are microseconds
since the first phase of the run. Processes and threads have numbers of their own, for the kernel's may repeat: no two
alike, and no thread has that of a process, which Perfetto would take for its main thread.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from harness.core.outcome import Outcome
from harness.core.probe import Span
from harness.core.text import visible
from harness.core.timeline import HangSample, ProcessTrace, RunTrace
from harness.report.words.phrases import shorten

Event = dict[str, Any]

_APART = 10_000  # processes; the worker's threads follow their process, those that it did not make come after them
_NATIVE = 5_000
_NAME_LIMIT = 200
MOST_SPANS = 50_000
"""About 10 MB."""


def render_trace(trace: RunTrace, *, most_spans: int = MOST_SPANS) -> str:
    """Return the trace as JSON on one line per event, ending with a newline.

    Args:
        most_spans: what is over it is left out, the shortest phases first; ``otherData`` counts them.
    """
    begin_ns = min((span.begin_ns for process in trace.processes for span in process.spans), default=0)
    least_ns, left_out = _least(trace, most_spans)
    events = [
        event
        for number, process in enumerate(trace.processes, start=1)
        for event in _process(_without_short(process, least_ns), _APART * number, begin_ns)
    ]
    lines = ",\n".join(msgspec.json.encode(event).decode() for event in events)
    about = msgspec.json.encode({"run": _words(trace.run), "phases_left_out": left_out}).decode()
    return f'{{"displayTimeUnit":"ms","otherData":{about},"traceEvents":[\n{lines}\n]}}\n'


def _least(trace: RunTrace, most: int) -> tuple[int, int]:
    """Return how long a finished phase must at least be, in nanoseconds, and how many are not."""
    lengths = sorted(span.end_ns - span.begin_ns for process in trace.processes for span in process.spans)
    least_ns = lengths[-most] if len(lengths) > most else 0
    kept = (_without_short(process, least_ns) for process in trace.processes)
    return least_ns, len(lengths) - sum(len(process.spans) for process in kept)


def _without_short(process: ProcessTrace, least_ns: int) -> ProcessTrace:
    kept = (span for span in process.spans if span.end_ns - span.begin_ns >= least_ns or not span.finished)
    return replace(process, spans=tuple(kept)) if least_ns else process


def _process(process: ProcessTrace, number: int, begin_ns: int) -> Iterator[Event]:
    yield _meta("process_name", number, {"name": _words(process.title)})
    yield _meta("process_sort_index", number, {"sort_index": number})
    state = process.outcome.value if process.outcome is not Outcome.COMPLETED else ""
    if state:
        yield _meta("process_labels", number, {"labels": _words(f"{state} {process.hang}".strip())})
    threads = sorted({span.thread for span in process.spans})
    for thread in threads:
        lane = number + 1 + thread
        yield _meta("thread_name", number, {"name": f"thread {thread}"}, lane)
        yield _meta("thread_sort_index", number, {"sort_index": thread}, lane)
    for span in nested(process.spans):
        yield _span(span, process, number, begin_ns)
    end_ns = max((span.end_ns for span in process.spans), default=begin_ns)
    for index, sample in enumerate(process.samples):
        yield from _sample(sample, process, number, number + _NATIVE + index, end_ns - begin_ns)


def nested(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of each thread so that one lies within another or beside it: what the format asks for.

    A span that overlaps the end of the one around it ends with it.
    """
    open_ends: dict[int, list[int]] = {}
    for span in sorted(spans, key=lambda item: (item.thread, item.begin_ns, -item.end_ns)):
        ends = open_ends.setdefault(span.thread, [])
        while ends and ends[-1] <= span.begin_ns:
            ends.pop()
        end_ns = min(span.end_ns, ends[-1]) if ends else span.end_ns
        ends.append(end_ns)
        yield replace(span, end_ns=end_ns)


def _span(span: Span, process: ProcessTrace, number: int, begin_ns: int) -> Event:
    """Return a complete event; one that never ended says so, and has the colour of what is wrong."""
    phase = _words(span.phase)
    details: Event = {"phase": phase}
    details |= {"model": _words(span.model)} if span.model else {}
    details |= {"cpu_ms": span.cpu_ns / 1e6} if span.cpu_ns else {}
    event: Event = {
        "name": _words(f"{span.phase} {span.model}{'' if span.call is None else f' {span.call}'}".strip()),
        "cat": phase if span.finished else f"{phase},unfinished",
        "ph": "X",
        "pid": number,
        "tid": number + 1 + span.thread,
        "ts": (span.begin_ns - begin_ns) / 1e3,
        "dur": max(0, span.end_ns - span.begin_ns) / 1e3,
        "args": details,
    }
    if not span.finished:
        details["never_ended"] = process.hang or process.outcome.value
        event["cname"] = "terrible"
    return event


def _sample(sample: HangSample, process: ProcessTrace, number: int, lane: int, at_ns: int) -> Iterator[Event]:
    """Yield an instant on the thread that was seen; a thread that the worker did not make has a lane of its own."""
    thread = number + 1 + sample.thread if sample.thread is not None else lane
    if sample.thread is None:
        yield _meta("thread_name", number, {"name": _words(f"{sample.words or 'thread'} ({sample.tid})")}, lane)
        yield _meta("thread_sort_index", number, {"sort_index": lane}, lane)
    yield {
        "name": _words(f"{process.hang or process.outcome.value}: {sample.words}"),
        "cat": "sample",
        "ph": "i",
        "s": "t",
        "pid": number,
        "tid": thread,
        "ts": at_ns / 1e3,
        "args": {"tid": sample.tid, "stack": [_words(frame) for frame in sample.frames]},
    }


def _meta(name: str, number: int, details: Mapping[str, Any], thread: int | None = None) -> Event:
    where = {"tid": thread} if thread is not None else {}
    return {"name": name, "ph": "M", "pid": number, **where, "ts": 0, "args": dict(details)}


def _words(text: str) -> str:
    """Return a text of a model or a release as one visible line."""
    return shorten(visible(text), _NAME_LIMIT)
