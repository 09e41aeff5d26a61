"""What the threads of one process do, step by step: the language in which a scenario is told to a worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Step = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """One list of steps per thread; ``harness/worker/wire.py`` says what each step does.

    Attributes:
        threads: at least one; a single thread is the process's main thread.
        barriers: barrier name -> how many threads meet there.
        latches: latch name -> how many ``count_down`` open it.
        calls_through: ``"thread"``, or ``"inter_op"``: every call is launched into torch's inter-op pool.
    """

    threads: tuple[tuple[Step, ...], ...]
    barriers: Mapping[str, int] = field(default_factory=dict)
    latches: Mapping[str, int] = field(default_factory=dict)
    calls_through: str = "thread"


def copy_name(model: str, index: int) -> str:
    """Return the name under which copy ``index`` of a model acts: its own for 0, then ``MODEL#1``, ``MODEL#2``, ..."""
    return model if index == 0 else f"{model}#{index}"


def model_of(name: str) -> str:
    """Return the model of which ``name`` is a copy."""
    return name.partition("#")[0]
