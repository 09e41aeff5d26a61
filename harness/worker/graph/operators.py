"""Which operators an artifact contains, by walking its graphs.

``torch.jit.export_opnames`` is not used: it describes optimised mobile bytecode, so it leaves out branches that
were not taken and what stands behind module interfaces, and refuses ``prim::fork`` altogether; and an operator that
nobody calls can still stop an artifact from loading.
"""

import torch


def names(artifact):
    """Return the operators of every method and submodule, as ``name.overload``, and ``prim::fork``, sorted."""
    return sorted(set(_of_module(artifact._c)))


def _of_module(module):
    for name in module._method_names():
        graph = module._get_method(name).graph.copy()
        torch._C._jit_pass_inline(graph)
        yield from _of_graph(graph)
    for _, child in torch._C.ModuleDict(module).items():  # noqa: PERF102  no dict: it has no values()
        yield from _of_module(child)


def _of_graph(graph):
    pending = list(graph.nodes())
    while pending:
        node = pending.pop()
        for block in node.blocks():
            pending.extend(block.nodes())
        graphs = [node.g(attribute) for attribute in node.attributeNames() if node.kindOf(attribute) == "g"]
        for own in graphs:
            yield from _of_graph(own)
        # Most nodes without a schema build a container or choose a block. One that runs a graph of its own counts like
        # an operator: prim::fork.
        name = node.schema().split("(", 1)[0] or (node.kind() if graphs else "")
        if name:
            yield name
