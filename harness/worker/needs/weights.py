"""What operators with weights need of their inputs. A rule takes a ``Use``; None: it has nothing to say."""

import torch

from gate_worker.graph import packed_weights
from gate_worker.needs.rules import floating, index, of_list, rule
from gate_worker.needs.value_requirements import ValueRequirements


@rule("linear")
def linear(use):
    weight = use.known(1)
    if use.position != 0 or weight.rank != 2:
        return None
    need = use.out.reshaped(use.out.rank, lambda d: d if d != -1 and d != (use.out.rank or 0) - 1 else None)
    need.sizes[-1] = weight.sizes[-1]
    need.dtype = floating(weight.dtype)
    return need


@rule("linear_dynamic", "linear_relu_dynamic", "linear_relu")
def packed_linear(use):
    shape = packed_weights.shape("linear", use.number(1)) if use.position == 0 else None
    return ValueRequirements(sizes={-1: shape[1]}) if shape else None


@rule("conv2d_relu", "conv1d_relu")
def packed_convolution(use):
    shape = packed_weights.shape("conv2d", use.number(1)) if use.position == 0 else None
    return ValueRequirements(rank=len(shape), sizes={1: shape[1]}) if shape else None


@rule("addmm", "matmul", "mm", "bmm", "cdist", "linalg_solve_triangular")
def products(use):
    what = use.kind.partition("::")[2]
    left, right = (1, 2) if what == "addmm" else (0, 1)
    if use.position not in (left, right):
        return None
    other = use.known(left + right - use.position)
    need = ValueRequirements(rank={"addmm": 2, "mm": 2, "bmm": 3}.get(what), dtype=floating(other.dtype))
    # The last of the left meets the last but one of the right; distances are between rows, solutions of systems.
    mine, its = (-1, -2) if use.position == left else (-2, -1)
    if what == "cdist":
        mine = its = -1
    if what == "linalg_solve_triangular":
        mine = its = -2
    if other.rank == 1:
        its = -1
    if its in other.sizes:
        need.sizes[mine] = other.sizes[its]
    return need


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution")
def convolution(use):
    if use.kind.startswith("quantized::"):
        return packed_convolution(use)
    weight = use.known(1)
    if use.position != 0 or not weight.rank:
        return None
    transposed, groups = "transpose" in use.kind, 1
    if use.kind.startswith("aten::_convolution"):
        transposed, groups = bool(use.number(6)), use.number(8, 1)
    elif use.count > 6:
        groups = use.number(7 if transposed else 6, 1)
    channels = weight.sizes[-weight.rank] if transposed else weight.sizes[1 - weight.rank] * groups
    return ValueRequirements(rank=weight.rank, sizes={1: channels}, dtype=floating(weight.dtype))


@rule("batch_norm", "group_norm", "instance_norm", "prelu")
def channels(use):
    if use.position != 0:
        return None
    need = ValueRequirements().merge(use.out)
    weights = {"batch_norm": (1, 2, 3, 4), "group_norm": (2, 3), "instance_norm": (1, 2, 3), "prelu": (1,)}
    for place in weights[use.kind[6:]]:
        weight = use.known(place) if place < use.count else ValueRequirements()
        if weight.rank == 1 and weight.sizes[-1] > 1:
            need.sizes.setdefault(1, weight.sizes[-1])
            break
    return need


@rule("layer_norm")
def layer_norm(use):
    shape = use.number(1)
    if use.position != 0 or not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return None
    need = ValueRequirements(sizes={place - len(shape): size for place, size in enumerate(shape)})
    need.dtype = floating(use.known(2).dtype)
    return need.merge(use.out)


@rule("embedding")
def embedding(use):
    weight = use.known(0)
    if use.position != 1 or weight.rank != 2:
        return None
    return index(weight.sizes[-2]).merge(use.out.one_less(-1)) if use.out.rank != 0 else index(weight.sizes[-2])


@rule(
    "embedding_bag",
    "embedding_bag_byte",
    "embedding_bag_4bit",
    "embedding_bag_byte_rowwise_offsets",
    "embedding_bag_4bit_rowwise_offsets",
)
def embedding_bag(use):
    if use.position == 2:
        return index(rank=1, role="offsets")
    if use.position != 1:
        return None
    rows = use.known(0).sizes.get(-2)
    if use.kind.startswith("quantized::"):
        shape = packed_weights.shape("embedding_bag", use.number(0))
        rows = shape[0] if shape else None
    return index(rows, role="bag")


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(use):
    params = recurrent_weights(use)
    if params is None or use.position > (0 if use.kind == "aten::lstm" else 1):
        return None
    return (
        state(use)
        if use.position
        else ValueRequirements(rank=3, sizes={2: params[0].shape[1]}, dtype=floating(params[0].dtype))
    )


def recurrent_weights(use):
    params = use.number(2)
    return params if isinstance(params, list) and len(params) > 1 and isinstance(params[0], torch.Tensor) else None


def state(use):
    """Return the need of a recurrent state: layers and directions, batch, width."""
    params, layers, both_ways = recurrent_weights(use), use.number(4), use.number(7)
    sizes = {2: params[1].shape[1]}
    if isinstance(layers, int):
        sizes[0] = layers * (2 if both_ways else 1)
    return ValueRequirements(rank=3, sizes=sizes, dtype=floating(params[0].dtype), role="state")


@rule("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(use):
    weight = use.known(2 + use.position) if use.position < 2 else ValueRequirements()
    if weight.rank != 2 or (use.position == 1 and use.kind == "aten::lstm_cell"):
        return None
    return ValueRequirements(rank=2, sizes={1: weight.sizes[-1]}, dtype=floating(weight.dtype))


@rule("_native_multi_head_attention", "_transformer_encoder_layer_fwd")
def attention(use):
    width = use.number(3 if "native" in use.kind else 1)
    return ValueRequirements(rank=3, sizes={2: width}) if use.position == 0 and isinstance(width, int) else None


@of_list("aten::lstm")
def lstm_state(use):
    return state(use) if recurrent_weights(use) is not None else None
