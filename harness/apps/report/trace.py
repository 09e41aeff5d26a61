"""A run's folder -> what its processes did and when. Reads what probes and benchmarks left, finished run or not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.core.devices import CPU
from harness.core.errors import RunDirError
from harness.core.hang import Evidence, ThreadActivity, ThreadStack
from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult
from harness.core.timeline import HangSample, ProcessTrace, RunTrace
from harness.probing.events import EventTail
from harness.store import codec, probe_files
from harness.store.json import JsonError, from_json
from harness.store.run_folder import COMPILED, PROBES
from harness.worker import wire

FRAMES_KEPT = 60
_NAMED = 3


def read_trace(folder: Path) -> RunTrace:
    """Return every process of a run that left phases; what cannot be read is left out."""
    processes = [*_compiled(folder / COMPILED), *_probes(folder / PROBES), *_benchmarks(folder)]
    kept = [process for process in processes if process.spans]
    kept.sort(key=lambda process: (min(span.begin_ns for span in process.spans), process.name))
    return RunTrace(run=folder.name, processes=tuple(kept))


def _compiled(file: Path) -> tuple[ProcessTrace, ...]:
    """Return the compilers that the run itself has started."""
    try:
        return codec.read_json(file, tuple[ProcessTrace, ...])
    except RunDirError:  # nothing had to be compiled
        return ()


def _probes(folder: Path) -> Iterator[ProcessTrace]:
    for probe in probe_files.folders(folder):
        try:
            result = codec.read_json(probe / probe_files.RESULT, ProbeResult, read=probe_files.read_result)
        except RunDirError:
            continue
        if probe_files.earlier_run(probe):  # on the clock of another day
            continue
        proof = result.evidence.proof if result.evidence is not None else None
        yield ProcessTrace(
            name=f"probes/{probe.name}",
            side=result.side,
            title=_asked(_request(probe), result.side),
            outcome=result.outcome,
            spans=tuple(result.spans),
            samples=tuple(_samples(result.evidence)) if result.evidence is not None else (),
            hang=proof.kind.value if proof is not None else "",
            contexts=result.contexts,
        )


def _benchmarks(folder: Path) -> Iterator[ProcessTrace]:
    """Yield the processes of the benchmark and of the prices of switches: ``round-N-ARM`` in a folder of their own."""
    for path in sorted(folder.glob(f"*/round-*-*/{wire.EVENTS}")):
        event_log = EventTail(path).refresh()
        arm = path.parent.name.split("-")[2]
        yield ProcessTrace(
            name=f"{path.parent.parent.name}/{path.parent.name}",
            side="new" if arm == "new" else "old",
            title=f"{path.parent.parent.name} {path.parent.name}",
            outcome=Outcome.COMPLETED,
            spans=event_log.all_spans(event_log.last_ns),
            contexts=int(_request(path.parent).get("device", CPU.torch) != CPU.torch),
        )


def _request(folder: Path) -> Mapping[str, Any]:
    try:
        request = from_json(probe_files.read(folder, wire.REQUEST))
    except (OSError, RunDirError, JsonError):
        return {}
    return request if isinstance(request, dict) else {}


def _asked(request: Mapping[str, Any], side: str) -> str:
    """Return the title of a process; its side alone where the request is not one of ours."""
    try:
        return _title(request, side)
    except (AttributeError, KeyError, TypeError):
        return side


def _title(request: Mapping[str, Any], side: str) -> str:
    """Return what the process was asked: ``new: run dlrm``, ``old: run 11 models in 4 threads``."""
    names = [run["artifact"]["model"] for run in request.get("runs") or []]
    declared = request.get("declaration")
    names += [declared["name"]] if declared else []
    what = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} models"
    threads = len((request.get("script") or {}).get("threads", ()))
    many = f" in {threads} threads" if threads > 1 else ""
    return f"{side}: {request.get('verb', 'process')} {what}".rstrip() + many


def _samples(evidence: Evidence) -> Iterator[HangSample]:
    """Yield every thread that was seen: what it did by the proof, and its stack, paired by the kernel's id."""
    seen = evidence.proof.threads if evidence.proof is not None else evidence.at_work
    threads = {item.tid: item for item in seen}
    stacks = {item.tid: item for item in evidence.stacks}
    for tid in sorted({*threads, *stacks}):
        thread, stack = threads.get(tid), stacks.get(tid)
        yield HangSample(
            tid=tid,
            thread=thread.thread if thread is not None else None,
            words=_words(thread, stack),
            frames=tuple(_frames(stack)) if stack is not None else (),
        )


def _words(thread: ThreadActivity | None, stack: ThreadStack | None) -> str:
    if thread is None:
        return stack.name if stack is not None else ""
    at = " ".join(text for text in (thread.model, thread.phase) if text)
    does = f"waits for {thread.waits_for}" if thread.waits_for else f"{thread.on_cpu_s:.1f} s on a CPU"
    return f"{at or thread.name}: {does}"


def _frames(stack: ThreadStack) -> Iterator[str]:
    for frame in stack.frames[:FRAMES_KEPT]:
        place = f"{frame.file}:{frame.line}" if frame.line else frame.file
        yield f"{frame.function} ({place})" if place else frame.function
