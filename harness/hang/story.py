"""What the report says of a process that hung or crashed: threads, what they do, and what it means where known."""

from harness.domain.findings import OUTCOME_KIND, SEVERITY, Severity
from harness.domain.hang import Evidence, HangKind, HangProof
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure, ModelResult
from harness.domain.text import error_line, marked_expression
from harness.domain.verdict import Finding
from harness.hang.readings import reading
from harness.hang.stack_words import interesting, threads_in_words, who
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


def hang_story(seen: Evidence) -> tuple[tuple[str, str], ...]:
    """Return labelled lines for the red cell: meaning, proof, threads, frames, and what could not be seen."""
    proof = seen.proof
    known = reading(seen.stacks, proof)
    lines: list[tuple[str, str]] = []
    if known is not None:
        lines.append(("meaning", f"{known.words} ({known.source})"))
    if proof is not None:
        words = KIND_WORDS[proof.kind].format(window=proof.window_s, silent=proof.silent_s)
        lines.append(("proof", f"{proof.kind.value}: {words}" + (f"; {proof.note}" if proof.note else "")))
    if seen.signal:
        lines.append(("proof", _crash_words(seen)))
    # A crash proves no hang, but what its threads were doing is described in the same words.
    process = proof or HangProof(kind=HangKind.OVERDUE, silent_s=0.0, window_s=0.0, threads=seen.at_work)
    lines.extend(("threads", line) for line in threads_in_words(process, seen.stacks))
    first = known.threads if known is not None else ()
    shown = [folded for folded in interesting(seen.stacks, process, first)[:MOST_STACKS] if folded.lines]
    lines.extend(("frames", f"{item.title}: {' < '.join(item.lines[:MOST_FRAMES])}") for item in shown)
    lines.extend(("seen", remark) for remark in seen.remarks)
    return tuple(lines)


def _crash_words(seen: Evidence) -> str:
    stack = next((stack for stack in seen.stacks if stack.tid == seen.faulting_tid), None)
    if stack is None:
        return seen.signal
    process = HangProof(kind=HangKind.OVERDUE, silent_s=0.0, window_s=0.0, threads=seen.at_work)
    return f"{seen.signal} in {who(stack, process)}"


# In these phases the operator is the whole answer: it is what cannot be captured.
AT_AN_OPERATOR = ("capture", "replay")


def failure_finding(
    result: ModelResult,
    release: str,
    *,
    stage: str,
    exit_detail: str = "",
    evidence: str = "",
    seen: Evidence | None = None,
) -> Finding:
    """Return the finding for a model that did not complete, in words a reader can act on.

    Args:
        release: name of the environment it happened in.
        stage: ``"alone"`` or ``"in concurrent init"``.
        evidence: path in the run's folder; ``seen``: what was found in the process before it was ended.
    """
    kind = OUTCOME_KIND[result.outcome]
    proof = seen.proof if seen is not None else None
    phase = result.phase or "start"
    why = ""
    if result.outcome is Outcome.HANG:
        how = "" if proof is None or proof.kind is HangKind.OVERDUE else f" ({proof.kind.value})"
        what = f"hangs in {phase}{how}"
    elif result.outcome is Outcome.CRASH and result.phase == wire.EXIT:
        kind, what = "exit_crash", f"the process that exits, with all answers given, ends by {exit_detail}"
        why = ": join the threads that call before it exits, or leave by os._exit"
    elif result.outcome is Outcome.CRASH:
        what = f"crashes the process in {phase} ({exit_detail or 'killed'})"
    elif result.outcome is Outcome.NOT_RUN:
        what = "was not reached"
    elif result.failure is not None:
        what = _verb(result.failure)
        why = f": {result.failure.type}: {error_line(result.failure)}"
        operator = marked_expression(result.failure)
        if operator and result.failure.phase in AT_AN_OPERATOR:
            why = f" at `{operator}`{why}"
    else:
        what = f"{result.outcome.value.replace('_', ' ')} in {phase} {exit_detail}".rstrip()
    return Finding(
        kind=kind,
        message=f"{what} in {release}, {stage}{why}",
        where=phase,
        evidence=evidence,
        story=hang_story(seen) if seen is not None and SEVERITY[kind] is Severity.FAIL else (),
    )


def _verb(failure: Failure) -> str:
    if failure.phase == "load":
        return "does not load"
    if failure.call is not None:
        return f"raises at call {failure.call} of {failure.input_set}"
    return f"raises in {failure.phase}"
