"""Verb ``extract``: some nodes of a method become an archive of their own, their request the values that went in.

What the removed nodes produced, and what the module holds, becomes an input; what the kept ones produce and nobody
among them takes, or somebody else takes too, becomes an output, so that no node is optimised away."""

import functools
import os

import torch

from gate_worker import wire
from gate_worker.graph import node_facts, operators, trace_files
from gate_worker.graph.nodes import function_graph, single_output
from gate_worker.values import trees


def lift(node, copy, input_of):
    """Give the copy of a fork its own function, in which no module is an input any more where that can be.

    ``node`` and ``copy``: the fork, and its copy in the new graph; ``input_of``: (path of an attribute, its type) ->
    the value of the new graph that stands for it.
    """
    function = node.g("Subgraph").copy()
    torch._C._jit_pass_inline(function)
    roots = {}
    for given, own in zip(node.inputs(), function.inputs()):
        if not is_passed(given.type()):
            roots[own.debugName()] = node_facts.root_and_path(given)[1]
    if not roots:
        return
    fetched = list(fetches(function, roots))
    for inner, path in fetched:
        if is_passed(inner.output().type()):
            value = function.addInput()
            value.setType(inner.output().type())
            inner.output().replaceAllUsesWith(value)
            copy.addInput(input_of(path, inner.output().type()))
    for inner, _ in reversed(fetched):
        if not inner.output().uses():
            inner.destroy()
    for index, own in reversed(list(enumerate(function.inputs()))):
        if own.debugName() in roots and not own.uses():
            function.eraseInput(index)
            copy.removeInput(index)
    copy.g_("Subgraph", function)


def fetches(block, roots):
    """Yield (node, path from the module) of all that a block, and those in it, fetch of the inputs ``roots``."""
    for node in block.nodes():
        if node.kind() == "prim::GetAttr":
            root, path = node_facts.root_and_path(node.output())
            if root.debugName() in roots:
                yield node, roots[root.debugName()] + path
        for inner in node.blocks():
            yield from fetches(inner, roots)


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
        if hasattr(value, "path"):
            return self._attribute(value.path)
        reader, tree = self._known.get(value.debugName(), (None, None))
        known = tree is not None and not trace_files.is_live(tree)
        if known and trace_files.is_kept(tree):
            return reader.value(tree)
        path = node_facts.attribute_path(value)
        if path:
            return self._attribute(path)
        what = "is too large to be kept in a trace" if known else "has no value on record"
        raise NotKept("%s, which the nodes take, %s" % (value.debugName(), what))

    def _attribute(self, path):
        return functools.reduce(getattr, path, self._module)

    def _read(self, node, place):
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


ARCHIVE = "extracted.pt"
# Values of these have no place in an archive's signature, or nobody could make one of them again.
NOT_PASSED = ("AnyType", "CapsuleType", "ClassType", "FutureType", "GeneratorType", "InterfaceType", "RRefType")


class CannotExtract(Exception):
    """These nodes cannot stand alone."""


def extract(request, run_dir, log):
    order = request["extract"]
    (run,) = request["runs"]
    artifact, name = run["artifact"], run["artifact"]["model"]
    with log.phase(wire.LOAD, model=name):
        module = torch.jit.load(artifact["path"], map_location=request["device"]).eval()
    with log.phase(wire.INPUTS, model=name):
        trace = None
        if order["beside"] is not None:
            trace = trace_files.TraceReader(os.path.join(order["beside"], wire.TRACE), request["device"])
    with log.phase(wire.CONVERT, model=name):
        graph = module._c._get_method(method_of(artifact, order["input_set"])).inlined_graph
        part = Part(graph, tuple(order["place"]), order["keep"], trace)
        function = torch._C._create_function_from_graph("forward", part.extracted)
    folder = os.path.join(run_dir, "inputs")
    with log.phase(wire.INPUTS, model=name):
        writer = trees.TensorWriter(folder)
        if trace is not None:
            known = Values(trace, part, module)
            known.add_request(artifact["inputs_dir"], order["input_set"], request["device"])
            given = tuple([known.value(value) for value in part.inputs])
            writer.write(given, model=name, set=order["input_set"], method="forward")
    with log.phase(wire.SAVE, model=name):
        path = os.path.join(run_dir, ARCHIVE)
        function.save(path)
        contained = operators.names(torch.jit.load(path, map_location=request["device"]))
    log.mark("extracted", {"operators": contained, "inputs": len(part.inputs), "outputs": part.answers})
    log.emit("ready", model=name, thread=0)


def method_of(artifact, input_set):
    """Return the method that an input set is for; of an artifact without requests its ``forward``."""
    methods = {entry["name"]: entry["method"] for entry in artifact["input_sets"]}
    if methods and input_set not in methods:
        raise CannotExtract("it has no input set %s" % input_set)
    return methods.get(input_set, "forward")


class Attribute:
    def __init__(self, path):
        self.path = path


class Part:
    """Nodes of one block, cloned into a graph of their own.

    Attributes:
        levels: (place, block) of the blocks that are around the nodes in one graph, the innermost last.
        kept: (index, node) of those that were cloned.
        extracted: the new graph; ``inputs``: what it takes of the old one, in order: values or ``Attribute``s.
        answers: how many values it answers with.
    """

    def __init__(self, graph, place, keep, trace):
        self._graph = graph  # keeps the nodes alive
        self._place = place
        self._trace = trace
        self.levels = levels_of(graph, place)
        nodes = list(self.levels[-1][1].nodes())
        if not keep or keep[-1] >= len(nodes):
            raise CannotExtract("the block has %d nodes, none of them is number %s" % (len(nodes), keep[-1:]))
        self.kept = [(index, nodes[index]) for index in keep if not is_carried(nodes[index])]
        self.inputs = []
        self.extracted = torch._C.Graph()
        self._copies = {}
        self._objects = []
        for _, node in self.kept:
            self._clone(node)
        for placeholder, text in self._objects:
            if placeholder.uses():
                raise CannotExtract("%s, which has no value outside of the module" % text)
            placeholder.node().destroy()
        self.answers = self._answer(nodes)

    def _clone(self, node):
        if node.kind() == "aten::wait":
            (waited,) = node.inputs()
            if waited.debugName() not in self._copies and is_passed(node.output().type()):
                # What a removed fork computes is there already.
                self._copies[node.output().debugName()] = self._input(waited, node.output().type())
                return
        copy = self.extracted.insertNode(self.extracted.createClone(node, self._copy_of))
        for value, copied in zip(node.outputs(), copy.outputs()):
            self._copies[value.debugName()] = copied
        gone = []
        if node.kind() == "prim::fork":
            lift(node, copy, self._attribute)
        self._lift(node, copy, gone)
        for inner in reversed(gone):
            if any(value.uses() for value in inner.outputs()):
                raise CannotExtract("%s takes an object of the module, which has no value outside of it" % node.kind())
            inner.destroy()

    def _copy_of(self, value):
        """Return what stands for a value in the new graph: a kept node's output, a constant, or an input."""
        name = value.debugName()
        if name not in self._copies:
            self._copies[name] = self._made(value)
        return self._copies[name]

    def _made(self, value):
        if value.node().kind() == "prim::Constant":
            return self.extracted.insertNode(self.extracted.createClone(value.node(), self._copy_of)).output()
        if not is_passed(value.type()):
            nothing = none_of(self.extracted)
            self._objects.append((nothing, "a node takes %s of %s" % (value.debugName(), value.type())))
            return nothing
        return self._input(value, value.type())

    def _attribute(self, path, kind):
        """Return the input that stands for what only a forked function fetches of the module."""
        if path not in self._copies:
            self._copies[path] = self._input(Attribute(path), kind)
        return self._copies[path]

    def _input(self, value, kind):
        new = self.extracted.addInput()
        new.setType(kind)
        self.inputs.append(value)
        return new

    def _lift(self, node, copy, gone):
        """Take what blocks within a kept node fetch of the module out of them, as inputs of the whole."""
        for block, copied in zip(node.blocks(), copy.blocks()):
            for inner, like in zip(list(block.nodes()), list(copied.nodes())):
                if inner.kind() == "prim::fork":
                    lift(inner, like, self._attribute)
                if not is_of_module(inner):
                    self._lift(inner, like, gone)
                    continue
                gone.append(like)
                if inner.kind() == "prim::GetAttr" and is_passed(inner.output().type()):
                    like.output().replaceAllUsesWith(self._copy_of(inner.output()))

    def _answer(self, nodes):
        kept = {index for index, _ in self.kept}
        within, elsewhere = set(), {value.debugName() for value in self.levels[-1][1].outputs()}
        for index, node in enumerate(nodes):
            (within if index in kept else elsewhere).update(names_read(node))
        made = [value for index, node in self.kept for value in self._defined(index, node)]
        left = [value for value in made if value.debugName() in elsewhere or value.debugName() not in within]
        left = [answer for answer in map(self._answered, left) if answer is not None]
        answer = single_output(self.extracted, left) if left else none_of(self.extracted)
        self.extracted.registerOutput(answer)
        return len(left)

    def _defined(self, index, node):
        """Return the outputs of a node; without tensors that it leaves undefined, of which nothing can be told."""
        recorded = self._trace.ended.get(self._place + (index,)) if self._trace is not None else None
        values = list(node.outputs())
        if recorded is None or len(recorded) != len(values):
            return values
        return [value for tree, value in zip(recorded, values) if not is_undefined(value.type(), tree)]

    def _answered(self, value):
        """Return what the new graph answers for a value of the old one; None for what cannot be passed."""
        copied, kind = self._copies[value.debugName()], value.type()
        if kind.kind() == "FutureType" and is_passed(kind.getElementType()):
            waited = self.extracted.insertNode(self.extracted.create("aten::wait", [copied], 1)).output()
            waited.setType(kind.getElementType())
            return waited
        return copied if is_passed(kind) else None


def levels_of(graph, place):
    """Return (place, block) of the blocks on the way to the run of one, from the graph's own; a fork begins anew."""
    levels, here, rest = [((), graph)], (), list(place)
    while rest:
        nodes = list(levels[-1][1].nodes())
        if rest[0] >= len(nodes):
            raise CannotExtract("there is no node %d at %s" % (rest[0], here))
        node = nodes[rest[0]]
        here += (rest.pop(0),)
        if node.kind() in ("prim::fork", "prim::CallFunction"):
            levels = [(here, node.g("Subgraph") if node.kind() == "prim::fork" else function_graph(node))]
            continue
        blocks = list(node.blocks())
        which = rest.pop(0) if blocks and rest else None
        if which is None:
            raise CannotExtract("%s at %s has no blocks" % (node.kind(), here))
        here += (which,)
        levels.append((here, blocks[which if node.kind() == "prim::If" else 0]))
    return levels


def is_carried(node):
    """Whether a node comes along where it is needed, or stays with the module: never kept for itself."""
    return node.kind() == "prim::Constant" or is_of_module(node)


def is_of_module(node):
    if node.kind() not in ("prim::GetAttr", "prim::SetAttr"):
        return False
    owner = next(iter(node.inputs()))
    return owner.node().kind() == "prim::Param" or bool(node_facts.attribute_path(owner))


def names_read(node):
    yield from (value.debugName() for value in node.inputs())
    for block in node.blocks():
        yield from (value.debugName() for value in block.outputs())
        for inner in block.nodes():
            yield from names_read(inner)


def is_passed(kind):
    """Whether values of a type can go into an archive's method and come out of it."""
    name = kind.kind()
    if name in NOT_PASSED:
        return False
    if name in ("ListType", "OptionalType"):
        return is_passed(kind.getElementType())
    if name == "DictType":
        return is_passed(kind.getKeyType()) and is_passed(kind.getValueType())
    return all(is_passed(item) for item in kind.elements()) if name == "TupleType" else True


def is_undefined(kind, tree):
    """Whether a value is, or holds, a tensor that its operator has left undefined: Python is given None for it."""
    if kind.kind() == "OptionalType":
        kind = kind.getElementType()
    if kind.kind() == "TensorType":
        return tree[0] == "none"
    if kind.kind() == "TupleType" and tree[0] == "tuple":
        return any(is_undefined(item, part) for item, part in zip(kind.elements(), tree[1]))
    return False


def none_of(graph):
    nothing = graph.insertNode(graph.create("prim::Constant", 1)).output()
    nothing.setType(torch._C.NoneType.get())
    return nothing
