"""How a probe's process ended and what it wrote -> its result. Reads, decides outcomes, judges nothing."""

import dataclasses
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Outcome
from harness.core.probe import FailedRequest, ModelResult, ProbeRequest, ProbeResult
from harness.probing import events, processes
from harness.probing.events import EventLog, OpenPhase
from harness.worker import wire


@dataclass(frozen=True)
class Ending:
    """How a watch ended.

    Attributes:
        killed: whether the watchdog ended the child, or would have, had the look into it not woken it.
        overdue: which phases the proof blames; empty if it hung outside of every phase.
        reaped: False if the child lives on.
        proof: why it was killed.
        evidence: what was found in it before; None if nobody was asked to look.
    """

    event_log: EventLog
    end_ns: int
    killed: bool = False
    overdue: tuple[OpenPhase, ...] = ()
    reaped: bool = True
    stacks: str = field(default="", repr=False)
    proof: HangProof | None = None
    evidence: Evidence | None = None


LAST_WORDS_BYTES = 4096


def conclude(
    request: ProbeRequest,
    key: str,
    folder: Path,
    ending: Ending,
    crash_evidence: Callable[[Path, str], Evidence],
    *,
    status: int | None,
    max_rss_bytes: int | None,
) -> ProbeResult:
    event_log = ending.event_log
    done = event_log.bye or (event_log.exits and status == 0)
    code = None if status is None or (status == 0 and done) else os.waitstatus_to_exitcode(status)
    at_work = tuple(opened for opened in event_log.open.values() if opened.model)
    evidence = ending.evidence
    if ending.killed and (ending.overdue or not done):
        starved = ending.proof is not None and ending.proof.kind is HangKind.STARVED
        outcome = Outcome.STARVED if starved else Outcome.HANG
        blamed = tuple(opened for opened in ending.overdue if opened.model)
    elif done:
        outcome, blamed = Outcome.COMPLETED, ()
    elif code is not None and code < 0:
        no_memory = code == -signal.SIGKILL or (code == -signal.SIGABRT and _gave_up_for_memory(folder))
        outcome = Outcome.OUT_OF_MEMORY if no_memory else Outcome.CRASH
        evidence = crash_evidence(folder, processes.signal_name(-code))
        evidence = dataclasses.replace(evidence, at_work=events.at_work(event_log))
        blamed = events.blamed_phases(event_log, evidence.faulting_tid)
    elif code is not None and at_work and code != wire.EXIT_BROKEN:  # that one is ours, whatever was at work
        outcome, blamed = Outcome.CRASH, at_work  # the model's code has ended the process
    else:
        outcome, blamed = Outcome.PROTOCOL_ERROR, ()
    if outcome in (Outcome.CRASH, Outcome.HANG):
        blamed = events.exiting(event_log) or blamed
    names = [run.artifact.model for run in request.runs]
    if request.declaration is not None:
        names.append(request.declaration.name)
    models: tuple[ModelResult, ...] = events.model_results(event_log, names, outcome, blamed)
    asked = {run.artifact.model: [name for name, _ in run.schedule] for run in request.runs}
    models = tuple(_with_unreached(model, asked.get(model.model, ())) for model in models)
    return ProbeResult(
        key=key,
        side=request.side,
        outcome=outcome,
        directory=str(folder),
        models=models,
        data=event_log.marks,
        spans=event_log.all_spans(ending.end_ns),
        max_rss_bytes=max_rss_bytes,
        memory_limit_bytes=request.limits.memory_bytes if request.limits is not None else None,
        exit_detail="" if code is None else _in_words(code, request),
        stacks=ending.stacks[-20000:],
        failure=event_log.own_failure,
        evidence=evidence,
        memory=tuple(event_log.memory),
    )


def _with_unreached(model: ModelResult, asked: Sequence[str]) -> ModelResult:
    """Return the result with the requests that were never made, as the process ended in one before them."""
    if not model.failed_requests:
        return model
    known = {call.input_set for call in model.calls} | {failed.input_set for failed in model.failed_requests}
    unreached = (
        FailedRequest(input_set=name, outcome=Outcome.NOT_RUN, phase=wire.CALL, call=0)
        for name in asked
        if name not in known
    )
    return dataclasses.replace(model, failed_requests=(*model.failed_requests, *unreached))


def _in_words(code: int, request: ProbeRequest) -> str:
    ended = processes.describe_exit(code)
    if code != -signal.SIGXCPU or request.limits is None:
        return ended
    limit_s = request.limits.cpu_s
    return f"{ended}: its CPU time limit" + ("" if limit_s is None else f" of {limit_s:g} s")


def _gave_up_for_memory(folder: Path) -> bool:
    """Whether the last words of an aborted process are of memory that it did not get."""
    try:
        with (folder / wire.STDERR).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
            words = stream.read().decode("utf-8", "replace")
    except OSError:
        return False
    return events.OUT_OF_MEMORY.search(words) is not None
