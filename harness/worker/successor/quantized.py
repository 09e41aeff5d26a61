"""Quantized tensors and packed weights, in plain operators: a program that has others loads only where they are known.

Values are rounded as PyTorch's reference implementation does (torch/ao/quantization/fx/_decomposed.py).
"""

import torch

from gate_worker.successor import values

BOUNDS = {torch.quint8: (0, 255, torch.uint8), torch.qint8: (-128, 127, torch.int8)}


class Quantized:
    """Integers with their scale, as the graph's quantized tensor."""

    def __init__(self, integers, scale, zero_point, dtype):
        self.integers, self.scale, self.zero_point, self.dtype = integers, scale, zero_point, dtype

    def dequantized(self):
        return (self.integers.to(torch.float32) - self.zero_point) * self.scale


def quantize(tensor, scale, zero_point, dtype=torch.quint8):
    if dtype not in BOUNDS:
        raise NotImplementedError("a tensor quantized to %s" % dtype)
    low, high, kind = BOUNDS[dtype]
    scale, zero_point = float(plain(scale)), int(plain(zero_point))
    integers = torch.clamp(torch.round(tensor * (1.0 / scale)) + zero_point, low, high).to(kind)
    return Quantized(integers, scale, zero_point, dtype)


def plain(value):
    return value.item() if isinstance(value, torch.Tensor) else value


def concerns(kind, inputs):
    if kind.startswith("quantized::") or kind == "aten::quantize_per_tensor":
        return True
    return kind.startswith("aten::") and any(isinstance(item, Quantized) for item in flat(inputs))


def flat(inputs):
    for item in inputs:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


def run(kind, inputs, packed, node):
    """Return what a node answers; ``packed`` gives the tensors, and the rest, of packed weights."""
    name = kind.partition("::")[2]
    if kind == "aten::quantize_per_tensor":
        return quantize(inputs[0], inputs[1], inputs[2], values.DTYPES[inputs[3]])
    if kind == "aten::dequantize":
        return inputs[0].dequantized()
    if kind == "aten::q_scale":
        return inputs[0].scale
    if kind == "aten::q_zero_point":
        return inputs[0].zero_point
    if kind == "aten::size":
        return list(inputs[0].integers.shape) if len(inputs) == 1 else inputs[0].integers.shape[inputs[1]]
    if kind == "aten::dim":
        return inputs[0].integers.dim()
    if kind.startswith("aten::"):
        return as_quantized(node, inputs)
    if name not in OPERATORS:
        raise NotImplementedError("%s has no like among the operators of exported programs" % kind)
    return OPERATORS[name](packed, *inputs)


def as_quantized(node, inputs):
    """Return what an operator that keeps the scale, such as a pooling, answers: of the values, quantized again."""
    first = next(item for item in flat(inputs) if isinstance(item, Quantized))
    opened = [
        [opened_of(part) for part in item] if isinstance(item, (list, tuple)) else opened_of(item) for item in inputs
    ]
    answer = values.operator_of(node)(opened)
    if isinstance(answer, torch.Tensor) and answer.is_floating_point():
        return quantize(answer, first.scale, first.zero_point, first.dtype)
    return answer


def opened_of(item):
    return item.dequantized() if isinstance(item, Quantized) else item


def unpacked(weights):
    """Return the tensors of packed weights (weight, bias), in floating point, and their convolution's numbers."""
    try:
        tensors = weights.unpack()
    except (AttributeError, RuntimeError):
        tensors = weights.__getstate__()[:2]
    weight, bias = tensors if isinstance(tensors, (tuple, list)) else (tensors, None)
    weight = weight.dequantize() if weight.is_quantized else weight.float()
    others = ()
    if hasattr(weights, "stride"):
        others = (list(weights.stride()), list(weights.padding()), list(weights.dilation()), weights.groups())
    return (weight, bias), others


def requantized(function, activation=None):
    """Return the operator that quantizes what ``function`` answers, with scale and zero point behind its arguments."""

    def run_quantized(packed, *given):
        *arguments, scale, zero_point = given
        answer = function(packed, *arguments)
        return quantize(answer if activation is None else activation(answer), scale, zero_point)

    return run_quantized


def linear(packed, given, weights):
    (weight, bias), _ = packed(weights)
    return torch.nn.functional.linear(given.dequantized(), weight, bias)


def convolution(packed, given, weights):
    (weight, bias), (stride, padding, dilation, groups) = packed(weights)
    dims = weight.dim() - 2
    convolve = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}[dims]
    return convolve(given.dequantized(), weight, bias, stride[-dims:], padding[-dims:], dilation[-dims:], groups)


def add(packed, left, right):
    del packed
    return left.dequantized() + right.dequantized()


def mul(packed, left, right):
    del packed
    return left.dequantized() * right.dequantized()


def linear_dynamic(packed, given, weights, reduce_range=None):
    """Quantize the input by its own range, as FBGEMM does: to 7 bits with ``reduce_range``."""
    (weight, bias), _ = packed(weights)
    high = 127 if reduce_range else 255
    least, largest = torch.aminmax(given)
    least, largest = torch.clamp(least, max=0.0), torch.clamp(largest, min=0.0)
    scale = torch.clamp((largest - least) / high, min=torch.finfo(torch.float32).eps)
    zero_point = torch.clamp(-torch.round(least / scale), 0, high)
    integers = torch.clamp(torch.round(given * (1.0 / scale)) + zero_point, 0, high)
    return torch.nn.functional.linear((integers - zero_point) * scale, weight, bias)


def linear_dynamic_fp16(packed, given, weights):
    (weight, bias), _ = packed(weights)
    return torch.nn.functional.linear(given, weight, bias)


def cat(packed, tensors, dim, scale=None, zero_point=None):
    del packed
    first = tensors[0]
    answer = torch.cat([item.dequantized() for item in tensors], dim)
    scale, zero_point = first.scale if scale is None else scale, first.zero_point if zero_point is None else zero_point
    return quantize(answer, scale, zero_point, first.dtype)


def embedding_bag_of_rows(packed, table, *given):
    """Each row: bytes, then its scale and its offset as floats."""
    del packed
    scales = table[:, -8:].contiguous().view(torch.float32)
    return embedding_bag(table[:, :-8].float() * scales[:, :1] + scales[:, 1:2], *given)


def embedding_bag_packed(packed, weights, *given):
    (table, _), _ = packed(weights)
    return embedding_bag(table, *given)


def embedding_bag(table, indices, offsets=None, *rest):
    """``rest``: scale_grad_by_freq, mode, pruned, per_sample_weights, compressed_indices, include_last_offset."""
    weights, last = rest[3] if len(rest) > 3 else None, bool(rest[5]) if len(rest) > 5 else False
    offsets = None if offsets is None else offsets.long()
    return torch.nn.functional.embedding_bag(
        indices.long(), table, offsets, mode="sum", per_sample_weights=weights, include_last_offset=last
    )


FUSED = {
    "add": add,
    "conv1d": convolution,
    "conv2d": convolution,
    "conv3d": convolution,
    "linear": linear,
    "mul": mul,
}
OPERATORS = {
    **{name: requantized(function) for name, function in FUSED.items()},
    **{name + "_relu": requantized(function, torch.relu) for name, function in FUSED.items()},
    "cat": cat,
    "embedding_bag_byte": embedding_bag_packed,
    "embedding_bag_byte_rowwise_offsets": embedding_bag_of_rows,
    "linear_dynamic": linear_dynamic,
    "linear_dynamic_fp16": linear_dynamic_fp16,
}
"""Operators of ``quantized::`` by name."""
