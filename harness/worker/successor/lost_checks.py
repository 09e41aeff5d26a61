"""Finds what torch's own converter loses of a graph without a word: errors that data raises, and sizes of 0 and 1."""

from gate_worker.successor import joined, values

SIZES = ("aten::size", "aten::numel")
# An export takes every open size for 2 or more: it may decide a comparison with no more than that for all requests.
FOLDED = 2


def first(block):
    """Return the first branch that a converted program takes for all requests, or None; blocks in it too."""
    for node in block.nodes():
        if node.kind() == "prim::If":
            raising = [any(inner.kind() == joined.RAISES for inner in part.nodes()) for part in node.blocks()]
            (condition,) = node.inputs()
            if (raising[0] != raising[1] and is_of_data(condition)) or is_folded(condition):
                return node
        for part in node.blocks():
            if (within := first(part)) is not None:
                return within
    return None


def is_of_data(value):
    """Whether a number or a condition follows from what is in a tensor."""
    node = value.node()
    if node.kind() in values.NUMBER_OF and str(next(node.inputs()).type()) == "Tensor":
        return holds_data(next(node.inputs()))
    return any(map(is_of_data, sources(value)))


def holds_data(value):
    """Whether a tensor is more than a number in a tensor's clothes."""
    kind = value.node().kind()
    if kind == "prim::NumToTensor":
        return is_of_data(next(value.node().inputs()))
    if kind == "prim::Constant":
        return False
    inputs = list(value.node().inputs()) if kind.startswith("aten::") else []
    return not inputs or any(holds_data(item) for item in inputs if str(item.type()) == "Tensor")


def is_folded(value):
    """Whether a condition compares a size with a constant of at most 2."""
    node = value.node()
    if node.kind() in values.COMPARED:
        constants = [item.toIValue() for item in node.inputs() if item.node().kind() == "prim::Constant"]
        if any(values.is_whole(constant) and constant <= FOLDED for constant in constants):
            return any(map(is_of_size, node.inputs()))
    return any(map(is_folded, sources(value)))


def is_of_size(value):
    node = value.node()
    if node.kind() in SIZES and node.outputsSize() == 1 and str(value.type()) == "int":
        return True
    if node.kind() == "aten::__getitem__":
        return next(node.inputs()).node().kind() == "aten::size"
    return node.kind() in ("aten::Int", "prim::NumToTensor", *values.COMPARED) and any(map(is_of_size, node.inputs()))


def sources(value):
    """Return what a number or a condition is made of: inputs that are no tensors, and what blocks give."""
    node = value.node()
    if node.kind() in ("prim::Param", "prim::Loop"):
        return []
    given = [item for item in node.inputs() if str(item.type()) in ("int", "bool", "float", "number")]
    for part in node.blocks():
        given += [item for item in part.outputs() if str(item.type()) in ("int", "bool", "float")]
    return given
