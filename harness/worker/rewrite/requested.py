"""Leaves out of a method what its requests decide alike: branches, numbers of turns, arguments that are optional.

What is decided is seen by making every request node by node. What another request would decide otherwise is lost: who
asks for this has to verify it with every request, and names what is left out.
"""

import torch

from gate_worker.graph import interpreter, node_facts

# Written out, a loop is its body so many times: beyond that nobody could read, or convert, what comes of it.
MOST_NODES = 20000
GIVEN = "given"


class TooLarge(Exception):
    """Loops that are written out come to too many nodes."""


class Choices(interpreter.Observer):
    """Keeps which side of a branch was taken and how many turns a loop has made, by place, and branches by address."""

    def __init__(self):
        self.branches, self.turns, self.by_address = {}, {}, {}

    def chosen(self, place, step, choice):
        if step.kind == "prim::If":
            self.branches.setdefault(place, set()).add(choice)
            self.by_address.setdefault(step.address, set()).add(choice)
        elif not choice:
            self.turns.setdefault(place[:-1], set()).add(place[-1])
        return choice


def decide(module, graph, requests, fold):
    """Write the graph of ``forward`` out as every request goes through it; return what to save, and what is fixed."""
    requests = [interpreter.with_defaults(module, "forward", request) for request in requests]
    given = decide_optional(graph, requests)
    choices = Choices()
    for request in requests:
        interpreter.Interpreter(choices).call(module, "forward", request)
    writer = Writer(graph, choices)
    writer.rewrite()
    fold(graph)
    graph.lint()
    fixed = ["argument %d is %s" % (index, words) for index, words in given.items()]
    is_typed = GIVEN in given.values() and not next(graph.inputs()).uses()
    return (function_of(graph) if is_typed else module), fixed + writer.fixed


def function_of(graph):
    """Return a function of a graph that needs no module; a method would keep the types that its arguments had."""
    graph = graph.copy()
    graph.eraseInput(0)
    return torch._C._create_function_from_graph("forward", graph)


def decide_optional(graph, requests):
    """Give optional arguments that every request passes their type, and those that none passes the value None.

    Returns number of the argument -> what it is now.
    """
    decided = {}
    uses_module = bool(next(graph.inputs()).uses())
    for index, value in enumerate(list(graph.inputs())[1:]):
        if value.type().kind() != "OptionalType":
            continue
        given = {request[index] is not None for request in requests}
        if given == {True} and not uses_module:
            value.setType(value.type().getElementType())
            decided[index] = GIVEN
        elif given == {False}:
            with graph.insert_point_guard(next(iter(graph.nodes()))):
                value.replaceAllUsesWith(graph.insertConstant(None))
            decided[index] = "None"
    return decided


def waited(kind):
    """Return a type with what futures hold in the place of futures: what was forked is there at once."""
    if kind.kind() == "FutureType":
        return waited(kind.getElementType())
    if kind.kind() == "ListType" and kind.getElementType().kind() == "FutureType":
        return torch._C.ListType(waited(kind.getElementType()))
    return kind


class Writer:
    """Writes a graph anew before its end, in the order in which it is run; ``fixed`` is what was decided.

    What was forked stands where it was forked: a program that is exported has one thread.
    """

    def __init__(self, graph, choices):
        self._graph, self._choices = graph, choices
        self._end = graph.return_node()
        self._known = {}
        self._count = 0
        self.fixed = []

    def rewrite(self):
        before = list(self._graph.nodes())
        self._block(self._graph, ())
        for index, output in enumerate(list(self._graph.outputs())):
            self._end.replaceInput(index, self._value(output))
        for node in reversed(before):
            node.destroy()

    def _value(self, value):
        return self._known.get(value.debugName(), value)

    def _keep(self, olds, news):
        self._known.update(zip([value.debugName() for value in olds], news))

    def _block(self, block, place):
        for index, node in enumerate(list(block.nodes())):
            self._node(node, place + (index,))

    def _node(self, node, place):
        if node.kind() == "prim::If" and len(self._choices.branches.get(place, ())) == 1:
            (choice,) = self._choices.branches[place]
            side = list(node.blocks())[0 if choice else 1]
            self._block(side, place + (0 if choice else 1,))
            self._keep(node.outputs(), [self._value(value) for value in side.outputs()])
            note(self.fixed, node, side=choice)
        elif node.kind() == "prim::Loop" and len(self._choices.turns.get(place, ())) == 1:
            (turns,) = self._choices.turns[place]
            self._loop(node, place, turns)
            note(self.fixed, node, turns=turns)
        elif node.kind() == "prim::fork":
            self._keep(node.outputs(), self._called(node.g("Subgraph"), node, place))
        elif node.kind() == "aten::wait":
            self._keep(node.outputs(), [self._value(value) for value in node.inputs()])
        else:
            self._clone(node, place)

    def _called(self, graph, node, place):
        """Return what a forked graph answers, written out; its names are its own."""
        outer, self._known = self._known, {}
        given = [outer.get(value.debugName(), value) for value in node.inputs()]
        self._keep(graph.inputs(), given)
        self._block(graph, place)
        answers = [self._value(value) for value in graph.outputs()]
        self._known = outer
        return answers

    def _loop(self, node, place, turns):
        (body,) = node.blocks()
        counter, *inner = body.inputs()
        carried = [self._value(value) for value in list(node.inputs())[2:]]
        for turn in range(turns):
            with self._graph.insert_point_guard(self._end):
                self._keep([counter], [self._graph.insertConstant(turn)])
            self._keep(inner, carried)
            self._block(body, place + (turn,))
            carried = [self._value(value) for value in list(body.outputs())[1:]]
        self._keep(node.outputs(), carried)

    def _clone(self, node, place):
        self._count += 1
        if self._count > MOST_NODES:
            raise TooLarge("its loops come to more than %d nodes" % MOST_NODES)
        self._decide_within(node, place)
        clone = self._graph.createClone(node, self._value)
        clone.insertBefore(self._end)
        clone.copyMetadata(node)
        for value in clone.outputs():
            value.setType(waited(value.type()))
        self._keep(node.outputs(), clone.outputs())

    def _decide_within(self, node, place):
        """Within what stays, decide the branches that go one way in every turn and request."""
        address = tuple(place)
        for number, block in enumerate(node.blocks()):
            for index, inner in enumerate(list(block.nodes())):
                here = address + (number, index)
                self._decide_within(inner, here)
                sides = self._choices.by_address.get(here, ())
                if inner.kind() == "prim::If" and len(sides) == 1:
                    with self._graph.insert_point_guard(inner):
                        inner.replaceInput(0, self._graph.insertConstant(True in sides))
                    note(self.fixed, inner, side=True in sides)


def note(fixed, node, side=None, turns=None):
    """Add to ``fixed`` which side of a branch, or how many turns of a loop, are left of a node."""
    what = (
        "%d turns of the loop" % turns if side is None else "the %s side of the branch" % ("true" if side else "false")
    )
    add(fixed, what, node)


def add(fixed, what, node):
    text = "%s at %s" % (what, node_facts.source_of(node.sourceRange()) or "an unknown place")
    if text not in fixed:
        fixed.append(text)
