"""Events of a worker -> what happened, per model. Reads text, decides outcomes, judges nothing."""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from harness.core.hang import ThreadActivity
from harness.core.outcome import Outcome
from harness.core.probe import BAD_INPUTS, CallRecord, FailedRequest, Failure, ModelResult, Span
from harness.store import codec
from harness.store.json import DAMAGE, parsed
from harness.worker import wire

OUT_OF_MEMORY = re.compile(
    r"can(?:'t|not) allocate memory|out of memory|not enough memory|\bbad_alloc\b|\bMemoryError\b", re.IGNORECASE
)
EXPORT_PHASES = (wire.CONSTRUCT, wire.CONVERT, wire.COMPILE, wire.SAVE)
# What an event may hold; the rest of it is data of a mark. An artifact may have written it, so numbers have limits.
TEXTS = ("ev", "phase", "model", "name", "label", "type", "message", "traceback", "set")
NUMBERS = dict.fromkeys(("ns", "cpu_ns", "rss_bytes", "tid", "pid"), 1 << 62) | {"ident": (1 << 64) - 1}
NUMBERS |= dict.fromkeys(("thread", "call", "os_threads"), 1 << 32)
RUNNING_PHASES = (wire.CALL, wire.PREPARE, wire.SERVE, wire.DROP, wire.CAPTURE, wire.REPLAY, wire.NODES)


@dataclass(frozen=True)
class OpenPhase:
    """A begin without an end.

    ``ident`` and ``tid``: the thread that is at it now: the one that began it, or that of a pool which has taken up its
    call; ``asked_by``: ident and tid of the thread that began it and waits, where a pool's thread is at it; else None.
    """

    phase: str
    model: str
    thread: int
    begin_ns: int
    ident: int
    tid: int = 0
    input_set: str | None = None
    call: int | None = None
    asked_by: tuple[int, int] | None = None


@dataclass
class EventLog:
    """The events of one worker, folded as they arrive; feed it lines, ask it any time.

    ``failures``: model -> its errors in order, under the empty name those that are no model's; ``forked``: thread of
    the script -> the process that was forked for it.
    """

    open: dict[tuple[int, str], OpenPhase] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    ready_ns: dict[str, int] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    last_phase: dict[str, str] = field(default_factory=dict)
    load_ns: dict[str, int] = field(default_factory=dict)
    calls: dict[str, list[CallRecord]] = field(default_factory=dict)
    barrier_ns: dict[int, int] = field(default_factory=dict)
    memory: list[tuple[str, int, int]] = field(default_factory=list)
    beat_ns: dict[int, int] = field(default_factory=dict)
    forked: dict[int, int] = field(default_factory=dict)
    progress_ns: int = 0
    last_ns: int = 0
    hello: bool = False
    bye: bool = False
    calls_through_pool: bool = False

    def feed(self, lines: Iterable[str]) -> None:
        """Fold complete lines; a torn one (killed in mid-write) or one that a model has written is ignored."""
        for line in lines:
            with contextlib.suppress(*DAMAGE):
                event = parsed(line)
                _check_fields(event)
                self.last_ns = max(self.last_ns, int(event["ns"]))
                if not _is_sign_of_life(event):
                    self.progress_ns = max(self.progress_ns, int(event["ns"]))
                self._fold(event)

    def _fold(self, event: Mapping[str, Any]) -> None:
        match event["ev"]:
            case "hello":
                self.hello = True
            case "bye":
                self.bye = True
            case "mark":
                codec.canonical(event["data"])  # what cannot be stored is no mark
                self.marks[event["name"]] = event["data"]
            case "ready":
                self.ready_ns[event["model"]] = event["ns"]
            case "beat":
                self.beat_ns[event["thread"]] = event["ns"]
            case "forked":
                self.forked[event["thread"]] = event["pid"]
            case "memory":
                self.memory.append((event["label"], event["rss_bytes"], event["os_threads"]))
            case "begin":
                self._begin(event)
            case "task":
                self._take_up(event)
            case "end":
                self._end(event)
            case "error":
                self._fail(event)
            case _:  # of a later worker
                pass

    def _begin(self, event: Mapping[str, Any]) -> None:
        opened = OpenPhase(
            event["phase"],
            event["model"],
            event["thread"],
            event["ns"],
            event["ident"],
            event.get("tid", 0),
            event.get("set"),
            event.get("call"),
        )
        self.open[opened.thread, opened.phase] = opened
        if opened.model:
            self.threads[opened.model] = opened.thread
            self.last_phase[opened.model] = opened.phase

    def _take_up(self, event: Mapping[str, Any]) -> None:
        self.calls_through_pool = True
        ident, tid = event["ident"], event["tid"]
        for key, opened in self.open.items():
            if opened.asked_by is not None and opened.tid == tid:  # done there; its end is about to be written
                self.open[key] = replace(opened, ident=opened.asked_by[0], tid=opened.asked_by[1], asked_by=None)
        key = event["thread"], event["phase"]
        if key in self.open:
            begun = self.open[key]
            asked_by = begun.asked_by or (begun.ident, begun.tid)
            self.open[key] = replace(begun, ident=ident, tid=tid, asked_by=asked_by)

    def _close(self, event: Mapping[str, Any]) -> OpenPhase | None:
        opened = self.open.pop((event["thread"], event["phase"]), None)
        if opened is not None:
            self.spans.append(_span(opened, event["ns"], finished=True, cpu_ns=event.get("cpu_ns", 0)))
        return opened

    def _end(self, event: Mapping[str, Any]) -> None:
        opened = self._close(event)
        if opened is None:
            return
        duration = event["ns"] - opened.begin_ns
        if opened.phase == wire.LOAD:
            self.load_ns[opened.model] = duration
        elif opened.phase == wire.CALL and opened.input_set is not None and opened.call is not None:
            record = CallRecord(input_set=opened.input_set, call=opened.call, duration_ns=duration)
            self.calls.setdefault(opened.model, []).append(record)
        elif opened.phase == wire.BARRIER:
            self.barrier_ns.setdefault(opened.thread, event["ns"])  # the start: later ones end a cycle

    def _fail(self, event: Mapping[str, Any]) -> None:
        self._close({"thread": event.get("thread", 0), "phase": event["phase"], "ns": event["ns"]})
        failure = Failure(
            type=event["type"],
            message=event["message"],
            phase=event["phase"],
            traceback=event["traceback"],
            input_set=event.get("set"),
            call=event.get("call"),
        )
        self.failures.setdefault(event.get("model", ""), []).append(failure)

    @property
    def own_failure(self) -> Failure | None:
        return next(reversed(self.failures.get("", ())), None)

    @property
    def exits(self) -> bool:
        """Whether the process has begun to exit with teardown, after which it cannot say anything."""
        return any(opened.phase == wire.EXIT for opened in self.open.values())

    def all_spans(self, end_ns: int) -> tuple[Span, ...]:
        unfinished = (_span(opened, max(end_ns, opened.begin_ns), finished=False) for opened in self.open.values())
        return (*self.spans, *unfinished)


def _check_fields(event: Mapping[str, Any]) -> None:
    if any(not isinstance(event.get(name) or "", str) for name in TEXTS):
        raise TypeError
    for name, most in NUMBERS.items():
        number = event.get(name, 0)
        if number is not None and (type(number) is not int or abs(number) > most):
            raise TypeError(name)


def _is_sign_of_life(event: Mapping[str, Any]) -> bool:
    return (event["ev"], event.get("phase")) in {("beat", None), ("task", wire.SERVE)}


def _span(opened: OpenPhase, end_ns: int, *, finished: bool, cpu_ns: int = 0) -> Span:
    return Span(
        phase=opened.phase,
        begin_ns=opened.begin_ns,
        end_ns=end_ns,
        model=opened.model,
        thread=opened.thread,
        finished=finished,
        cpu_ns=cpu_ns,
        call=opened.call,
    )


def failure_outcome(failure: Failure) -> Outcome:
    if OUT_OF_MEMORY.search(f"{failure.type}: {failure.message}"):
        return Outcome.OUT_OF_MEMORY
    if failure.phase == wire.LOAD:
        return Outcome.LOAD_ERROR
    if failure.phase in EXPORT_PHASES or failure.type == BAD_INPUTS:
        return Outcome.EXPORT_ERROR
    if failure.phase in RUNNING_PHASES:
        return Outcome.RUNTIME_ERROR
    return Outcome.PROTOCOL_ERROR


def at_work(event_log: EventLog) -> tuple[ThreadActivity, ...]:
    return tuple(
        ThreadActivity(
            tid=opened.tid,
            thread=opened.thread,
            model=opened.model,
            phase=opened.phase,
            input_set=opened.input_set,
            call=opened.call,
        )
        for opened in event_log.open.values()
    )


def blamed_phases(event_log: EventLog, faulting_tid: int | None) -> tuple[OpenPhase, ...]:
    """Return which open phases a crash belongs to: the one that the faulting thread is at, if that is known.

    Otherwise every one that any thread is at. A helper thread (OpenMP's, or one of the inter-op pool with a sub-task
    that a model has forked) says nothing of whom it works for. A call that still waits for the pool is not to blame.
    """
    candidates = tuple(opened for opened in event_log.open.values() if opened.model)
    exact = tuple(opened for opened in candidates if opened.tid == faulting_tid)
    running = tuple(opened for opened in candidates if not _waits_for_pool(opened, event_log))
    return exact or running or candidates


def exiting(event_log: EventLog) -> tuple[OpenPhase, ...]:
    """Return whom it belongs to that a process ends badly while it exits: all that serve; empty where none exits."""
    if not event_log.exits:
        return ()
    serving = (opened for opened in event_log.open.values() if opened.phase == wire.SERVE)
    return tuple(replace(opened, phase=wire.EXIT, input_set=None) for opened in serving)


def _waits_for_pool(opened: OpenPhase, event_log: EventLog) -> bool:
    return event_log.calls_through_pool and opened.phase == wire.CALL and opened.asked_by is None


def model_results(
    event_log: EventLog, models: Sequence[str], process_outcome: Outcome, blamed: Sequence[OpenPhase]
) -> tuple[ModelResult, ...]:
    """Return one result per model; ``blamed`` phases come first: asking for stacks may wake a hung model."""
    guilty = {opened.model: opened for opened in blamed}
    results = []
    for model in models:
        failures, blame = event_log.failures.get(model, []), guilty.get(model)
        failure = None
        if blame is not None:
            outcome, phase = process_outcome, blame.phase
        elif failures:
            failure = failures[0]
            outcome, phase = failure_outcome(failure), failure.phase
        else:
            outcome = Outcome.COMPLETED if model in event_log.ready_ns else Outcome.NOT_RUN
            phase = event_log.last_phase.get(model, "")
        thread = event_log.threads.get(model, 0)
        start_ns = event_log.barrier_ns.get(thread)
        ready_ns = event_log.ready_ns.get(model)
        results.append(
            ModelResult(
                model=model,
                outcome=outcome,
                phase=phase,
                input_set=None if blame is None or blame.call is None else blame.input_set,
                call=None if blame is None else blame.call,
                failure=failure,
                failed_requests=_failed_requests(failures, blame, process_outcome),
                load_ns=event_log.load_ns.get(model),
                ready_ns=ready_ns - start_ns if ready_ns is not None and start_ns is not None else None,
                calls=tuple(event_log.calls.get(model, ())),
                thread=thread,
            )
        )
    return tuple(results)


def _failed_requests(
    failures: Sequence[Failure], blame: OpenPhase | None, process_outcome: Outcome
) -> tuple[FailedRequest, ...]:
    """Return the requests that a model did not answer in full, in order; an error outside of a call is of none.

    Of a request that failed in several calls it is the first of them, unless the process ended in another.
    """
    failed: dict[str, FailedRequest] = {}
    for failure in failures:
        if failure.input_set is not None and failure.call is not None:
            outcome, name = failure_outcome(failure), failure.input_set
            failed.setdefault(
                name, FailedRequest(input_set=name, outcome=outcome, phase=failure.phase, failure=failure)
            )
    if blame is not None and blame.input_set is not None and blame.call is not None:
        name = blame.input_set
        failed[name] = FailedRequest(input_set=name, outcome=process_outcome, phase=blame.phase, call=blame.call)
    return tuple(failed.values())


# An artifact that writes into the event_log can make it as large as its limit of files.
LONGEST_LINE_BYTES = 16 << 20
MOST_EVENT_LOG_BYTES = 256 << 20


class EventTail:
    """Feeds an event log with the complete lines that a worker has appended since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.event_log = EventLog()

    def refresh(self) -> EventLog:
        try:
            with self._path.open("rb") as stream:
                while self._offset < MOST_EVENT_LOG_BYTES and self._take(stream):
                    pass
        except FileNotFoundError:
            pass
        return self.event_log

    def _take(self, stream: BinaryIO) -> bool:
        stream.seek(self._offset)
        chunk = stream.read(LONGEST_LINE_BYTES)
        complete = chunk.rfind(b"\n") + 1
        if complete == 0 and len(chunk) == LONGEST_LINE_BYTES:
            complete = len(chunk)  # no line of ours
        self._offset += complete
        self.event_log.feed(chunk[:complete].decode("utf-8", "replace").splitlines())
        return complete > 0 and len(chunk) == LONGEST_LINE_BYTES
