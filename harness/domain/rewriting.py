"""Rewrites of an artifact: the same values by other operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.domain.divergence import Place, TracedNode

Edit: TypeAlias = tuple[str, Place]
"""A rule, and the address of the node that it is applied to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleWords:
    """What a rule says of itself: what it does, and what it needs to be right."""

    what: str
    needs: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A rule that does not fit a node, and why."""

    rule: str
    address: Place
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedNode:
    """A node that the new release refuses, in the graph of one method as the old release loads it.

    ``branch`` is how many blocks one has to leave to be out of the innermost branch around it; None: in no branch.
    """

    method: str
    address: Place
    operator: str
    schema: str
    source: str
    branch: int | None = None

    @property
    def branch_address(self) -> Place | None:
        """The innermost branch around it: the labels of the If and of its block; None where there is none."""
        return None if self.branch is None else self.address[: len(self.address) - 2 * self.branch + 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the old release's worker says of a rewrite.

    Attributes:
        fits: which rules fit which of the nodes that were asked for; ``refused``: which do not, with why.
        rules: all of them, in their words.
        found: nodes of the operators that were asked for: in the saved archive, in the loaded one where none was saved.
        emptied: methods of submodules that nobody calls any more and that raise now.
        done: the nodes that were rewritten, without what only a run can tell of them.
    """

    fits: tuple[Edit, ...] = ()
    refused: tuple[Refusal, ...] = ()
    rules: Mapping[str, RuleWords] = field(default_factory=dict)
    found: tuple[RefusedNode, ...] = ()
    emptied: tuple[str, ...] = ()
    done: tuple[TracedNode, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """One rewrite of one artifact, tried.

    Attributes:
        rule: its name, or names; ``what``: what it does, in words.
        needs: what must hold for it to be right with other requests than those that were tried; empty for nothing.
        nodes: that were rewritten.
        artifact: the patched archive, relative to the run; empty unless it cures.
        loads_in_old: whether the old release loads it and answers with the golden values.
        cures: whether the new one does too, in each of ``repeats`` runs.
        ratio: new (patched) over old (unpatched) of the steady call, None where not measured.
        note: why not, in words.
    """

    rule: str
    what: str
    needs: str = ""
    nodes: tuple[TracedNode, ...] = ()
    artifact: str = ""
    loads_in_old: bool = False
    cures: bool = False
    repeats: int = 0
    ratio: float | None = None
    note: str = ""
