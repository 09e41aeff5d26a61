"""Cuts into a graph: finds nodes by their address, and puts a TorchScript function in the place of a node."""

import math  # noqa: F401  a source is compiled with the names of this module, and may use it

import torch


class Refused(Exception):
    """A rule does not fit a node; the text says why."""


class Site:
    """A node and the graph that owns it: that of a forked function, where it is in one."""

    def __init__(self, graph, node):
        self.graph = graph
        self.node = node

    @property
    def operator(self):
        return self.node.schema().partition("(")[0] if has_schema(self.node) else self.node.kind()

    def argument(self, name):
        """Return the value of an argument; None where the operator of this release has no such argument."""
        names = [argument.name for argument in schema_of(self.node).arguments]
        return list(self.node.inputs())[names.index(name)] if name in names else None

    def constant(self, name):
        """Return what an argument is in every call; ``Refused`` where that is not known."""
        value = self.argument(name)
        if value is None or not is_constant(value):
            raise Refused("its %s is not the same in every call" % name)
        return value.toIValue()


def inlined(module, method):
    """Return the graph of a method, with every call in it, as the module will be saved with it."""
    graph = module._c._get_method(method).graph
    torch._C._jit_pass_inline(graph)
    return graph


def has_schema(node):
    schema = node.schema()
    return "(" in schema and "(...)" not in schema


def schema_of(node):
    return torch._C.parse_schema(node.schema())


def is_constant(value):
    return value.node().kind() == "prim::Constant"


def site_at(graph, address):
    """Return the site of a node: labels of nodes, between them of blocks; behind a fork come its function's nodes."""
    labels, nodes = list(address), list(graph.nodes())
    while True:
        label = labels.pop(0)
        if not 0 <= label < len(nodes):
            raise Refused("the graph has no node %s" % (tuple(address),))
        node = nodes[label]
        if not labels:
            return Site(graph, node)
        if node.kind() == "prim::fork":
            graph = node.g("Subgraph")
            nodes = list(graph.nodes())
            continue
        blocks, label = list(node.blocks()), labels.pop(0)
        if not label < len(blocks):
            raise Refused("what %s calls is known only when it runs" % node.kind())
        nodes = list(blocks[label].nodes())


def sites(graph):
    """Yield (address, site) of every node of a graph, those in blocks and in forked functions too."""
    return _sites(graph, graph.nodes(), ())


def _sites(graph, nodes, address):
    for label, node in enumerate(nodes):
        here = address + (label,)
        yield here, Site(graph, node)
        if node.kind() == "prim::fork":
            inner = node.g("Subgraph")
            yield from _sites(inner, inner.nodes(), here)
        for index, block in enumerate(node.blocks()):
            yield from _sites(graph, block.nodes(), here + (index,))


def write_out(site, source):
    """Put the function ``f`` of ``source`` in the place of a node; its parameters are arguments of the operator.

    A parameter that the operator of this release has not stands at its default. An argument that the function has not
    must be None or False.
    """
    function = compiled(source)
    parameters = function.schema.arguments
    names = [argument.name for argument in schema_of(site.node).arguments]
    given = dict(zip(names, site.node.inputs()))
    for name in [name for name in names if name not in [parameter.name for parameter in parameters]]:
        if not is_constant(given[name]) or given[name].toIValue() not in (None, False):
            raise Refused("it has the argument %s, of which the rule knows nothing" % name)
    put_in_place(site, function, [given.get(parameter.name) for parameter in parameters])


def put_in_place(site, function, values):
    """Put the body of a function in the place of a node, with ``values`` for its parameters; None: their default."""
    body = function.graph.copy()
    specialise(body, values, function.schema.arguments)
    known = dict(zip([value.debugName() for value in body.inputs()], [value for value in values if value is not None]))
    for inner in body.nodes():
        clone = site.graph.createClone(inner, lambda value: known[value.debugName()])
        clone.insertBefore(site.node)
        clone.copyMetadata(site.node)
        known.update(zip([value.debugName() for value in inner.outputs()], clone.outputs()))
    (answer,) = [known[value.debugName()] for value in body.outputs()]
    replace(site, answer)


def replace(site, answer):
    """Use ``answer`` for the output of a node, or its items where it has several, and take the node away."""
    outputs = list(site.node.outputs())
    answers = [answer]
    if len(outputs) != 1:
        parts = site.graph.create("prim::TupleUnpack", [answer], len(outputs))
        parts.insertBefore(site.node)
        answers = list(parts.outputs())
        for old, new in zip(outputs, answers):
            new.setType(old.type())
    for old, new in zip(outputs, answers):
        old.replaceAllUsesWith(new)
    site.node.destroy()


def compiled(source):
    """Return the function ``f`` of a text, as the release that rewrites compiles it."""
    return torch.jit.CompilationUnit(source).f


def specialise(body, values, parameters):
    """Fold into the graph of a function what is known where it goes: constants, defaults and types."""
    index = 0
    for value, parameter in zip(values, parameters):
        mine = list(body.inputs())[index]
        if value is None:
            with body.insert_point_guard(next(iter(body.nodes()))):
                mine.replaceAllUsesWith(body.insertConstant(parameter.default_value))
            body.eraseInput(index)
            continue
        index += 1
        mine.setType(value.type())
        if is_constant(value) and not isinstance(value.toIValue(), torch.Tensor):
            mine.replaceAllUsesWith(body.prependNode(body.createClone(value.node(), lambda other: other)).output())
    torch._C._jit_pass_inline(body)
    fold_known(body)


def fold_known(graph):
    """Compute what is known beforehand, branches that are never taken left out."""
    for _ in range(2):
        torch._C._jit_pass_peephole(graph)
        torch._C._jit_pass_constant_propagation(graph)
        torch._C._jit_pass_dce(graph)
