"""Recorded values made anew, from raw little-endian bytes and without NumPy. Shared by the worker and reproducers."""

import math


def rebuilt(tree, leaf):
    """Return a tree of the wire with ``leaf(kind, content)`` in the place of each of its leaves."""
    kind, content = tree
    if kind in ("tuple", "list"):
        return [kind, [rebuilt(item, leaf) for item in content]]
    if kind == "dict":
        return [kind, [[rebuilt(item, leaf) for item in pair] for pair in content]]
    if kind == "namedtuple":
        return [kind, [content[0], [[name, rebuilt(item, leaf)] for name, item in content[1]]]]
    return leaf(kind, content)


class Opaque:
    """A value of which nothing but the name of its type was recorded."""

    def __init__(self, name):
        self.name = name


class RecordedValues:
    """Makes recorded values anew, on ``device``; fresh ones each time, since a call may change them in place."""

    def __init__(self, torch, data, device="cpu"):
        self.torch, self.data, self.device = torch, data, device

    def value(self, tree, larger=0):
        """Return a value of ``tree``, in which the dimensions that ``grows`` names are ``larger`` than recorded."""
        kind, content = tree
        if kind == "tensor":
            return self.grown(self.tensor(content), content.get("grows", ()), larger)
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind in ("tuple", "list"):
            items = [self.value(item, larger) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "namedtuple":
            return tuple(self.value(item, larger) for _, item in content[1])
        if kind == "dict":
            return {self.value(key): self.value(item, larger) for key, item in content}
        if kind == "device":
            return self.torch.device(content)
        return Opaque(content) if kind == "object" else content

    def grown(self, tensor, dimensions, larger):
        """Return ``tensor`` with each of ``dimensions`` so much larger: its values again, from the first one on."""
        for dim in dimensions if larger else ():
            size = tensor.size(dim)
            tensor = tensor.index_select(dim, self.torch.arange(size + larger, device=self.device) % size)
        return tensor

    def bytes_of(self, spec):
        start, size = spec["offset"], spec["nbytes"]
        if start < 0 or size < 0 or start + size > len(self.data):
            raise ValueError("a recorded input is damaged: it lies outside of its file")
        return self.data[start : start + size]

    def tensor(self, spec):
        torch, data = self.torch, bytearray(self.bytes_of(spec))
        dtype, quantizer = getattr(torch, spec["dtype"]), spec.get("quantizer")
        stored = dtype
        if quantizer is not None:
            stored = {"quint8": torch.uint8, "qint8": torch.int8}.get(spec["dtype"], torch.int32)
        if len(data) != math.prod(spec["shape"]) * torch.empty(0, dtype=stored).element_size():
            raise ValueError("a recorded input is damaged: %d bytes for shape %s" % (len(data), spec["shape"]))
        if data:
            tensor = torch.frombuffer(data, dtype=torch.uint8).clone().view(stored).reshape(spec["shape"])
        else:
            tensor = torch.empty(spec["shape"], dtype=stored)
        if quantizer is not None:
            tensor = self.quantized(tensor, quantizer)
        elif "stride" in spec and tensor.numel() and list(tensor.stride()) != spec["stride"]:
            tensor = self.with_strides(tensor, spec["stride"])
        return tensor.to(self.device)

    def quantized(self, tensor, quantizer):
        torch = self.torch
        if "axis" not in quantizer:
            return torch._make_per_tensor_quantized_tensor(tensor, quantizer["scale"], quantizer["zero_point"])
        scales = torch.tensor(quantizer["scales"], dtype=torch.float64)
        zero_points = torch.tensor(quantizer["zero_points"], dtype=torch.int64)
        return torch._make_per_channel_quantized_tensor(tensor, scales, zero_points, quantizer["axis"])

    def with_strides(self, tensor, strides):
        """Return a tensor of the same values and these strides; elements may share memory, as after an expand."""
        torch = self.torch
        size = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, strides))
        if size >= tensor.numel():
            return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
        offsets = torch.zeros(tensor.shape, dtype=torch.int64)
        for dim, stride in enumerate(strides):
            shape = [-1 if other == dim else 1 for other in range(tensor.dim())]
            offsets += stride * torch.arange(tensor.shape[dim]).reshape(shape)
        shared = torch.empty([size], dtype=tensor.dtype)
        shared[offsets.reshape(-1)] = tensor.reshape(-1)
        return shared.as_strided(tensor.shape, strides)
