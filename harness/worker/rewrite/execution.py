"""Rules that keep the operator and change how it is executed: what is fused with it, and where its value is written."""

import torch

from gate_worker.graph.node_replacement import Refused, has_schema, replace
from gate_worker.rewrite.rules import rule


@rule(
    "fence",
    what="a clone of its output, so that no fuser joins it with what comes after",
)
def fence(site):
    node, why = site.node, why_no_fence(site)
    if why:
        raise Refused(why)
    output = node.output()
    with site.graph.insert_point_guard(node):
        plain = site.graph.insertConstant(None)
    clone = site.graph.create("aten::clone", [output, plain], 1)
    clone.insertAfter(node)
    clone.copyMetadata(node)
    clone.output().setType(output.type())
    output.replaceAllUsesAfterNodeWith(clone, clone.output())


def why_no_fence(site):
    """Return why no clone of its output can stand behind a node, empty where one can."""
    node = site.node
    if node.outputsSize() != 1 or not is_tensor(node.output()) or not node.kind().startswith("aten::"):
        return "it does not answer with one tensor"
    if "(" in answer_of(node):
        return "its output is a view of an input, or the input itself"
    return ""


@rule(
    "out-of-place",
    what="its values computed apart and copied back, in place of being computed in place",
    fits=lambda site: site.node.kind().endswith("_") and not site.node.kind().endswith("__"),
)
def out_of_place(site):
    node = site.node
    base = node.kind()
    if not answer_of(node).startswith("Tensor(a!)"):
        raise Refused("it does not answer with what it changes")
    apart = base[:-1]
    count = node.inputsSize()
    if not any(len(schema.arguments) == count for schema in torch._C._jit_get_schemas_for_operator(apart)):
        raise Refused("there is no %s" % apart)
    graph = site.graph
    inputs = list(node.inputs())
    values = graph.create(apart, inputs, 1)
    with graph.insert_point_guard(node):
        waits = graph.insertConstant(False)
    back = graph.create("aten::copy_", [inputs[0], values.output(), waits], 1)
    for added in (values, back):
        added.insertBefore(node)
        added.copyMetadata(node)
    try:
        torch._C.parse_schema(values.schema())
    except RuntimeError:
        raise Refused("there is no %s that takes the same arguments" % apart)
    back.output().setType(inputs[0].type())
    replace(site, back.output())


def answer_of(node):
    """Return what stands behind the arrow of a schema; ``(`` in it tells of an alias."""
    return node.schema().rpartition("-> ")[2] if has_schema(node) else ""


def is_tensor(value):
    return value.type().kind() == "TensorType"
