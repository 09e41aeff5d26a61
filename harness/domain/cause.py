"""Causes: what several findings have in common, so that a reader is told once. Formed in ``harness.decision``."""

from dataclasses import dataclass

from harness.domain.outcome import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One thing that went wrong, or could not be decided, with every cell that it shows in.

    Attributes:
        id: stable over runs of one pair and short enough to be typed, e.g. ``"operator-aten::foo"``; what
            ``rerun RUN --cause ID`` and a waiver name.
        kind: from the open list ``KINDS`` in ``harness/decision/causes.py``, e.g. ``"operator"``, ``"slowdown"``.
        status: the worst of its cells' ones.
        title: what happened, in at most 80 characters, e.g. ``"aten::foo is unknown to torch 2.6.0"``.
        cells: ids, the clearest first (the largest excess over its limit, the surest verdict); ``models``: of these
            cells, each once, in the same order.
        excess: how far the worst of them is over its limit, as a factor of the limit: 2.0 is twice as much as is
            allowed; None where there is no limit to exceed: a hang, a missing operator.
        evidence: (label, text) lines of the clearest cell, in reading order.
        cure: what takes it away, with its cost, in one sentence; empty where nothing is known.
        commands: (label, command) pairs to repeat and to search it, whole, to be copied.
    """

    id: str
    kind: str
    status: Status
    title: str
    cells: tuple[str, ...]
    models: tuple[str, ...]
    excess: float | None = None
    evidence: tuple[tuple[str, str], ...] = ()
    cure: str = ""
    commands: tuple[tuple[str, str], ...] = ()
