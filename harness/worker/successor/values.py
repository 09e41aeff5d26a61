"""What a node does to values that may be symbols: sizes that ``torch.export`` keeps open are numbers here.

Containers are Python's, as ``graph.nodes`` has them. A number that TorchScript wraps in a tensor stays a number, until
an operator wants the tensor.
"""

# ruff: noqa: ARG005  the functions of a table take the same arguments, needed or not

import builtins
import math
import operator

import torch
from torch.utils._pytree import tree_leaves

from gate_worker.graph import nodes
from gate_worker.values import trees

NUMBERS = (int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)
# In the order of c10::ScalarType, by which a graph names them.
DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8, torch.quint8, torch.qint32),
    *(torch.bfloat16, torch.quint4x2, torch.quint2x4),
)
FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


def run(node, inputs):
    """Return the outputs of ``node`` as a list. Raises ``NotImplementedError``: what it does is not known here."""
    kind = node.kind()
    if kind in nodes.NODES:
        return nodes.NODES[kind](node, inputs)
    if kind in NODES:
        return [NODES[kind](node, *inputs)]
    if kind in VALUES:
        return nodes.outputs_of(node, VALUES[kind](*inputs))
    first = inputs[0] if inputs else None
    if isinstance(first, (list, dict, str, tuple)):
        for table in (LISTS, nodes.CONTAINERS):
            if kind in table and not wants_tensors(node):
                return nodes.outputs_of(node, table[kind](*inputs))
    if kind in ARITHMETIC and all(isinstance(value, (*NUMBERS, str, type(None))) for value in inputs):
        return nodes.outputs_of(node, ARITHMETIC[kind](*inputs))
    return nodes.outputs_of(node, operator_of(node)(inputs))


def wants_tensors(node):
    schema = node.schema()
    return "(Tensor" in schema.partition("->")[0] and "(Tensor[]" not in schema


def written(node, inputs):
    """Yield the tensors among the inputs that the node changes in place."""
    schema = node.schema()
    if "!)" in schema:
        operator = nodes.overload_named(schema)
        arguments = operator._schema.arguments if operator is not None else ()
        for value, argument in zip(inputs, arguments):
            if isinstance(value, torch.Tensor) and argument.alias_info is not None and argument.alias_info.is_write:
                yield value


_operators = {}


def operator_of(node):
    schema = node.schema()
    if "(...)" in schema or "(" not in schema:  # what it takes is told by the node alone
        raise NotImplementedError("%s has no like among the operators of exported programs" % node.kind())
    if schema not in _operators:
        _operators[schema] = _resolved(schema)
    return _operators[schema]


def _resolved(schema):
    operator = nodes.overload_named(schema)
    if operator is None:
        raise NotImplementedError("%s is no operator of torch.ops" % schema.partition("(")[0])
    arguments = operator._schema.arguments
    converts = [converter(argument) for argument in arguments]
    called = nodes.caller(operator, arguments)
    return lambda inputs: called([convert(value) for convert, value in zip(converts, inputs)])


def converter(argument):
    """Return what makes of a graph's value what ``torch.ops`` takes: dtypes and formats are numbers in a graph."""
    real, plain = str(argument.real_type), str(argument.type)
    if "ScalarType" in real:
        return lambda value: DTYPES[value] if isinstance(value, int) else value
    if "MemoryFormat" in real:
        return lambda value: FORMATS[value] if isinstance(value, int) else value
    if "Layout" in real:
        return lambda value: torch.strided if isinstance(value, int) else value
    if plain in ("Tensor", "Optional[Tensor]"):
        return tensor_of
    if plain == "List[Tensor]":
        return lambda value: [tensor_of(item) for item in value]
    if plain == "number":
        return lambda value: value.item() if isinstance(value, torch.Tensor) else value
    return lambda value: value


def tensor_of(value):
    """Return a number as the tensor that TorchScript wraps it in; anything else as it is."""
    if not isinstance(value, NUMBERS):
        return value
    if isinstance(value, (bool, torch.SymBool)):
        return torch.scalar_tensor(value, dtype=torch.bool)
    whole = isinstance(value, (int, torch.SymInt))
    return torch.scalar_tensor(value, dtype=torch.int64 if whole else torch.get_default_dtype())


def of_type(value, kind):
    """Return an answer as its type in the graph says: tensors in place of the numbers that stand for them."""
    name = kind.kind()
    if name == "TensorType":
        return quantized_free(tensor_of(value))
    if name == "OptionalType":
        return None if value is None else of_type(value, kind.getElementType())
    if name == "ListType":
        return [of_type(item, kind.getElementType()) for item in value]
    if name == "DictType":
        return {key: of_type(item, kind.getValueType()) for key, item in value.items()}
    if name == "TupleType":
        return tuple(of_type(item, element) for item, element in zip(value, kind.elements()))
    return value


def quantized_free(value):
    if not isinstance(value, torch.Tensor):
        raise NotImplementedError("it answers with a quantized tensor")
    return value


def copied(value):
    """Return a copy of containers; tensors and numbers in them stay the same."""
    return trees.mapped(value, lambda tensor: tensor)


def has_tensors(value):
    return isinstance(value, (dict, list, tuple)) and any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(value))


def changed(before, after):
    """Whether a container or a number is another one than before; of tensors, whether it is the same object."""
    if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        return len(before) != len(after) or any(map(changed, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return list(before) != list(after) or any(changed(before[key], after[key]) for key in before)
    if isinstance(before, torch.Tensor) or isinstance(after, torch.Tensor):
        return before is not after
    return type(before) is not type(after) or before != after


def is_of_sizes(symbol):
    """Whether a symbol follows from sizes alone: ``torch.export`` can decide it, and guards the program with it."""
    return not any(str(free).lstrip("z").startswith("u") for free in symbol.node.expr.free_symbols)


def known(condition):
    """Return what a condition on symbols is taken for without a guard; None where it gets one."""
    if isinstance(condition, bool):
        return condition
    static = condition.node.shape_env._maybe_evaluate_static(condition.node.expr)
    return None if static is None else bool(static)


def is_bound(symbol):
    """Whether a decision about sizes is known beforehand, or bounds one of them: every release checks that."""
    condition = symbol.node.expr
    if symbol.node.shape_env._maybe_evaluate_static(condition) is not None:
        return True
    sides = condition.args if type(condition).__name__.endswith("Than") else ()
    return any(side.is_symbol for side in sides) and any(side.is_number for side in sides)


def is_equality(symbol):
    """Whether a decision compares two sizes, or a size and a number; where they are equal, programs check that too."""
    condition = symbol.node.expr
    return type(condition).__name__ == "Equality" and all(side.is_symbol or side.is_number for side in condition.args)


def equals(symbol, value):
    if isinstance(symbol, torch.SymBool):
        return symbol if value else torch.sym_not(symbol)
    return symbol == value


def item_of(tensor):
    """Return the number in a tensor; of a bool by way of an integer: 2.6 saves no program with a check of a bool."""
    return tensor.to(torch.int64).item() != 0 if tensor.dtype == torch.bool else tensor.item()


def truth(tensor):
    return boolean(item_of(tensor))


def whole(value):
    return torch.sym_int(value) if isinstance(value, torch.SymFloat) else value if is_whole(value) else int(value)


def is_whole(value):
    return isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)


def real(value):
    return torch.sym_float(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else float(value)


def boolean(value):
    return value if isinstance(value, (bool, torch.SymBool)) else value != 0


NUMBER_OF = {
    "aten::Bool": boolean,
    "aten::Float": real,
    "aten::FloatImplicit": real,
    "aten::Int": whole,
    "aten::IntImplicit": whole,
    "aten::ScalarImplicit": lambda value: value,
    "aten::item": lambda value: value,
}
"""Nodes that make a number of a tensor, and what kind of number."""


def size(tensor, dim=None):
    return list(tensor.shape) if dim is None else tensor.shape[dim]


def new_tensor(data, dtype=None, device=None, requires_grad=None):
    """``torch.tensor`` of numbers or of nested lists, in which there may be symbols."""
    del device, requires_grad
    dtype = DTYPES[dtype] if isinstance(dtype, int) else dtype
    if isinstance(data, torch.Tensor):
        return data.clone() if dtype is None else data.to(dtype, copy=True)
    if isinstance(data, NUMBERS):
        tensor = tensor_of(data)
        return tensor if dtype is None else tensor.to(dtype)
    if symbols_in(data):
        return torch.stack([new_tensor(item, dtype) for item in data])
    return torch.tensor(data, dtype=dtype)


def symbols_in(data):
    if isinstance(data, (list, tuple)):
        return any(map(symbols_in, data))
    return isinstance(data, (torch.SymInt, torch.SymFloat, torch.SymBool))


def is_instance(node, value):
    """``isinstance`` by the types of a graph; it is decided for good where the value is Python's."""
    return any(_is(value, kind) for kind in node.tys("types"))


KINDS = {
    "TensorType": torch.Tensor,
    "IntType": (int, torch.SymInt),
    "FloatType": (float, torch.SymFloat),
    "BoolType": (bool, torch.SymBool),
    "StringType": str,
    "ListType": list,
    "AnyListType": list,
    "DictType": dict,
    "TupleType": tuple,
    "AnyTupleType": tuple,
    "NoneType": type(None),
}


def _is(value, kind):
    name = kind.kind()
    if name not in KINDS:
        raise NotImplementedError("isinstance of %s" % kind)
    if name == "IntType" and isinstance(value, bool):
        return False
    if name == "ListType" and isinstance(value, list) and value:
        return _is(value[0], kind.getElementType())
    return isinstance(value, KINDS[name])


def range_length(low, high, step):
    turns = -(-(high - low) // step)
    return turns if symbols_in(turns) else max(0, turns)


def least(*given):
    return extreme(torch.sym_min, builtins.min, given)


def largest(*given):
    return extreme(torch.sym_max, builtins.max, given)


def extreme(of_symbols, of_numbers, given):
    if len(given) == 2 and symbols_in(list(given)):
        return of_symbols(*given)
    return of_numbers(*given)


def divide(left, right, rounding=None):
    if rounding is None:
        return left / right
    return left // right if rounding == "floor" else whole(left / right)


def code_of(tensor):
    return DTYPES.index(tensor.dtype)


NODES = {
    "prim::isinstance": is_instance,
}
"""Kinds whose node says more than its inputs."""

SAME = (
    *("aten::__is__", "aten::__isnot__", "aten::format", "aten::str", "prim::Print", "prim::device"),
    *("prim::unchecked_cast", "prim::unchecked_unwrap_optional"),
)
"""What ``graph.nodes`` does to values that may be symbols, too."""

VALUES = {
    **{kind: nodes.VALUES[kind] for kind in SAME},
    "aten::_convolution": lambda *given: torch.ops.aten.convolution(*given[:9]),  # 2.6 traces no other for open sizes
    "aten::__derive_index": lambda index, start, step: start + index * step,
    "aten::__not__": lambda value: torch.sym_not(value) if isinstance(value, torch.SymBool) else not value,
    "aten::__range_length": range_length,
    "aten::as_tensor": new_tensor,
    "aten::dim": lambda tensor: tensor.dim(),
    "aten::is_autocast_cpu_enabled": lambda: False,
    "aten::is_autocast_enabled": lambda: False,
    "aten::is_floating_point": lambda tensor: tensor.is_floating_point(),
    "aten::is_scripting": lambda: True,
    "aten::numel": lambda tensor: tensor.numel(),
    "aten::size": size,
    "aten::tensor": new_tensor,
    "aten::warn": lambda *given: None,
    "prim::AutogradAnyNonZero": lambda *given: False,
    "prim::NumToTensor": lambda value: value,
    "prim::dtype": code_of,
    "prim::is_cuda": lambda tensor: tensor.is_cuda,
    "prim::is_mkldnn": lambda tensor: False,
    "prim::is_nested": lambda tensor: False,
    "prim::is_quantized": lambda tensor: False,
    "prim::is_sparse": lambda tensor: False,
    "prim::layout": lambda tensor: 0,
    "prim::max": largest,
    "prim::min": least,
    "prim::type": lambda device: device.type,
}

LISTS = {
    "aten::all": all,
    "aten::any": any,
    "aten::endswith": lambda text, end, *rest: text.endswith(end),
    "aten::join": lambda text, items: text.join(items),
    "aten::lower": str.lower,
    "aten::replace": lambda text, old, new, most=-1: text.replace(old, new, most),
    "aten::split": lambda text, separator=None, most=-1: text.split(separator, most),
    "aten::startswith": lambda text, begin, *rest: text.startswith(begin),
    "aten::strip": lambda text, characters=None: text.strip(characters),
    "aten::sum": sum,
    "aten::upper": str.upper,
}

COMPARED = {
    "aten::ne": operator.ne,
    "aten::lt": operator.lt,
    "aten::le": operator.le,
    "aten::gt": operator.gt,
    "aten::ge": operator.ge,
    "aten::eq": operator.eq,
}

ARITHMETIC = {
    **COMPARED,
    **NUMBER_OF,
    "aten::__and__": lambda left, right: left & right,
    "aten::__or__": lambda left, right: left | right,
    "aten::__xor__": operator.xor,
    "aten::abs": abs,
    "aten::add": lambda left, right, alpha=1: left + right * alpha if alpha != 1 else left + right,
    "aten::ceil": math.ceil,
    "aten::div": divide,
    "aten::exp": math.exp,
    "aten::floor": math.floor,
    "aten::floor_divide": operator.floordiv,
    "aten::floordiv": operator.floordiv,
    "aten::log": math.log,
    "aten::log2": math.log2,
    "aten::mul": operator.mul,
    "aten::neg": operator.neg,
    "aten::pow": operator.pow,
    "aten::remainder": operator.mod,
    "aten::round": round,
    "aten::rsub": lambda left, right, alpha=1: right - left,
    "aten::sqrt": math.sqrt,
    "aten::sub": lambda left, right, alpha=1: left - right * alpha if alpha != 1 else left - right,
    "aten::to": lambda value, *rest: value,
    "aten::trunc": math.trunc,
}
"""Operators of numbers, and of the tensors that stand for numbers."""
