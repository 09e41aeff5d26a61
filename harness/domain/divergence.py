"""Where two releases part within one call of a model, node by node."""

from dataclasses import dataclass
from typing import TypeAlias

Place: TypeAlias = tuple[int, ...]
"""Labels of nodes from the graph's own into nested blocks, with branch or turn between: node, turn, node, ..."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedNode:
    """One run of one node of the inlined graph.

    Attributes:
        place: where in the run; ``address``: where in the graph, the same in all turns of a loop.
        kind: ``"aten::mul"``; ``schema``: of the overload, empty for nodes without one.
        source: ``file:line`` of the code that was exported; ``code``: that line; as far as the archive tells.
        module: path of the submodule whose code it is, e.g. ``"encoder.layers.3"``; empty at the top, or if unknown.
        inputs: each input in words, e.g. ``"float32[2, 16]"``.
        error: what it raised; ``finished``: False for a node in which the process ended.
        unaligned: the other release's graph has no such node.
        unchecked: why it did not get the other release's inputs.
    """

    place: Place
    address: Place = ()
    kind: str
    schema: str = ""
    source: str = ""
    code: str = ""
    module: str = ""
    inputs: tuple[str, ...] = ()
    error: str = ""
    finished: bool = True
    unaligned: bool = False
    unchecked: str = ""

    @property
    def operator(self) -> str:
        """Its name with the overload: ``"aten::mul.Tensor"``."""
        return self.schema.partition("(")[0] or self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFault:
    """A node that does something else in the new release.

    Attributes:
        node: the first run of it that does.
        what: in words, the findings on its outputs first; ``kinds``: theirs, e.g. ``"values"``.
        places: every run of it that does, in the order of the run.
    """

    node: TracedNode
    what: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """What the traces of one call say.

    Attributes:
        input_set, call: which one.
        nodes: how many nodes the old release ran.
        shows: whether the call, made node by node, shows the symptom as well; else it is the executor's.
        culprits: nodes that differ although they got the old release's inputs, in the order of the run.
        rounding: nodes that differ, but no more than rounding explains, where there are no culprits.
        inherited: how many further nodes differ in the new release's own run.
        confirmed: whether the call agrees once what differs is taken from the old release; None: not asked.
        probes: how many were made of each side.
        notes: what the answer lacks, in words.
    """

    input_set: str
    call: int
    nodes: int = 0
    shows: bool = False
    culprits: tuple[NodeFault, ...] = ()
    rounding: tuple[NodeFault, ...] = ()
    inherited: int = 0
    confirmed: bool | None = None
    probes: tuple[int, int] = (1, 1)
    notes: tuple[str, ...] = ()
