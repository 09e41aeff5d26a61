"""What operators without weights need of their inputs. A rule takes a ``Use``; None: it has nothing to say."""

import torch

from gate_worker.needs.known_sizes import ELEMENTWISE
from gate_worker.needs.rules import index, rule
from gate_worker.needs.value_requirements import ValueRequirements


@rule(
    *sorted(
        ELEMENTWISE
        - {
            "to",
            "type_as",
            "float",
            "half",
            "layer_norm",
            "batch_norm",
            "prelu",
            "where",
            "masked_fill",
            "group_norm",
            "instance_norm",
        }
    )
)
def elementwise(use):
    """Shapes pass, and what the other operand is known to be binds this one too; whether it broadcasts is not known."""
    need = ValueRequirements().merge(use.out)
    what = use.kind.partition("::")[2]
    if what.startswith("bitwise") and need.dtype is None:
        need.dtype = torch.int64
    if use.count < 2 or use.position > 1:
        return need if use.position == 0 else None
    other = use.known(1 - use.position)
    for dimension, size in other.sizes.items():
        if size != 1:
            need.sizes.setdefault(dimension, size)
    certain, value = use.constant(1 - use.position)
    if what == "add" and need.below and certain and isinstance(value, torch.Tensor) and not value.is_floating_point():
        need.below = max(1, need.below - int(value.max())) if value.numel() else need.below
    return need


@rule("to", "type_as", "float", "half", "double", "long", "int", "bool", "bfloat16", "quantize_per_tensor")
def cast(use):
    if use.position != 0:
        return None
    need = ValueRequirements().merge(use.out)
    need.dtype = need.below = None
    return need


@rule(
    "cpu",
    "cuda",
    "quantize_per_tensor_dynamic",
    "dequantize",
    "sort",
    "argsort",
    "alias",
    "unsafe_chunk",
    "flip",
    "roll",
    "constant_pad_nd",
    "tril",
    "triu",
)
def shape_passes(use):
    return ValueRequirements().merge(use.out) if use.position == 0 else None


@rule("masked_fill")
def masked_fill(use):
    return (
        ValueRequirements().merge(use.out)
        if use.position == 0
        else ValueRequirements(dtype=torch.bool)
        if use.position == 1
        else None
    )


@rule("where")
def where(use):
    return ValueRequirements(dtype=torch.bool) if use.position == 0 else use.out.reshaped(None, lambda d: d)


@rule("logical_not", "logical_and", "logical_or", "bitwise_not")
def logical(_):
    return ValueRequirements(dtype=torch.bool)


@rule("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def shifts(use):
    return index(rank=use.out.rank)


@rule("_pack_padded_sequence")
def packed_sequence(use):
    return index(rank=1, role="lengths") if use.position == 1 else None


@rule("index_select", "gather", "index_add", "scatter_add", "scatter", "index_copy")
def indexing(use):
    if use.position != 2:
        return None
    source, dimension = use.known(0), use.number(1)
    if isinstance(dimension, int) and source.rank is not None and dimension >= 0:
        dimension -= source.rank
    return index(source.sizes.get(dimension), rank=1 if use.kind.startswith("aten::index") else source.rank)


@rule("one_hot")
def one_hot(use):
    classes = use.number(1)
    return index(classes if isinstance(classes, int) and classes > 0 else None)


@rule("stft")
def stft(use):
    size = use.number(1)
    return ValueRequirements(rank=2, sizes={1: 8 * size}) if use.position == 0 and isinstance(size, int) else None


@rule("fft_rfft")
def real_transform(use):
    dimension = use.number(2)
    if use.position != 0 or not isinstance(dimension, int):
        return None
    halved = ValueRequirements().merge(use.out)
    if halved.rank is None:
        halved.rank = max(dimension + 2, 2)  # a batch of rows that are transformed, or of what stands in them
    halved = halved.from_front()
    size = halved.sizes.get(dimension)
    need = halved.without(dimension)
    need.dtype = None
    if size and size > 1:
        need.sizes[dimension] = 2 * (size - 1)
    return need
