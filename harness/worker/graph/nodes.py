"""One node of a TorchScript graph, run by itself: containers by Python, operators by torch, the rest by its executor.

Lists and dicts are Python's here, because torch copies them on the way in and out, and what a node changes in place
would be lost.
"""

# ruff: noqa: ARG001, ARG005  the functions of a table take the same arguments, needed or not

import re

import torch

# Types of a schema that stand for any type: torch.ops cannot tell which one is meant, the node can.
GENERIC = re.compile(r"\b(t|t1|t2|tVal|k|key|Any|AnyEnumType|AnyListType|AnyTuple)\b")


class Instance:
    """An object of a TorchScript class; its methods are inlined."""


def run(node, inputs):
    """Return the outputs of ``node`` as a list; what it changes in place is changed in ``inputs``."""
    kind = node.kind()
    if kind in NODES:
        return NODES[kind](node, inputs)
    if kind in VALUES:
        return outputs_of(node, VALUES[kind](*inputs))
    if kind in CONTAINERS and inputs and isinstance(inputs[0], (list, dict, str, tuple)):
        return outputs_of(node, CONTAINERS[kind](*inputs))
    return outputs_of(node, operator_of(node)(inputs))


def outputs_of(node, value):
    count = node.outputsSize()
    return [value] if count == 1 else [] if count == 0 else list(value)


_operators = {}


def operator_of(node):
    schema = node.schema()
    if "(...)" in schema or "(" not in schema:
        return by_executor(node)
    if schema not in _operators:
        _operators[schema] = overload_of(schema)
    return _operators[schema] or by_executor(node)


def overload_named(schema):
    """Return the overload of ``torch.ops`` that a schema names; None where there is none."""
    name, _, overload = schema.partition("(")[0].partition(".")
    namespace, _, base = name.partition("::")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def overload_of(schema):
    operator = overload_named(schema)
    if operator is None:
        return None
    arguments = torch._C.parse_schema(schema).arguments
    if any(GENERIC.search(str(argument.type)) for argument in arguments):
        return None
    return caller(operator, arguments)


def caller(operator, arguments):
    """Return what calls an operator with a node's inputs; ``arguments``: those of its schema, keywords last."""
    keywords = [argument.name for argument in arguments if argument.kwarg_only]
    first = len(arguments) - len(keywords)
    return lambda inputs: operator(*inputs[:first], **dict(zip(keywords, inputs[first:])))


def by_executor(node):
    graph = torch._C.Graph()
    mapped = {}
    places = add_inputs(graph, node.inputs(), mapped)
    clone = graph.insertNode(graph.createClone(node, lambda value: mapped[value.debugName()]))
    graph.registerOutput(single_output(graph, list(clone.outputs())))
    function = torch._C._create_function_from_graph("node", graph)
    return lambda inputs: function(*[inputs[place] for place in places])


def function_graph(node):
    """Return the graph of the function that a ``prim::CallFunction`` calls, with all that it calls put in."""
    function, *given = node.inputs()
    graph = torch._C.Graph()
    constant = graph.insertNode(graph.createClone(function.node(), lambda value: value))
    mapped = {function.debugName(): constant.output()}
    add_inputs(graph, given, mapped)
    call = graph.insertNode(graph.createClone(node, lambda value: mapped[value.debugName()]))
    graph.registerOutput(call.output())
    torch._C._jit_pass_inline(graph)
    return graph


def add_inputs(graph, values, mapped):
    """Add an input for each value that ``mapped`` (name -> its like in the graph) lacks; return the places of those."""
    places = []
    for index, value in enumerate(values):
        if value.debugName() not in mapped:
            mapped[value.debugName()] = graph.addInput()
            mapped[value.debugName()].setType(value.type())
            places.append(index)
    return places


def single_output(graph, outputs):
    """Return the one value that a function may answer with: the output, or all of them in a tuple."""
    if len(outputs) == 1:
        return outputs[0]
    together = graph.insertNode(graph.create("prim::TupleConstruct", outputs, 1)).output()
    together.setType(torch._C.TupleType([output.type() for output in outputs]))
    return together


def unpacked(node, inputs):
    values = list(inputs[0])
    if len(values) != node.outputsSize():
        raise RuntimeError("expected %d values to unpack, got %d" % (node.outputsSize(), len(values)))
    return values


def refused(node, inputs):
    raise RuntimeError(str(inputs[0]))


NODES = {
    "prim::Constant": lambda node, inputs: [node.output().toIValue()],
    "prim::CreateObject": lambda node, inputs: [Instance()],
    "prim::DictConstruct": lambda node, inputs: [dict(zip(inputs[::2], inputs[1::2]))],
    "prim::ListConstruct": lambda node, inputs: [list(inputs)],
    "prim::ListUnpack": unpacked,
    "prim::RaiseException": refused,
    "prim::TupleConstruct": lambda node, inputs: [tuple(inputs)],
    "prim::TupleIndex": lambda node, inputs: [inputs[0][inputs[1]]],
    "prim::TupleSlice": lambda node, inputs: [tuple(inputs[0])[node.i("beg") : node.i("end")]],
    "prim::TupleUnpack": unpacked,
    "prim::Uninitialized": lambda node, inputs: [None],
    "prim::data": lambda node, inputs: [inputs[0].detach()],
}


def scalar(value):
    return value.item() if isinstance(value, torch.Tensor) else value


VALUES = {
    "aten::Bool": bool,
    "aten::Float": float,
    "aten::FloatImplicit": float,
    "aten::Int": int,
    "aten::IntImplicit": int,
    "aten::ScalarImplicit": scalar,
    "aten::__is__": lambda left, right: left is right,
    "aten::__isnot__": lambda left, right: left is not right,
    "aten::__not__": lambda value: not value,
    "aten::format": lambda text, *values: text.format(*values),
    "aten::str": str,
    "prim::NumToTensor": lambda value: value if isinstance(value, torch.Tensor) else torch.tensor(value),
    "prim::Print": lambda *values: None,
    "prim::device": lambda tensor: tensor.device,
    "prim::tolist": lambda tensor, dim, kind: tensor.tolist(),
    "prim::unchecked_cast": lambda value: value,
    "prim::unchecked_unwrap_optional": lambda value: value,
}


def set_item(container, key, value):
    container[key] = value
    return container


def delete(container, key):
    del container[key]


def append(container, value):
    container.append(value)
    return container


def add_in_place(container, other):
    container += other
    return container


CONTAINERS = {
    "aten::Delete": delete,
    "aten::__contains__": lambda container, key: key in container,
    "aten::__getitem__": lambda container, key: container[key],
    "aten::_set_item": set_item,
    "aten::add": lambda left, right: left + right,
    "aten::add_": add_in_place,
    "aten::append": append,
    "aten::clear": lambda container: container.clear(),
    "aten::copy": lambda container: container.copy(),
    "aten::count": lambda container, value: container.count(value),
    "aten::dict": dict,
    "aten::eq": lambda left, right: left == right,
    "aten::extend": lambda container, values: container.extend(values),
    "aten::get": lambda container, key, default=None: container.get(key, default),
    "aten::index": lambda container, *rest: container.index(*rest),
    "aten::insert": lambda container, index, value: container.insert(index, value),
    "aten::items": lambda container: list(container.items()),
    "aten::keys": lambda container: list(container.keys()),
    "aten::len": len,
    "aten::list": list,
    "aten::mul": lambda container, times: container * times,
    "aten::ne": lambda left, right: left != right,
    "aten::pop": lambda container, *key: container.pop(*key),
    "aten::popitem": lambda container: container.popitem(),
    "aten::remove": lambda container, value: container.remove(value),
    "aten::reverse": lambda container: container.reverse(),
    "aten::setdefault": lambda container, key, default: container.setdefault(key, default),
    "aten::slice": lambda container, start=None, end=None, step=1: container[start:end:step],
    "aten::sort": lambda container, reverse=False: container.sort(reverse=reverse),
    "aten::sorted": sorted,
    "aten::update": lambda container, other: container.update(other),
    "aten::values": lambda container: list(container.values()),
}
