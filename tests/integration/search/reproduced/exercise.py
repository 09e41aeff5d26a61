# mypy: ignore-errors
"""Puts values of every kind through a reproducer's own code, in an environment under test: made anew and compared."""

import ctypes
import importlib.util
import sys

import torch


def loaded(path):
    spec = importlib.util.spec_from_file_location("reproduce", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree_of(tensor, data):
    """Return the wire's tree of a strided tensor, its bytes appended to ``data``."""
    stored = tensor.int_repr() if tensor.is_quantized else tensor
    stored = stored.contiguous()
    nbytes = stored.numel() * stored.element_size()
    spec = {
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "device": "cpu",
        "offset": len(data),
        "nbytes": nbytes,
    }
    if tensor.is_quantized and tensor.qscheme() == torch.per_tensor_affine:
        spec["quantizer"] = {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    elif tensor.is_quantized:
        spec["quantizer"] = {
            "scales": tensor.q_per_channel_scales().tolist(),
            "zero_points": tensor.q_per_channel_zero_points().tolist(),
            "axis": tensor.q_per_channel_axis(),
        }
    data += ctypes.string_at(stored.data_ptr(), nbytes) if nbytes else b""
    return ["tensor", spec]


def main():
    reproduce = loaded(sys.argv[1])
    torch.manual_seed(0)
    plain = torch.randn(3, 4)
    given = {
        "transposed": plain.t(),
        "expanded": torch.randn(1, 4).expand(3, 4),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "bool": plain > 0,
        "half": plain.half(),
        "brain": plain.bfloat16(),
        "double": plain.double(),
        "int": torch.arange(5),
        "complex": torch.complex(plain, -plain),
        "nan": torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0]),
        "quantized": torch.quantize_per_tensor(plain, 0.1, 3, torch.quint8),
        "by channel": torch.quantize_per_channel(
            plain, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]), 0, torch.qint8
        ),
    }
    data = bytearray()
    trees = {name: tree_of(tensor, data) for name, tensor in given.items()}
    values = reproduce.Values(torch, bytes(data))
    strict = reproduce.Comparison(torch, {}, strides=True)
    for name, tensor in given.items():
        anew = values.value(trees[name])
        assert strict.differences(anew, tensor, name) == [], (name, strict.differences(anew, tensor, name))

    nested = [
        "dict",
        [[["str", "a"], ["tuple", [trees["int"], ["none", None], ["float", "nan"]]]], [["int", 1], ["list", []]]],
    ]
    anew = values.value(nested)
    lenient = reproduce.Comparison(torch, {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5})
    assert lenient.differences(anew, values.value(nested), "output") == []

    def differ(found, expected):
        return bool(lenient.differences(found, expected, "output"))

    one = torch.ones(3)
    assert not differ(one + 1e-6, one)
    assert differ(one + 1e-3, one)
    assert not differ(torch.complex(one, one) * (1 + 1e-7), torch.complex(one, one))
    assert differ(torch.complex(one, one), torch.complex(one, -one))
    assert differ(one.double(), one)
    assert differ(one.reshape(1, 3), one)
    assert differ(one.int(), one.int() + 1)
    assert differ(torch.tensor([1.0, float("nan")]), torch.tensor([float("nan"), 1.0]))
    assert differ(torch.tensor([float("inf")]), torch.tensor([-float("inf")]))
    assert not differ(one.t(), one.clone())
    assert differ(None, one)
    assert differ([one], [one, one])
    assert differ({"a": one}, {"b": one})
    assert differ({"a": one + 1}, {"a": one})
    assert differ(True, 1)
    assert differ("x", reproduce.Opaque("Tensor"))
    quanta = torch.quantize_per_tensor(one, 0.1, 0, torch.quint8)
    assert not differ(torch.quantize_per_tensor(one + 0.1, 0.1, 0, torch.quint8), quanta)
    assert differ(torch.quantize_per_tensor(one + 0.3, 0.1, 0, torch.quint8), quanta)
    print("exercised")


main()
