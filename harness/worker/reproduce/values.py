"""Recorded values, made anew, and what differs from them beyond rounding. A part of ``reproduce.py``."""


class Opaque:
    """A value of which nothing but the name of its type was recorded."""

    def __init__(self, name):
        self.name = name


class Values:
    """Makes recorded values anew, on ``device``; fresh ones each time, since a call may change them in place."""

    def __init__(self, torch, data, device="cpu"):
        self.torch, self.data, self.device = torch, data, device

    def value(self, tree):
        kind, content = tree
        if kind == "tensor":
            return self.tensor(content)
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind in ("tuple", "list"):
            items = [self.value(item) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "namedtuple":
            return tuple(self.value(item) for _, item in content[1])
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "device":
            return self.torch.device(content)
        return Opaque(content) if kind == "object" else content

    def tensor(self, spec):
        torch = self.torch
        dtype, quantizer = getattr(torch, spec["dtype"]), spec.get("quantizer")
        stored = dtype
        if quantizer is not None:
            stored = {"quint8": torch.uint8, "qint8": torch.int8}.get(spec["dtype"], torch.int32)
        data = bytearray(self.data[spec["offset"] : spec["offset"] + spec["nbytes"]])
        if data:
            tensor = torch.frombuffer(data, dtype=torch.uint8).clone().view(stored).reshape(spec["shape"])
        else:
            tensor = torch.empty(spec["shape"], dtype=stored)
        if quantizer is not None:
            tensor = self.quantized(tensor, quantizer)
        elif "layout" in spec:
            tensor = tensor.to_sparse() if spec["layout"] == "sparse_coo" else self.refused(spec["layout"])
        elif tensor.numel() and list(tensor.stride()) != spec["stride"]:
            tensor = self.with_strides(tensor, spec["stride"])
        return tensor.to(self.device)

    def quantized(self, tensor, quantizer):
        torch = self.torch
        if "axis" not in quantizer:
            return torch._make_per_tensor_quantized_tensor(tensor, quantizer["scale"], quantizer["zero_point"])
        scales = torch.tensor(quantizer["scales"], dtype=torch.float64)
        zero_points = torch.tensor(quantizer["zero_points"], dtype=torch.int64)
        return torch._make_per_channel_quantized_tensor(tensor, scales, zero_points, quantizer["axis"])

    def refused(self, layout):
        raise TypeError("a tensor of layout %s cannot be made anew" % layout)

    def with_strides(self, tensor, strides):
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


class Comparison:
    """Says in words what differs beyond rounding: |difference| <= factor of the dtype x largest expected value."""

    def __init__(self, torch, tolerances, *, strides=False):
        self.torch, self.tolerances, self.strides = torch, tolerances, strides

    def differences(self, found, expected, path):
        """Return what differs, a text each."""
        if isinstance(expected, self.torch.Tensor):
            if not isinstance(found, self.torch.Tensor):
                return ["%s: a tensor was expected" % path]
            return self.of_tensors(found, expected, path)
        if isinstance(expected, (list, tuple)):
            if not isinstance(found, (list, tuple)) or len(found) != len(expected):
                return ["%s: %d items were expected" % (path, len(expected))]
            parts = [self.differences(*pair, "%s[%d]" % (path, i)) for i, pair in enumerate(zip(found, expected))]
            return [problem for part in parts for problem in part]
        if isinstance(expected, dict):
            return self.of_dicts(found, expected, path)
        if isinstance(expected, Opaque):
            same = type(found).__name__ == expected.name
            return [] if same else ["%s: a %s was expected" % (path, expected.name)]
        return self.of_plain(found, expected, path)

    def of_plain(self, found, expected, path):
        same = type(found) is type(expected) and (found == expected or repr(found) == repr(expected))  # NaN
        if not same and isinstance(expected, (float, complex)) and isinstance(found, type(expected)):
            same = abs(found - expected) <= self.tolerances.get("float64", 0.0) * abs(expected)
        return [] if same else ["%s: expected %r, got %r" % (path, expected, found)]

    def of_dicts(self, found, expected, path):
        if not isinstance(found, dict):
            return ["%s: a dict was expected" % path]
        tensors = any(isinstance(key, self.torch.Tensor) for key in expected)  # these have no order and no equals
        if not tensors and set(found) != set(expected):
            return ["%s: expected the keys %s, got %s" % (path, sorted(expected, key=repr), sorted(found, key=repr))]
        if tensors:
            return self.differences(list(found.items()), list(expected.items()), path)
        parts = [self.differences(found[key], value, "%s[%r]" % (path, key)) for key, value in expected.items()]
        return [problem for part in parts for problem in part]

    def of_tensors(self, found, expected, path):
        torch = self.torch
        for what in ("dtype", "shape", "layout"):
            if getattr(found, what) != getattr(expected, what):
                return ["%s: expected %s %s, got %s" % (path, what, getattr(expected, what), getattr(found, what))]
        if self.strides and found.stride() != expected.stride():
            return ["%s: expected strides %s, got %s" % (path, expected.stride(), found.stride())]
        found, expected = found.detach().cpu(), expected.cpu()
        if expected.layout != torch.strided:
            found, expected = found.to_dense(), expected.to_dense()
        factor = self.tolerances.get(str(expected.dtype).replace("torch.", ""), 0.0)
        if expected.is_quantized:
            found, expected = found.int_repr(), expected.int_repr()
            factor = None
        if expected.is_complex():
            found, expected = torch.view_as_real(found.resolve_conj()), torch.view_as_real(expected)
        wide = torch.float64 if expected.is_floating_point() else torch.int64
        return self.of_numbers(found.to(wide), expected.to(wide), path, factor)

    def of_numbers(self, found, expected, path, factor):
        torch = self.torch
        if expected.is_floating_point():
            finite = torch.isfinite(expected)
            infinite = [torch.where(torch.isinf(part), part, torch.zeros_like(part)) for part in (found, expected)]
            if not torch.equal(torch.isnan(found), torch.isnan(expected)) or not torch.equal(*infinite):
                return ["%s: NaN or Inf in other places" % path]
            found, expected = found[finite], expected[finite]
        if not expected.numel():
            return []
        largest = float(expected.abs().max())
        allowed = 1.0 if factor is None else factor * largest
        off = float((found - expected).abs().max())
        if off <= allowed:
            return []
        return ["%s: off by %.3g, the largest value is %.3g, rounding explains %.3g" % (path, off, largest, allowed)]
