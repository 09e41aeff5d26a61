"""All threads of a process that hangs, with the queries that signatures of known hangs need. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.domain.hang import Frame, HangProof, ThreadStack
from harness.hang.stack_words import PYTHON, in_words, short, who

__all__ = ["LOCKS", "PYTHON", "HungProcess", "Reading", "Signature", "has", "has_python", "is_system"]
LOCKS: Final = ("a mutex", "a read-write lock", "a static variable that another thread initializes")
_RUNNING_SHARE: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a hang is, in plain language; ``source`` is the URL of an upstream issue or document that explains it."""

    words: str
    source: str


@dataclass(frozen=True, slots=True)
class HungProcess:
    """All threads of the process, and what is proven about them."""

    stacks: Sequence[ThreadStack]
    proof: HangProof | None

    def named(self, stacks: Iterable[ThreadStack]) -> str:
        """Return ``"thread 1 and thread 2"``."""
        return in_words([who(stack, self.proof) for stack in stacks])

    def do(self, stacks: Sequence[ThreadStack], verb: str) -> str:
        """Return ``"thread 1 waits"`` or ``"thread 1 and thread 2 wait"``."""
        return f"{self.named(stacks)} {verb}{'s' if len(stacks) == 1 else ''}"

    def runs(self, stack: ThreadStack) -> bool:
        """Return whether the thread was on a CPU for a part of the window that counts, or its stack moved."""
        if stack.moved:
            return True
        if self.proof is None:
            return False
        enough = _RUNNING_SHARE * self.proof.window_s
        return any(thread.tid == stack.tid and thread.on_cpu_s > enough for thread in self.proof.threads)


Signature = Callable[[HungProcess], Reading | None]


def has(stack: ThreadStack, pattern: str, *, first: int | None = None) -> bool:
    """Return whether one of the ``first`` innermost frames is a function whose short name the pattern finds."""
    compiled = re.compile(pattern)
    return any(compiled.search(short(frame.function)) for frame in stack.frames[:first])


def has_python(stack: ThreadStack) -> bool:
    """Return whether Python code is on the stack."""
    return any(frame.language == PYTHON or "PyEval_EvalFrame" in frame.function for frame in stack.frames)


def is_system(frame: Frame) -> bool:
    """Return whether the frame is one of the C library."""
    return bool(re.search(r"^lib(c|pthread)[.-]|^\./nptl|sysdeps|^\./elf", frame.file))
