"""Makes tensors of little-endian bytes in row-major order, without NumPy."""

import torch

from gate_worker.given_values import BadInputs


def from_bytes(data, dtype, shape, where):
    """Return a tensor of its own memory; raise ``BadInputs`` where the number of bytes is another than promised."""
    elements = 1
    for size in shape:
        elements *= size
    promised = elements * torch.empty(0, dtype=dtype).element_size()
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
