"""What a reader is told of a process that hung or crashed: threads, what they do, and what it means where known."""

from harness.domain.hang import Evidence, HangKind, HangProof
from harness.policy.readings import reading
from harness.policy.stack_words import interesting, threads_in_words, who

# Frames of one thread in the report; the files of the probe have all of them.
FRAMES_TOLD = 6
STACKS_TOLD = 3
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
    # A crash proves no hang; what its threads were at is told in the same words.
    scene = proof or HangProof(kind=HangKind.OVERDUE, silent_s=0.0, window_s=0.0, threads=seen.at_work)
    lines.extend(("threads", line) for line in threads_in_words(scene, seen.stacks))
    told = [folded for folded in interesting(seen.stacks, scene)[:STACKS_TOLD] if folded.lines]
    lines.extend(("frames", f"{item.title}: {' < '.join(item.lines[:FRAMES_TOLD])}") for item in told)
    lines.extend(("seen", remark) for remark in seen.remarks)
    return tuple(lines)


def _crash_words(seen: Evidence) -> str:
    stack = next((stack for stack in seen.stacks if stack.tid == seen.faulting_tid), None)
    if stack is None:
        return seen.signal
    scene = HangProof(kind=HangKind.OVERDUE, silent_s=0.0, window_s=0.0, threads=seen.at_work)
    return f"{seen.signal} in {who(stack, scene)}"
