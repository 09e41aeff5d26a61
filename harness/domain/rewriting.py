"""Rewrites of an artifact: the same values by other operators."""

from dataclasses import dataclass

from harness.domain.divergence import TracedNode


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """One rewrite of one artifact, tried.

    Attributes:
        rule: its name; ``what``: what it does, in words.
        nodes: that were rewritten.
        artifact: the patched archive, relative to the run; empty where none could be made.
        loads_in_old: whether the old release loads it and answers with the golden values.
        cures: whether the new one does too.
        ratio: new (patched) over old (unpatched) of the steady call, None where not measured.
        note: why not, in words.
    """

    rule: str
    what: str
    nodes: tuple[TracedNode, ...] = ()
    artifact: str = ""
    loads_in_old: bool = False
    cures: bool = False
    ratio: float | None = None
    note: str = ""
