"""A forked function that is extracted out: what it fetches of the module becomes inputs of its own."""

import torch


def lift(node, copy, input_of, is_passed):
    """Give the copy of a fork its own function, in which no module is an input any more where that can be.

    Args:
        node, copy: the fork, and its copy in the new graph.
        input_of: (path of an attribute, its type) -> the value of the new graph that stands for it.
        is_passed: whether a type may be an input.
    """
    function = node.g("Subgraph").copy()
    torch._C._jit_pass_inline(function)
    roots = {}
    for given, taken in zip(node.inputs(), function.inputs()):
        if not is_passed(given.type()):
            roots[taken.debugName()] = root_and_path(given)[1]
    if not roots:
        return
    fetched = []
    gather(function, roots, fetched)
    for inner, path in fetched:
        if is_passed(inner.output().type()):
            value = function.addInput()
            value.setType(inner.output().type())
            inner.output().replaceAllUsesWith(value)
            copy.addInput(input_of(path, inner.output().type()))
    for inner, _ in reversed(fetched):
        if not inner.output().uses():
            inner.destroy()
    for index, taken in reversed(list(enumerate(function.inputs()))):
        if taken.debugName() in roots and not taken.uses():
            function.eraseInput(index)
            copy.removeInput(index)
    copy.g_("Subgraph", function)


def gather(block, roots, found):
    """Add (node, path from the module) of all that a block, and those in it, fetch of the inputs ``roots``."""
    for node in block.nodes():
        if node.kind() == "prim::GetAttr":
            root, path = root_and_path(node.output())
            if root.debugName() in roots:
                found.append((node, roots[root.debugName()] + path))
        for inner in node.blocks():
            gather(inner, roots, found)


def root_and_path(value):
    """Return the value that is no attribute, and the names that lead from it to ``value``."""
    names = []
    while value.node().kind() == "prim::GetAttr":
        names.append(value.node().s("name"))
        (value,) = value.node().inputs()
    return value, tuple(reversed(names))
