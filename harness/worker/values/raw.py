"""Makes tensors of little-endian bytes in row-major order, without NumPy."""

import torch

from gate_worker.requests.values import BadInputs

MOST_DIMENSIONS = 64


def elements_of(shape, where):
    """Return how many elements a tensor has; raise ``BadInputs`` for sizes >= 0 that no tensor has."""
    elements = 1
    for size in shape[:MOST_DIMENSIONS]:
        elements *= min(size, 1 << 63)
    if len(shape) > MOST_DIMENSIONS or any(size >= 1 << 63 for size in shape) or elements >= 1 << 63:
        raise BadInputs("%s has a shape that no tensor has" % where)
    return elements


def from_bytes(data, dtype, shape, where):
    """Return a tensor of its own memory; raise ``BadInputs`` where the number of bytes is another than promised."""
    promised = elements_of(shape, where) * torch.empty(0, dtype=dtype).element_size()
    if len(data) != promised:
        raise BadInputs("%s has %d bytes, and its shape and dtype promise %d" % (where, len(data), promised))
    try:
        return _shaped(data, dtype, list(shape))
    except (RuntimeError, TypeError, OverflowError, ValueError):
        raise BadInputs("%s has a shape that no tensor has: %s" % (where, list(shape)))


def _shaped(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=dtype)
    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if dtype == torch.bool:
        return raw.ne(0).reshape(shape)
    return raw.clone().view(dtype).reshape(shape)


def swapped(data, width):
    """Return ``data`` with the bytes of every number of ``width`` bytes turned round."""
    if width == 1 or not data:
        return data
    turned = bytearray(len(data))
    for index in range(width):
        turned[index::width] = data[width - 1 - index :: width]
    return bytes(turned)
