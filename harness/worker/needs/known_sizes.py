"""What is known of a value before any call: sizes that follow from weights and constants."""

import torch

from gate_worker.needs.value_requirements import ValueRequirements

MOST_DEPTH = 25
ELEMENTWISE = frozenset(
    [
        "abs",
        "add",
        "sub",
        "mul",
        "div",
        "rsub",
        "pow",
        "relu",
        "relu_",
        "gelu",
        "silu",
        "silu_",
        "tanh",
        "sigmoid",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "square",
        "neg",
        "clamp",
        "clamp_min",
        "dropout",
        "dropout_",
        "softmax",
        "log_softmax",
        "contiguous",
        "clone",
        "detach",
        "hardswish",
        "hardtanh",
        "leaky_relu",
        "elu",
        "maximum",
        "minimum",
        "remainder",
        "floor",
        "round",
        "layer_norm",
        "batch_norm",
        "linalg_cholesky",
        "to",
        "type_as",
        "masked_fill",
        "normal",
        "where",
        "add_",
        "mul_",
        "sub_",
        "div_",
        "cos",
        "sin",
        "float",
        "half",
        "cumsum",
        "conj",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "floor_divide",
        "fmod",
        "prelu",
        "feature_dropout",
        "group_norm",
        "instance_norm",
        "hardsigmoid",
        "softplus",
        "mish",
        "selu",
        "celu",
        "relu6",
        "lerp",
        "nan_to_num",
        "sign",
        "expm1",
        "log1p",
        "erf",
    ]
)

CASTS = frozenset(("double", "long", "int", "bool", "bfloat16", "cpu", "cuda", "dequantize"))


def operator(step):
    """Return the name of an operator without namespace, or None for what is none of torch's own."""
    return step.kind[6:] if step.kind.startswith("aten::") else None


def known(flow, name, depth=0):
    """Return the rank and sizes that a value certainly has, as requirements; dimensions count from the back."""
    if name not in flow.sizes:
        flow.sizes[name] = ValueRequirements()  # of a value that is made of itself, in a loop
        flow.sizes[name] = _known(flow, name, depth)
    return flow.sizes[name]


def _known(flow, name, depth):
    certain, value = flow.constant(name)
    if certain and isinstance(value, torch.Tensor):
        return ValueRequirements(
            dtype=value.dtype, rank=value.dim(), sizes={d - value.dim(): s for d, s in enumerate(value.shape)}
        )
    step = flow.producer(name)
    if depth > MOST_DEPTH:
        return ValueRequirements()
    if step is None or step.kind in ("prim::If", "prim::Loop"):
        found = ValueRequirements()
        for origin in flow.origins(name)[:3]:
            found.merge(known(flow, origin, depth + 1))
        return found
    what = operator(step)
    if what in ELEMENTWISE or what in CASTS:
        return _broadcast([known(flow, item, depth + 1) for item in step.inputs[:2]])
    if what == "linear":
        return _last(known(flow, step.inputs[1], depth + 1), -2, known(flow, step.inputs[0], depth + 1))
    if what == "one_hot":
        certain, classes = flow.constant(step.inputs[1])
        return (
            ValueRequirements(sizes={-1: classes})
            if certain and isinstance(classes, int) and classes > 0
            else ValueRequirements()
        )
    if what == "embedding":
        found = _last(known(flow, step.inputs[0], depth + 1), -1, ValueRequirements())
        index = known(flow, step.inputs[1], depth + 1)
        found.sizes.update({d - 1: size for d, size in index.sizes.items()})
        return found
    if what == "embedding_bag":
        return _last(known(flow, step.inputs[0], depth + 1), -1, ValueRequirements(rank=2))
    if what in ("matmul", "bmm", "mm"):
        return _last(known(flow, step.inputs[1], depth + 1), -1, known(flow, step.inputs[0], depth + 1))
    if what == "t" or (what in ("transpose", "unsqueeze", "squeeze") and len(step.inputs) > 1):
        return _moved(flow, step, what, known(flow, step.inputs[0], depth + 1))
    return ValueRequirements()


def _broadcast(found):
    merged = ValueRequirements()
    for need in found:
        merged.merge(need.reshaped(None, lambda d: d))
    for dimension in list(merged.sizes):
        sizes = [need.sizes[dimension] for need in found if need.sizes.get(dimension, 1) != 1]
        if sizes:
            merged.sizes[dimension] = sizes[0]
        else:
            del merged.sizes[dimension]
    return merged


def _last(weight, dimension, before):
    """Return ``before`` with its last size replaced by that of the weight's ``dimension``."""
    found = before.reshaped(before.rank, lambda d: d if d < -1 else None)
    found.dtype = weight.dtype
    if dimension in weight.sizes:
        found.sizes[-1] = weight.sizes[dimension]
    return found


def _moved(flow, step, what, need):
    numbers = [flow.constant(item) for item in step.inputs[1:]]
    if not all(certain and isinstance(number, int) for certain, number in numbers):
        return ValueRequirements()
    numbers = [number for _, number in numbers]
    if what in ("t", "transpose"):
        found = need.transposed(*([-2, -1] if what == "t" else numbers[:2]))
    elif what == "unsqueeze":
        found = need.one_more(numbers[0])
    else:
        found = need.one_less(numbers[0])
    if found.rank is not None:
        rank = found.rank
        return found.reshaped(rank, lambda d: d if d < 0 else d - rank)
    return found.reshaped(None, lambda d: d if d < 0 else None)
