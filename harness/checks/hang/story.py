"""What the report says of a process that hung or crashed: threads, what they do, and what it means where known."""

import math
from collections.abc import Sequence

from harness.checks.hang.readings import Reading, reading
from harness.checks.hang.stack_words import INTERPRETER, Folded, interesting, threads_in_words, who
from harness.core.findings import DISTURBANCE, OUTCOME_KIND, SEVERITY, Severity
from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Disturbance, Outcome
from harness.core.probe import Failure, ModelResult
from harness.core.text import amount, error_words, marked_expression
from harness.core.verdict import Finding, Standstill
from harness.worker import wire

# Frames of one thread in the report; the files of the probe have all of them.
MOST_FRAMES = 6
MOST_STACKS = 3
KIND_WORDS = {
    HangKind.BLOCKED: "for {window:.1f} s no thread ran, wanted a CPU or moved data; no progress for {silent:.1f} s",
    HangKind.BUSY: "computing for {silent:.1f} s without progress",
    HangKind.STARVED: "hardly got a CPU in {silent:.1f} s: this machine was overloaded",
    HangKind.OVERDUE: "no progress for {silent:.1f} s",
}


# So much later a hang was found than it could have been, before that is said.
WORTH_SAYING_S = 1.0
# How much longer a reader is advised to wait who wants to know whether a slow call ends.
MORE_PATIENCE = 10


def hang_story(seen: Evidence, before_s: float | None = None) -> tuple[tuple[str, str], ...]:
    """Return labelled lines for the red cell; ``before_s``: what the phase took in the old release at most."""
    proof = seen.proof
    known = reading(seen.stacks, proof)
    lines: list[tuple[str, str]] = []
    if known is not None:
        lines.append((MEANING, f"{known.words} ({known.source})"))
    if proof is not None:
        words = KIND_WORDS[proof.kind].format(window=proof.window_s, silent=proof.silent_s)
        stalled = (  # why a process that stands was found late
            f"of these {proof.stalled_s:.1f} s did not count, because this machine had too few CPUs to give"
            if proof.stalled_s >= WORTH_SAYING_S
            else ""
        )
        parts = (words, stalled, _not_done_words(proof, before_s), proof.note)
        lines.append(("proof", f"{proof.kind.value}: {'; '.join(filter(None, parts))}"))
    if seen.signal:
        stack = next((stack for stack in seen.stacks if stack.tid == seen.faulting_tid), None)
        lines.append(("proof", seen.signal if stack is None else f"{seen.signal} in {who(stack, _at_work(seen))}"))
    lines.extend(("threads", line) for line in threads_in_words(proof or _at_work(seen), seen.stacks))
    shown = _most_telling(seen, known)
    lines.extend(("frames", f"{item.title}: {' < '.join(_shown(item.lines))}") for item in shown)
    lines.extend(("seen", remark) for remark in seen.remarks)
    return tuple(lines)


def standstill(seen: Evidence) -> Standstill:
    """Return where the process stands, as data: what ``hang_story`` says in words."""
    proof, known = seen.proof, reading(seen.stacks, seen.proof)
    return Standstill(
        reading=known.name if known is not None else "",
        title=known.title if known is not None else "",
        is_busy=proof is not None and proof.kind is HangKind.BUSY,
        stacks=tuple(tuple(_shown(item.lines)) for item in _most_telling(seen, known)),
    )


def _most_telling(seen: Evidence, known: Reading | None) -> list[Folded]:
    first = known.threads if known is not None else ()
    return [
        folded for folded in interesting(seen.stacks, seen.proof or _at_work(seen), first)[:MOST_STACKS] if folded.lines
    ]


def _shown(frames: Sequence[str]) -> Sequence[str]:
    inside = next((index for index, frame in enumerate(frames) if INTERPRETER.match(frame)), 0)
    if inside < MOST_FRAMES:
        return frames[:MOST_FRAMES]
    return (*frames[: MOST_FRAMES - 2], "...", *frames[inside - 1 : inside + 1])


def _not_done_words(proof: HangProof, before_s: float | None) -> str:
    """Return what a deadline alone has shown: inside one call nobody can tell an endless loop from a slow one."""
    if not proof.own_s or proof.kind is not HangKind.BUSY:
        return ""
    known = f"not done after {amount(proof.own_s, 's')}, waits for other programs left out"
    if before_s:
        times = math.floor(proof.own_s / before_s)
        before = f"the old release took {amount(before_s, 's')} at most"
        known += f"; {before}: an endless loop, or more than {times} times as slow"
    return f"{known}. --deadline {math.ceil(MORE_PATIENCE * proof.own_s)} waits longer"


def _before_s(result: ModelResult, old: Sequence[ModelResult]) -> float | None:
    if any(before.failed for before in old):
        return None
    _, phase = result.way
    loads = [before.load_ns for before in old if before.load_ns is not None]
    calls = [call.duration_ns for before in old for call in before.calls]
    known = {wire.LOAD: loads, wire.CALL: calls}.get(phase)
    return 1e-9 * max(known) if known else None


def _at_work(seen: Evidence) -> HangProof:
    """Return what threads did at a crash as a proof has it: it proves no hang, and is described in the same words."""
    return HangProof(kind=HangKind.OVERDUE, silent_s=0.0, window_s=0.0, threads=seen.at_work)


MEANING = "meaning"
"""The label of the line that says what stacks mean."""
# In these phases the operator is the whole answer: it is what cannot be captured.
AT_AN_OPERATOR = ("capture", "replay")


def meaning_of(finding: Finding) -> str:
    """Return what the stacks of a hang or crash are known to mean; no cause tells it of what fails in both releases."""
    return next((text for label, text in finding.story if label == MEANING), "")


def failure_finding(
    result: ModelResult,
    release: str,
    *,
    stage: str,
    exit_detail: str = "",
    evidence: str = "",
    seen: Evidence | None = None,
    old: Sequence[ModelResult] = (),
) -> Finding:
    """Return the finding for a model that did not complete; ``old``: how it did alone in the old release."""
    kind = OUTCOME_KIND[result.outcome]
    proof = seen.proof if seen is not None else None
    phase = result.phase_words or "start"
    why = error = subject = ""
    if result.outcome is Outcome.HANG:
        how = "" if proof is None or proof.kind is HangKind.OVERDUE else f" ({proof.kind.value})"
        what = f"hangs in {phase}{how}"
    elif result.outcome is Outcome.CRASH and result.phase == wire.EXIT:
        kind, what = "exit_crash", f"the process that exits, with all answers given, ends by {exit_detail}"
        why = ": join the threads that call before it exits, or leave by os._exit"
    elif result.outcome is Outcome.CRASH:
        what = f"crashes the process in {phase}" + (f" ({exit_detail})" if exit_detail else "")
    elif result.outcome is Outcome.NOT_RUN:
        what = f"does not get as far as {phase}" if result.failed_requests else "was not reached"
    elif result.failure is not None:
        what = _verb(result.failure)
        error = error_words(result.failure)
        why = f": {error}"
        operator = marked_expression(result.failure)
        if operator and result.failure.phase in AT_AN_OPERATOR:
            why, subject = f" at `{operator}`{why}", operator
    else:
        what = f"{result.outcome.value.replace('_', ' ')} in {phase} {exit_detail}".rstrip()
    killed = result.outcome is Outcome.OUT_OF_MEMORY and seen is not None and seen.signal == "SIGKILL"
    telling = seen if SEVERITY[kind] is Severity.FAIL else None
    return Finding(
        kind=kind,
        message=f"{what} in {release}, {stage}{why}",
        where=phase,
        evidence=evidence,
        story=hang_story(telling, _before_s(result, old)) if telling is not None else (),
        error=error,
        subject=subject,
        detail={DISTURBANCE: Disturbance.KILLED.value} if killed else {},
        standstill=standstill(telling) if telling is not None else None,
    )


def _verb(failure: Failure) -> str:
    if failure.phase == "load":
        return "does not load"
    if failure.call is not None:
        return f"raises at call {failure.call} of {failure.input_set}"
    return f"raises in {failure.phase}"
