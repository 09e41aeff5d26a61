"""Runs a method of a loaded artifact node by node, without torch's executor, and shows every node to an observer.

The graph is the one that torch has inlined: every call of a method or function is in it. Nothing is fused or
optimised, so what shows here is an operator's doing; what only shows in a call is the executor's.

A place is the path of a node in the run: labels of nodes, and between them which branch (If) or which turn (Loop).
An address is the same without the turns: all turns of a loop are at 0.
"""

from gate_worker.graph import nodes


class Step:
    """One node of a graph, with what is asked of it again and again; ``facts`` is for observers."""

    __slots__ = ("address", "blocks", "facts", "inputs", "kind", "label", "node", "outputs")

    def __init__(self, node):
        self.node = node
        self.kind = node.kind()
        self.inputs = [value.debugName() for value in node.inputs()]
        self.outputs = [value.debugName() for value in node.outputs()]
        self.label = self.address = self.facts = None
        self.blocks = None


class Block:
    def __init__(self, block, address, observer):
        self.graph = block  # keeps its nodes alive
        self.inputs = [value.debugName() for value in block.inputs()]
        self.outputs = [value.debugName() for value in block.outputs()]
        self.steps = [Step(node) for node in block.nodes()]
        for step, label in zip(self.steps, observer.labels(address, self.steps)):
            step.label = label
            step.address = address + (label,)


class Observer:
    """What is told of every node."""

    def labels(self, address, steps):
        """Return the label of each node of a block: its number, or that of its like in another release's graph."""
        return range(len(steps))

    def before(self, place, step, inputs):
        """Return the inputs that the node is to have; the same list, or others."""
        return inputs

    def instead(self, place, step):
        """Return the outputs of a node that is not to be run; None: run it."""

    def after(self, place, step, inputs, outputs):
        """Return the outputs that the nodes after it are to see."""
        return outputs

    def failed(self, place, step, inputs, error):
        """Return the outputs with which to go on after a node that has raised; None: do not go on."""

    def chosen(self, place, step, choice):
        """Return which branch is taken (If), or whether there is another turn (Loop)."""
        return choice


def with_defaults(module, method, arguments):
    left_out = getattr(module, method).schema.arguments[1 + len(arguments) :]
    return list(arguments) + [argument.default_value for argument in left_out]


class Interpreter:
    """Runs graphs; attributes that are lists or dicts are kept, because torch hands out copies of them."""

    def __init__(self, observer):
        self._observer = observer
        self._attributes = {}
        self._functions = {}

    def call(self, module, method, arguments):
        given = with_defaults(module, method, arguments)
        return self._function(self._method(module, method, ()), [module] + given, ())

    def _method(self, owner, name, address):
        key = (id(owner), name, address)
        if key not in self._functions:
            graph = getattr(owner, name).inlined_graph
            self._functions[key] = (owner, Block(graph, address, self._observer))
        return self._functions[key][1]

    def _function(self, block, arguments, place):
        values = dict(zip(block.inputs, arguments))
        self._block(block, values, place)
        outputs = [values[name] for name in block.outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _block(self, block, values, place):
        for step in block.steps:
            self._step(step, values, place + (step.label,))

    def _step(self, step, values, place):
        inputs = [values.get(name) for name in step.inputs]
        inputs = self._observer.before(place, step, inputs)
        known = self._observer.instead(place, step)
        if known is not None:
            values.update(zip(step.outputs, known))
            return
        try:
            outputs = self._run(step, inputs, values, place)
        except Exception as error:
            outputs = self._observer.failed(place, step, inputs, error)
            if outputs is None:
                raise
        else:
            outputs = self._observer.after(place, step, inputs, outputs)
        values.update(zip(step.outputs, outputs))

    def _run(self, step, inputs, values, place):
        kind, node = step.kind, step.node
        if kind == "prim::If":
            return self._if(step, inputs, values, place)
        if kind == "prim::Loop":
            return self._loop(step, inputs, values, place)
        if kind == "prim::GetAttr":
            return [self._attribute(inputs[0], node.s("name"))]
        if kind == "prim::SetAttr":
            self._set_attribute(inputs[0], node.s("name"), inputs[1])
            return []
        if kind == "prim::CallMethod":  # of an interface: which method it is shows only now
            called = self._method(inputs[0], node.s("name"), step.address)
            return nodes.outputs_of(node, self._function(called, inputs, place))
        if kind == "prim::fork":
            return [self._function(self._blocks(step)[0], inputs, place)]
        if kind == "prim::CallFunction":  # what is forked is not inlined
            given = list(dict(zip(step.inputs[1:], inputs[1:])).values())
            return [self._function(self._blocks(step)[0], given, place)]
        if kind == "aten::wait":
            return [inputs[0]]
        return self._node(step, inputs, place)

    def _node(self, step, inputs, place):
        """Return the outputs of a node that neither chooses, calls, nor has to do with attributes."""
        del place
        return nodes.run(step.node, inputs)

    def _blocks(self, step):
        """Return the blocks of a node; a function that is forked or called is one too."""
        if step.blocks is None:
            if step.kind == "prim::fork":
                blocks = [(step.node.g("Subgraph"), step.address)]
            elif step.kind == "prim::CallFunction":
                blocks = [(nodes.function_graph(step.node), step.address)]
            else:
                blocks = [(block, step.address + (index,)) for index, block in enumerate(step.node.blocks())]
            step.blocks = [Block(block, address, self._observer) for block, address in blocks]
        return step.blocks

    def _if(self, step, inputs, values, place):
        branch = 0 if self._observer.chosen(place, step, bool(inputs[0])) else 1
        block = self._blocks(step)[branch]
        self._block(block, values, place + (branch,))
        return [values.get(name) for name in block.outputs]

    def _loop(self, step, inputs, values, place):
        limit, go_on, carried = inputs[0], inputs[1], list(inputs[2:])
        (body,) = self._blocks(step)
        turn = 0
        while self._observer.chosen(place + (turn,), step, bool(go_on) and turn < limit):
            values.update(zip(body.inputs, [turn] + carried))
            self._block(body, values, place + (turn,))
            go_on, *carried = [values.get(name) for name in body.outputs]
            turn += 1
        return carried

    def _attribute(self, owner, name):
        if isinstance(owner, nodes.Instance):
            return getattr(owner, name)
        key = (id(owner), name)
        if key not in self._attributes:
            value = getattr(owner, name)
            self._attributes[key] = (owner, value)  # the owner too: its number must stay its own
        return self._attributes[key][1]

    def _set_attribute(self, owner, name, value):
        setattr(owner, name, value)
        if not isinstance(owner, nodes.Instance):
            self._attributes[id(owner), name] = (owner, value)
