"""Takes out of a module what stops it from loading elsewhere and is never reached: branches, and methods."""

import torch

from gate_worker.graph import node_facts
from gate_worker.graph.node_replacement import Refused, compiled, fold_known, inlined, sites
from gate_worker.rewrite.rules import rule

RAISES = 'def f() -> None:\n  raise RuntimeError("%s")\n'
CUT = "pruned by the upgrade gate: this part of the program was never reached by a recorded request"


def fold(module, operators):
    """Inline every method, leave out branches that are decided beforehand, and empty what nobody calls any more.

    Returns the names of the methods that were emptied: those of submodules in which one of ``operators`` stands.
    """
    called = set()
    for name in module._c._method_names():
        graph = inlined(module, name)
        fold_known(graph)
        called.update(site.node.s("name") for _, site in sites(graph) if site.node.kind() == "prim::CallMethod")
    emptied = []
    for path, part in module.named_modules():
        for name in part._c._method_names() if path else ():
            graph = part._c._get_method(name).graph
            if name not in called and contains(graph, operators):
                raise_instead(graph, graph.block())
                emptied.append("%s.%s" % (path, name))
    return emptied


def contains(graph, operators):
    graph = graph.copy()
    torch._C._jit_pass_inline(graph)
    return any(site.node.kind() in operators for _, site in sites(graph))


def places_of(module, operators):
    """Return where nodes of ``operators`` stand: method, address, and how far out the innermost branch around is."""
    places = []
    for name in module._c._method_names() if operators else ():
        for address, site in sites(module._c._get_method(name).inlined_graph):
            if site.node.kind() in operators:
                place = {"method": name, "address": address, "operator": site.operator, "branch": branch_of(site)}
                source = node_facts.source_of(site.node.sourceRange())
                places.append(dict(place, schema=site.node.schema(), source=source))
    return places


def branch_of(site):
    """Return how many blocks one has to leave to be out of the innermost branch around a node; None outside of all."""
    depth, block = 0, site.node.owningBlock()
    while block.owningNode() is not None:
        depth += 1
        if block.owningNode().kind() == "prim::If":
            return depth
        block = block.owningNode().owningBlock()
    return None


@rule(
    "cut-branch",
    what="the branch around it raises an error in its place",
    needs="no request ever takes this branch",
)
def cut_branch(site):
    block = site.node.owningBlock()
    while block.owningNode() is not None and block.owningNode().kind() != "prim::If":
        block = block.owningNode().owningBlock()
    if block.owningNode() is None:
        raise Refused("it is in no branch")
    raise_instead(site.graph, block)


def raise_instead(graph, block):
    """Leave nothing of a block but an error."""
    before = list(block.nodes())
    end = block.returnNode()
    known = {}
    for node in compiled(RAISES % CUT).graph.nodes():
        clone = graph.createClone(node, lambda value: known[value.debugName()])
        clone.insertBefore(end)
        known.update(zip([value.debugName() for value in node.outputs()], clone.outputs()))
    for index, output in enumerate(list(block.outputs())):
        nothing = graph.create("prim::Uninitialized", [], 1)
        nothing.insertBefore(end)
        nothing.output().setType(output.type())
        end.replaceInput(index, nothing.output())
    for node in reversed(before):
        node.destroy()
