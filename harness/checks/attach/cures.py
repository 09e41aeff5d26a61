"""What the stacks of a process are known to mean, what to set against it, and how the gate makes it again; pure."""

from dataclasses import dataclass, replace
from typing import Final

from harness.checks.hang.readings import WIDER_POOL, reading
from harness.checks.hang.stack_words import relevant_frames
from harness.core.attach import Attached, KnownHang, ThreadFacts, ThreadGroup
from harness.core.hang import HangKind, HangProof, ThreadActivity
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.paste_lines import lines_to_paste

_FUSER: Final = ("fusion depth 0", "profiling off")


@dataclass(frozen=True, slots=True)
class Cure:
    """``scenario``: of the gate, in which it happens; ``settings``: names of mitigations, the mildest first."""

    scenario: str
    settings: tuple[str, ...] = ()


CURES: Final[dict[str, Cure]] = {
    "allocator-in-a-signal-handler": Cure("while_serving"),
    "allocator-after-fork": Cure("prefork", ("load after the fork",)),
    "loader-lock": Cure("concurrent", ("serialized loading",)),
    "static-initializers": Cure("concurrent", ("serialized loading",)),
    "lazy-kernel-loading": Cure("concurrent", ("eager CUDA modules",)),
    "fuser-runs-away": Cure("alone", _FUSER),
    "fused-code-interpreted": Cure("alone", _FUSER),
    "compile-mutex": Cure("shared", ("profiling off",)),
    "inter-op-pool-exhausted": Cure("small_pools", (WIDER_POOL,)),
    "inter-op-pool-after-fork": Cure("prefork", ("load after the fork",)),
    "load-holds-gil": Cure("python_server", (WIDER_POOL,)),
    "import-lock": Cure("python_server"),
    "openmp-after-fork": Cure("prefork", ("one thread after the fork",)),
    "gil-inversion": Cure("python_server"),
    "first-calls-of-a-package": Cure("shared", ("serialized first calls",)),
}
"""By the name of a reading."""
SCENARIOS: Final = {
    "load": "concurrent",
    "compile": "shared",
    "warm-up": "concurrent",
    "capture": "cuda_graphs",
    "exit": "exit",
    "call": "while_serving",
    "import": "python_server",
}
"""Where nothing is known: by the phase in which the process is."""


def explained(process: Attached) -> Attached:
    """Return the process with what its stacks are known to mean, and the scenario of the gate for it."""
    stacks = [thread.stack for thread in process.threads if thread.stack is not None]
    known = reading(stacks, proof_of(process)) if stacks else None
    cure = CURES[known.name] if known is not None else None
    forked = "prefork" if process.parent else ""
    return replace(
        process,
        scenario=cure.scenario if cure is not None else forked or SCENARIOS.get(process.phase, ""),
        known=KnownHang(
            name=known.name,
            title=known.title,
            words=known.words,
            source=known.source,
            threads=known.threads,
            lines={name: lines_to_paste([MITIGATIONS[name]]) for name in cure.settings},
        )
        if known is not None and cure is not None
        else None,
    )


def proof_of(process: Attached) -> HangProof:
    """Return what was seen of the threads in the form in which signatures of known hangs read it."""
    return HangProof(
        kind=HangKind.BLOCKED if process.all_wait else HangKind.OVERDUE,
        silent_s=process.window_s,
        window_s=process.window_s,
        threads=tuple(_activity(thread, process.window_s) for thread in process.threads),
    )


def _activity(thread: ThreadFacts, window_s: float) -> ThreadActivity:
    return ThreadActivity(
        tid=thread.tid,
        name=thread.name,
        state=thread.state,
        on_cpu_s=thread.on_cpu * window_s,
        run_delay_s=thread.queued * window_s,
        waits_for=thread.waits_for,
    )


def groups_of(process: Attached) -> tuple[ThreadGroup, ...]:
    """Return the threads in groups that do the same, those that matter first."""
    first = (*process.culprits, *(process.known.threads if process.known is not None else ()))
    members: dict[object, list[ThreadFacts]] = {}
    for thread in sorted(process.threads, key=lambda thread: _rank(thread, first)):
        frames = relevant_frames(thread.stack) if thread.stack is not None else ()
        owner = thread.lock.owner if thread.lock is not None else 0
        busy = round(thread.on_cpu, 1) if thread.on_cpu >= 0.05 else 0
        waits = thread.stack_wait or thread.waits_for
        key = (waits, owner, bool(busy), thread.wanted >= 0.5, thread.phase, frames[:3])
        members.setdefault(key, []).append(thread)
    return tuple(
        ThreadGroup(
            tids=tuple(thread.tid for thread in threads),
            like=threads[0].tid,
            frames=relevant_frames(threads[0].stack) if threads[0].stack is not None else (),
        )
        for threads in members.values()
    )


def _rank(thread: ThreadFacts, first: tuple[int, ...]) -> tuple[float, ...]:
    return (
        first.index(thread.tid) if thread.tid in first else len(first),
        -bool(thread.lock),
        -round(thread.on_cpu, 1),
        -bool(thread.phase),
        thread.tid,
    )
