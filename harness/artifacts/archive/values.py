"""Whether the values in an archive's pickles are built as torch builds them, and are what its classes declare.

The forms are those of torch/csrc/jit/serialization/pickler.cpp; a module's state has exactly the attributes that its
class declares, each of the declared type. Where a class has a ``__setstate__``, only that knows what it takes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.archive.grammar import CUSTOM, Shape, types_within
from harness.artifacts.archive.pickle_facts import Built, Global, Pickled, PickledMapping, Stored, name_of

LISTS = {"int": "intlist", "float": "doublelist", "bool": "boollist", "Tensor": "tensorlist"}
TAGGED = "torch.jit._pickle.restore_type_tag"
DEVICE = re.compile(r"(?:cpu|cuda|xpu|mps|meta|hpu)(?::\d{1,2})?")
GRADED = re.compile(r"torch\.(?:Float|Double|Half|BFloat16|Complex\w+)Storage")
STORAGE = re.compile(r"torch\.\w+Storage")
SCHEMES = {"torch.per_tensor_affine": 3, "torch.per_channel_affine": 4, "torch.per_channel_affine_float_qparams": 4}
QUANTIZED = CUSTOM + "quantized."
PER_ELEMENT = {"torch.QUInt4x2Storage": 2, "torch.QUInt2x4Storage": 4}
"""How many values of a tensor lie in one element of its storage."""
COO, CSR = 1, 2
SPARSE = {COO: 2, CSR: 3}
"""How many tensors a sparse one is written as, by its layout (c10/core/Layout.h): COO and CSR."""
PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "NoneType": type(None)}


@dataclass(slots=True)
class Declared:
    """What the code files of an archive declare, together."""

    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    with_state: set[str] = field(default_factory=set)
    highest_constant: int = -1
    constant_types: set[tuple[int, str]] = field(default_factory=set)


def declared_by(shapes: Sequence[Shape]) -> Declared:
    """Return what the code files declare; constants are no part of a state."""
    declared = Declared()
    for shape in shapes:
        for name, attributes in shape.attributes.items():
            kept = attributes.keys() - shape.constants[name]
            declared.attributes[name] = {attribute: attributes[attribute] for attribute in kept}
        declared.bases |= shape.bases
        methods = (name.rpartition(".") for name in shape.signatures)
        declared.with_state |= {owner for owner, _, method in methods if method == "__setstate__"}
        declared.highest_constant = max(declared.highest_constant, shape.highest_constant)
        declared.constant_types |= shape.constant_types
    return declared


def module_misfits(data: Pickled, declared: Declared) -> Iterator[str]:
    """Yield what in ``data.pkl`` torch would not have written for a module of these classes."""
    name = name_of(data.root)
    if declared.bases.get(name) != "Module":
        yield f"{name or 'its value'} is no module"
    else:
        yield from _misfits(data, [(data.root, name)], declared)


def constant_misfits(constants: Pickled, declared: Declared) -> Iterator[str]:
    """Yield what in ``constants.pkl`` torch would not have written for this code."""
    if not isinstance(constants.root, tuple):
        yield "it holds no tuple"
    elif len(constants.root) <= declared.highest_constant:
        yield f"the code names constant {declared.highest_constant} of {len(constants.root)}"
    else:
        typed = [(constants.root[index], type_) for index, type_ in sorted(declared.constant_types)]
        yield from _misfits(constants, [*typed, *((item, "") for item in constants.root)], declared)


def _misfits(pickled: Pickled, pending: list[tuple[Any, str]], declared: Declared) -> Iterator[str]:
    if pickled.left:
        yield f"{pickled.left} values that belong to nothing"
    seen: set[tuple[int, str]] = set()
    while pending:
        value, type_ = pending.pop()
        if isinstance(value, (Built, tuple, PickledMapping)):
            if (id(value), type_) in seen:
                continue
            seen.add((id(value), type_))
        if type_.startswith("Optional["):
            if value is None:
                continue
            type_ = type_[9:-1]
        inside = _parts(value, type_, declared)
        if isinstance(inside, str):
            yield inside
            return
        pending += inside


def _parts(value: Any, type_: str, declared: Declared) -> list[tuple[Any, str]] | str:
    kind = type_.partition("[")[0]
    if kind in PLAIN:
        return [] if type(value) is PLAIN[kind] else f"{_word(value)} where a {kind} is declared"
    if isinstance(value, Built):
        return _built(value, type_, declared)
    if isinstance(value, tuple):
        if kind == "Tuple":
            inside = types_within(type_)
            return list(zip(value, inside, strict=True)) if len(inside) == len(value) else "a tuple of another length"
        vague = kind in ("", "Any", "Union", "number") or declared.bases.get(type_) == "NamedTuple"
        return [(item, "") for item in value] if vague else f"a tuple where {type_} is declared"
    if (value is None or type(value) in (int, float, bool, str)) and kind in ("", "Any", "Union", "number"):
        return []
    return f"{_word(value)} where {type_ or 'a value'} is declared"


def _built(value: Built, type_: str, declared: Declared) -> list[tuple[Any, str]] | str:
    name = name_of(value)
    arguments, kind = value.arguments, type_.partition("[")[0]
    if value.entries:
        return f"entries in a {name}"
    if name.startswith("__torch__."):
        return _object(value, name, type_, declared)
    if value.state is not None or not isinstance(arguments, tuple):
        return f"a {name} that is no call"
    if kind not in ("", "Any", "Union", *_makes(name, arguments)):
        return f"{name or _word(value.what)} where {type_} is declared"
    if name in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_qtensor"):
        return _tensor(arguments, quantized=name.endswith("_rebuild_qtensor"))
    if name == "torch._utils._rebuild_sparse_tensor":
        return _sparse(arguments)
    if name == "torch.device":
        return [] if len(arguments) == 1 and DEVICE.fullmatch(str(arguments[0])) else "no device"
    if name == "builtins.complex":
        return [] if list(map(type, arguments)) == [float, float] else "no complex number"
    if name == TAGGED:
        if not (len(arguments) == 2 and isinstance(arguments[1], str)):
            return "a container without its type"
        tag = arguments[1].replace(" ", "")
        return _container(arguments[0], tag, type_)
    for element, word in LISTS.items():
        if name == f"torch.jit._pickle.build_{word}":
            if kind == "List" and type_ != f"List[{element}]":
                return f"a List[{element}] where {type_} is declared"
            fits = len(arguments) == 1 and isinstance(arguments[0], list)
            return [(item, element) for item in arguments[0]] if fits else f"a {name} of no list"
    return f"{name} is nothing that torch writes"


def _makes(name: str, arguments: Sequence[Any]) -> tuple[str, ...]:
    """Return the types whose values ``name`` makes."""
    if name.startswith("torch._utils._rebuild_"):
        return ("Tensor",)
    if name == TAGGED:
        return (str(arguments[-1]).partition("[")[0],) if arguments else ()
    if name.startswith("torch.jit._pickle.build_"):
        return ("List",)
    return {"torch.device": ("Device",), "builtins.complex": ("complex", "number")}.get(name, ())


def _container(value: Any, tag: str, type_: str) -> list[tuple[Any, str]] | str:
    if type_ not in ("", "Any") and not type_.startswith("Union") and type_ != tag:
        return f"a {tag} where {type_} is declared"
    within = types_within(tag)
    if tag.startswith("List[") and isinstance(value, list):
        return [(item, within[0]) for item in value]
    if tag.startswith("Dict[") and isinstance(value, PickledMapping) and len(within) == 2:
        return [pair for key, item in value.items for pair in ((key, within[0]), (item, within[1]))]
    return f"{_word(value)} that is called a {tag}"


def _object(value: Built, name: str, type_: str, declared: Declared) -> list[tuple[Any, str]] | str:
    base = declared.bases.get(type_)
    vague = type_ in ("", "Any", name) or type_.startswith("Union") or base in ("Interface", "ModuleInterface")
    if not vague:
        return f"a {name} where {type_} is declared"
    if declared.bases.get(name) == "Enum":  # the value itself, where a call has a tuple
        known = type(value.arguments) in (int, float, str) and value.state is None
        return [] if known else f"no value of the enum {name}"
    if value.arguments != ():
        return f"a {name} that is called"
    if name.startswith(QUANTIZED) and (misfit := _bias_misfit(value.state)):
        return misfit
    if name.startswith(CUSTOM) or name in declared.with_state:
        return [(value.state, "")]
    if not isinstance(value.state, PickledMapping) or name not in declared.attributes:
        return f"a {name} without its attributes"
    attributes = declared.attributes[name]
    keys = [key for key, _ in value.state.items]
    if any(type(key) is not str for key in keys) or sorted(keys) != sorted(attributes):
        return f"a {name} with other attributes than its class declares"
    return [(item, attributes[key]) for key, item in value.state.items]


def _bias_misfit(state: Any) -> str:
    """Return how the tensors of a quantized layer's packed parameters contradict each other; empty if they do not.

    FBGEMM and oneDNN refuse a bias that has another length than the weight has outputs: its first dimension or, of a
    transposed convolution, its second one times the number of groups.
    """
    tensors = list(_tensors_in(state))
    weights = [size for storage, size in tensors if storage == "torch.QInt8Storage" and len(size) > 1]
    biases = [size[0] for storage, size in tensors if storage == "torch.FloatStorage" and len(size) == 1]
    if len(weights) != 1:
        return ""
    outputs, inputs = weights[0][:2]
    convolves = len(weights[0]) > 2
    fits = all(length == outputs or (convolves and inputs and length % inputs == 0) for length in biases)
    return "" if fits else "a bias of another length than its weight has outputs"


def _tensors_in(value: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the storage type of each tensor in a state, and its sizes."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, Built) and name_of(value) and isinstance(value.arguments, tuple):
        arguments = value.arguments
        if not name_of(value).startswith("torch._utils._rebuild_"):
            yield from _tensors_in(arguments)
        elif len(arguments) > 2 and isinstance(arguments[0], Stored) and _numbers(arguments[2]):
            described = arguments[0].what
            storage = described[1] if isinstance(described, tuple) and len(described) > 1 else None
            yield (storage.name if isinstance(storage, Global) else ""), arguments[2]


def _tensor(arguments: tuple[Any, ...], *, quantized: bool) -> list[tuple[Any, str]] | str:
    if not quantized and len(arguments) == 7:
        *arguments, view = arguments  # type: ignore[assignment]
        if not _is_view(view):
            return "a tensor that is a view of no kind that torch knows"
    if len(arguments) != 6 + quantized:
        return "a tensor of another number of arguments"
    stored, offset, size, stride, *quantizer, graded, hooks = arguments
    if not (isinstance(stored, Stored) and isinstance(stored.what, tuple) and len(stored.what) == 5):
        return "a tensor without a storage"
    mark, storage, key, device, elements = stored.what
    known = (
        isinstance(storage, Global) and STORAGE.fullmatch(storage.name) and mark == "storage" and isinstance(key, str)
    )
    if not known or not isinstance(device, str) or not DEVICE.fullmatch(device) or type(elements) is not int:
        return "a storage that torch does not describe so"
    shape = _numbers(size), _numbers(stride), type(offset) is int and offset >= 0
    if not all(shape) or len(size) != len(stride):
        return "a tensor without a shape"
    last = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and last > elements * PER_ELEMENT.get(storage.name, 1):
        return "a tensor that is longer than its storage"
    if type(graded) is not bool or (graded and not GRADED.fullmatch(storage.name)):
        return "a gradient that its dtype has not"
    if not _has_no_entries(hooks):
        return "a tensor with hooks"
    if not quantized:
        return []
    scheme = quantizer[0][0].name if isinstance(quantizer[0], tuple) and isinstance(quantizer[0][0], Global) else ""
    if SCHEMES.get(scheme) != len(quantizer[0]):
        return "a quantizer that torch does not write"
    if scheme != "torch.per_tensor_affine":
        axis = quantizer[0][3]
        of_channels = (size[axis],) if type(axis) is int and 0 <= axis < len(size) else None
        if any(sizes != of_channels for _, sizes in _tensors_in(quantizer[0][1:3])):
            return "a quantizer of another number of channels"
    types = ("float", "int") if scheme == "torch.per_tensor_affine" else ("Tensor", "Tensor", "int")
    return list(zip(quantizer[0][1:], types, strict=True))


def _has_no_entries(hooks: Any) -> bool:
    empty = isinstance(hooks, Built) and hooks.what == Global("collections.OrderedDict") and hooks.arguments == ()
    return empty and not hooks.entries and hooks.state is None


def _is_view(value: Any) -> bool:
    """Return whether a tensor's last argument says that it is the conjugate of what is stored, or its negative."""
    if not (isinstance(value, Built) and value.what == Global(TAGGED) and isinstance(value.arguments, tuple)):
        return False
    if len(value.arguments) != 2 or value.arguments[1] != "Dict[str, bool]":
        return False
    entries = value.arguments[0].items if isinstance(value.arguments[0], PickledMapping) else [("", None)]
    return bool(entries) and all(key in ("conj", "neg") and item is True for key, item in entries)


def _sparse(arguments: tuple[Any, ...]) -> list[tuple[Any, str]] | str:
    """Return what is inside of a sparse tensor: indices and values of COO; rows, columns and values of CSR."""
    layout, size, *parts = arguments if len(arguments) > 2 else (None, None)
    if layout not in SPARSE or not _numbers(size) or len(parts) != SPARSE[layout] + 2:
        return "a sparse tensor that torch does not write"
    graded, *tensors, hooks = parts
    if type(graded) is not bool or not _has_no_entries(hooks):
        return "a tensor with hooks"
    inside = list(_tensors_in(tensors))
    if len(inside) != len(tensors) or any(len(item) == 0 for _, item in inside):
        return "a sparse tensor that torch does not write"
    (_, first), *_, (_, values) = inside
    fits = (
        len(first) == 2 and first[1] == values[0] and first[0] + len(values) - 1 == len(size)
        if layout == COO
        else inside[1][1] == values[: len(inside[1][1])] and len(size) > 1
    )
    return [(item, "Tensor") for item in tensors] if fits else "a sparse tensor of parts that do not fit each other"


def _numbers(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(item) is int and item >= 0 for item in value)


def _word(value: Any) -> str:
    if isinstance(value, Global):
        return f"the name {value.name}"
    words = {type(None): "nothing", PickledMapping: "a dict", Stored: "a storage", Built: "an object"}
    return words.get(type(value), f"a {type(value).__name__}")
