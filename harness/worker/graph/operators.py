"""Which operators an artifact contains, by walking its graphs.

``torch.jit.export_opnames`` is not used: it describes optimised mobile bytecode, so it leaves out branches that
were not taken and what stands behind module interfaces, and refuses ``prim::fork`` altogether; and an operator that
nobody calls can still stop an artifact from loading.
"""

import torch


def names(artifact):
    """Return the operators of every method and submodule, as ``name.overload``, and ``prim::fork``, sorted."""
    found = set()
    _visit_module(artifact._c, found)
    return sorted(found)


def _visit_module(module, found):
    for name in module._method_names():
        graph = module._get_method(name).graph.copy()
        torch._C._jit_pass_inline(graph)
        _visit_graph(graph, found)
    for _, child in torch._C.ModuleDict(module).items():  # noqa: PERF102  no dict: it has no values()
        _visit_module(child, found)


def _visit_graph(graph, found):
    pending = list(graph.nodes())
    while pending:
        node = pending.pop()
        for block in node.blocks():
            pending.extend(block.nodes())
        graphs = [node.g(attribute) for attribute in node.attributeNames() if node.kindOf(attribute) == "g"]
        for own in graphs:
            _visit_graph(own, found)
        # Most nodes without a schema build a container or choose a block. One that runs a graph of its own counts like
        # an operator: prim::fork.
        name = node.schema().split("(", 1)[0] or (node.kind() if graphs else "")
        if name:
            found.add(name)
