"""Runs one operator with recorded inputs and compares its outputs with the recorded ones. Needs torch and nothing else.

    python reproduce.py        exit code 0: as recorded, 1: otherwise, 125: cannot be tested here

So it can be given to ``git bisect run``. What is compared stands in ``node.json`` beside it, bytes in ``tensors.bin``.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GOOD, BAD, UNTESTABLE = 0, 1, 125
DEADLINE_S = 60


def main():
    if sys.argv[1:] == ["--here"]:
        return run()
    command = [sys.executable, os.path.abspath(__file__), "--here"]
    try:
        code = subprocess.call(command, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        print("hangs: no answer after %d s" % DEADLINE_S)
        return BAD
    if code < 0:
        print("crashes: signal %d" % -code)
        return BAD
    return code


def run():
    try:
        import torch
    except Exception as error:
        print("torch cannot be imported: %s" % error)
        return UNTESTABLE
    with open(os.path.join(HERE, "node.json"), encoding="utf-8") as stream:
        node = json.load(stream)
    with open(os.path.join(HERE, "tensors.bin"), "rb") as stream:
        values = Values(torch, stream.read())
    print("torch %s: %s" % (torch.__version__, node["operator"]))
    torch.set_num_threads(node["threads"])
    try:
        call = operator_of(torch, node["schema"])
        inputs = [values.value(tree) for tree in node["inputs"]]
        expected = [values.value(tree) for tree in node["outputs"]]
        if node["generator"] is not None:
            torch.set_rng_state(values.value(node["generator"]))
    except Exception as error:
        print("cannot be tested here: %s: %s" % (type(error).__name__, error))
        return UNTESTABLE
    try:
        with torch.no_grad():
            found = call(inputs)
    except Exception as error:
        print("raises %s: %s" % (type(error).__name__, str(error).strip().splitlines()[0]))
        return BAD
    found = [found] if len(expected) == 1 else [] if not expected else list(found)
    problems = []
    for index, (mine, wanted) in enumerate(zip(found, expected)):
        problems += differences(torch, mine, wanted, "output[%d]" % index, node)
    print("; ".join(problems) or "as recorded")
    return BAD if problems else GOOD


def operator_of(torch, schema):
    """Return what calls the overload of ``schema`` with a list of inputs."""
    name, _, overload = schema.partition("(")[0].partition(".")
    namespace, _, base = name.partition("::")
    call = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    arguments = torch._C.parse_schema(schema).arguments
    keywords = [argument.name for argument in arguments if argument.kwarg_only]
    first = len(arguments) - len(keywords)
    return lambda inputs: call(*inputs[:first], **dict(zip(keywords, inputs[first:])))


def differences(torch, found, expected, path, node):
    """Return in words what differs beyond rounding."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(found, torch.Tensor):
            return ["%s: a tensor was expected" % path]
        return tensor_differences(torch, found, expected, path, node)
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return ["%s: %d items were expected" % (path, len(expected))]
        parts = [differences(torch, *pair, "%s[%d]" % (path, i), node) for i, pair in enumerate(zip(found, expected))]
        return [problem for part in parts for problem in part]
    same = found == expected or repr(found) == repr(expected)  # NaN is not equal to itself
    return [] if same else ["%s: expected %r, got %r" % (path, expected, found)]


def tensor_differences(torch, found, expected, path, node):
    for what in ("dtype", "shape"):
        if getattr(found, what) != getattr(expected, what):
            return ["%s: expected %s %s, got %s" % (path, what, getattr(expected, what), getattr(found, what))]
    if node["strides"] and found.stride() != expected.stride():
        return ["%s: expected strides %s, got %s" % (path, expected.stride(), found.stride())]
    factor = node["tolerances"].get(str(expected.dtype).replace("torch.", ""), 0.0)
    if expected.is_quantized:
        found, expected = found.int_repr(), expected.int_repr()
        factor = None
    if expected.is_complex():
        found, expected = torch.view_as_real(found.resolve_conj()), torch.view_as_real(expected)
    wide = torch.float64 if expected.is_floating_point() else torch.int64
    found, expected = found.to(wide), expected.to(wide)
    if wide is torch.float64:
        finite = torch.isfinite(expected)
        placed = torch.equal(torch.isnan(found), torch.isnan(expected)) and torch.equal(
            torch.where(torch.isinf(found), found, torch.zeros_like(found)),
            torch.where(torch.isinf(expected), expected, torch.zeros_like(expected)),
        )
        if not placed:
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


class Values:
    """Recorded values, made anew."""

    def __init__(self, torch, data):
        self.torch, self.data = torch, data

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
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "device":
            return self.torch.device(content)
        if kind in ("namedtuple", "object"):
            raise TypeError("a value of type %s cannot be made anew" % content)
        return content

    def tensor(self, spec):
        torch = self.torch
        if "layout" in spec:
            raise TypeError("a tensor of layout %s cannot be made anew" % spec["layout"])
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
            return torch._make_per_tensor_quantized_tensor(tensor, quantizer["scale"], quantizer["zero_point"])
        if tensor.numel() and list(tensor.stride()) != spec["stride"]:
            tensor = self.with_strides(tensor, spec["stride"])
        return tensor.to(spec["device"])

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


if __name__ == "__main__":
    sys.exit(main())
