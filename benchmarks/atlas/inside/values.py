"""Calls of operators as data: what a worker in one release writes, and one in another reads. Python 3.8, no packages.

A tensor is ``{"dtype": "float32", "shape": [2, 3], "values": [...]}``, with ``"strides"`` where it is not contiguous:
then the values are those of its storage in a call, and in the order of indices in an answer. A complex number is ``{"complex": [re, im]}``, a device ``{"device": "cpu"}``.
Everything else is as in JSON, with NaN and infinities; dtypes are the numbers that TorchScript has for them.
"""

import torch

LARGEST = 4096
"""Elements of a tensor that is written down."""


class TooLarge(ValueError):
    pass


class NotData(ValueError):
    """A value that has no form here: a sparse or quantized tensor, a generator."""


def decode(value):
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "complex" in value:
        return complex(*value["complex"])
    if "device" in value:
        return torch.device(value["device"])
    dtype, shape = getattr(torch, value["dtype"]), value["shape"]
    flat = value["values"]
    if dtype.is_complex:
        flat = [complex(*item) for item in flat]
    made = torch.tensor(flat, dtype=dtype)
    return made.reshape(shape) if "strides" not in value else made.as_strided(shape, value["strides"])


def encode(value, stored=False):
    """Return a value as data; of a tensor its elements in order, or if ``stored`` those of its storage, for a call."""
    if isinstance(value, torch.Tensor):
        return _tensor(value, stored)
    if isinstance(value, (list, tuple)):
        return [encode(item, stored) for item in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise NotData(type(value).__name__)


def _tensor(tensor, stored):
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise NotData("a tensor that is not dense, or not on the CPU")
    if tensor.numel() > LARGEST:
        raise TooLarge(str(tuple(tensor.shape)))
    plain = tensor.detach().resolve_conj().resolve_neg()
    inside = stored and plain.numel() and not plain.is_contiguous()
    size = 1 + sum((size - 1) * step for size, step in zip(plain.shape, plain.stride()))
    flat = (plain.as_strided((size,), (1,)) if inside else plain.reshape(-1)).tolist()
    if plain.is_complex():
        flat = [[item.real, item.imag] for item in flat]
    written = {"dtype": str(plain.dtype).partition(".")[2], "shape": list(plain.shape), "values": flat}
    if not plain.is_contiguous():
        written["strides"] = list(plain.stride())
    return written
