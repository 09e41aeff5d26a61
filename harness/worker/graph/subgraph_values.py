"""The values that went into a part of a program: as a trace has kept them, or as the module holds them."""

from gate_worker.graph import node_facts, trace_files
from gate_worker.values import trees


class NotKept(Exception):
    """A value that the part takes is not on record."""


class Values:
    """Looks values up by their names in the graph, for one run of the blocks around the part.

    A value that is changed in place counts as the first kept node that takes it has read it.
    """

    def __init__(self, trace, part, module):
        self._module = module
        self._part = part
        self._reader = trace
        self._known = {}  # name -> (what reads it, tree)
        for index, node in part.kept:
            self._read(node, part.levels[-1][0] + (index,))
        for place, block in reversed(part.levels):
            for index, node in enumerate(block.nodes()):
                self._made(node, place + (index,))
        for place, block in reversed(part.levels):
            for index, node in enumerate(block.nodes()):
                self._taken(node, place + (index,))

    def value(self, value):
        """Return what a value of the graph, or an attribute, was."""
        if hasattr(value, "path"):
            return self._held(value.path)
        reader, tree = self._known.get(value.debugName(), (None, None))
        known = tree is not None and not trace_files.is_live(tree)
        if known and trace_files.is_kept(tree):
            return reader.value(tree)
        path = node_facts.attribute_path(value)
        if path:
            return self._held(path)
        what = "is too large to be kept in a trace" if known else "has no value on record"
        raise NotKept("%s, which the nodes take, %s" % (value.debugName(), what))

    def _held(self, path):
        held = self._module
        for name in path:
            held = getattr(held, name)
        return held

    def _read(self, node, place):
        """Keep what a node, and those within it, have read; those of a turn or branch that was made."""
        self._taken(node, place)
        kind = node.kind()
        blocks = list(node.blocks())
        if kind == "prim::If" and place in self._reader.choices:
            branch = 0 if self._reader.choices[place] else 1
            self._read_block(blocks[branch], place + (branch,))
        elif kind == "prim::Loop":
            turn = 0
            while self._reader.choices.get(place + (turn,)):
                self._read_block(blocks[0], place + (turn,))
                turn += 1

    def _read_block(self, block, place):
        for index, node in enumerate(block.nodes()):
            if node.kind() == "prim::GetAttr":
                self._made(node, place + (index,))
            self._read(node, place + (index,))

    def _taken(self, node, place):
        begun = self._reader.begun.get(place)
        if begun is not None:
            for value, tree in zip(node.inputs(), begun["tree"][1]):
                self._known.setdefault(value.debugName(), (self._reader, tree))

    def _made(self, node, place):
        for value, tree in zip(node.outputs(), self._reader.ended.get(place, ())):
            self._known.setdefault(value.debugName(), (self._reader, tree))

    def add_request(self, folder, input_set, device):
        """Add the recorded request, for what only a branch that was not taken would have read."""
        place, graph = self._part.levels[0]
        if place:
            return  # of a fork: it has inputs of its own
        (line,) = [line for line in trees.TensorReader.index(folder) if line["set"] == input_set]
        recorded = trees.TensorReader(folder, device)
        for value, tree in zip(list(graph.inputs())[1:], line["tree"][1]):
            self._known.setdefault(value.debugName(), (recorded, tree))
