"""Shapes of quantized weights, which stand in archives as packed objects."""

import torch

UNPACK = {"linear": "linear_unpack", "conv2d": "conv2d_unpack", "embedding_bag": "embedding_bag_unpack"}


def shape(kind, packed):
    """Return the shape of a packed weight of ``kind``, None where it is something else."""
    if packed is None:
        return None
    try:
        unpacked = getattr(torch.ops.quantized, UNPACK[kind])(packed)
        weight = unpacked[0] if isinstance(unpacked, (tuple, list)) else unpacked
        return list(weight.shape)
    except (AttributeError, RuntimeError, TypeError):
        return None
