"""A case as Python that needs no file: what can be written so, and what cannot."""

import ast
import struct
from typing import Any

import pytest

from harness.search.reproduce.snippet import operator_snippet, snippet

CODE = """\
class PlaceholderModule(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.PlaceholderModule,
    x: Tensor,
    k: int) -> Tensor:
    y = torch.cos(x)
    return torch.mul(y, k)
"""
DATA = struct.pack("<4f", 0.1, 2.0, -3.5, 1e-8) + struct.pack("<?", True) + bytes(400)
PROFILE = {
    "intra_op_threads": 2,
    "inter_op_threads": 1,
    "switches": {"cpu_fusion": True, "inference_mode": True, "fusion_depth": 0},
    "env": {},
    "numerics": {},
    "libraries": [],
}


def tensor(**changes: Any) -> list[Any]:
    spec = {"dtype": "float32", "shape": [2, 2], "stride": [2, 1], "offset": 0, "nbytes": 16, "device": "cpu"}
    return ["tensor", {**spec, **changes}]


def written(*arguments: Any, code: str = CODE, **changes: Any) -> str:
    request = {"set": "example", "method": "forward", "arguments": ["tuple", list(arguments)], "calls": 3}
    case = {"requests": [request], "reset": None, "profiles": {"new": {**PROFILE, **changes.pop("profile", {})}}}
    return snippet(code, {**case, **changes}, DATA)


def test_plain_code_on_plain_values_is_written_out() -> None:
    text = written(tensor(), ["int", 3])
    ast.parse(text)
    assert "def forward(x: Tensor,\n  k: int) -> Tensor:\n  y = torch.cos(x)\n  return torch.mul(y, k)\n" in text
    assert "    torch.tensor([[0.1, 2.0], [-3.5, 1e-08]], dtype=torch.float32),\n    3,\n" in text
    assert "torch.set_num_threads(2)\ntorch._C._jit_override_can_fuse_on_cpu(True)\n" in text
    assert 'torch.jit.set_fusion_strategy([("STATIC", 0), ("DYNAMIC", 0)])' in text
    assert "with torch.no_grad(), torch.inference_mode(True):\n    for call in range(3):" in text
    assert "self" not in text


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (tensor(shape=[], stride=[]), "torch.tensor(0.1, dtype=torch.float32)"),
        (tensor(shape=[0, 2], stride=[2, 1]), "torch.tensor([], dtype=torch.float32).reshape([0, 2])"),
        (tensor(dtype="bool", shape=[1], stride=[1], offset=16), "torch.tensor([True], dtype=torch.bool)"),
        (tensor(shape=[10, 10], stride=[10, 1], dtype="float64"), "torch.randn([10, 10]).to(torch.float64)"),
        (["list", [["int", 1], ["bool", True]]], "[1, True]"),
        (["tuple", [["none", None]]], "(None, )"),
        (["float", "0.25"], "0.25"),
        (["str", "a'b"], '"a\'b"'),
    ],
)
def test_values_are_written_as_python(argument: Any, expected: str) -> None:
    text = written(argument)
    ast.parse(text)
    assert f"    {expected},\n" in text


@pytest.mark.parametrize(
    "argument",
    [
        tensor(stride=[1, 2]),
        tensor(quantizer={"scale": 1.0, "zero_point": 0}, dtype="quint8"),
        tensor(layout="sparse_coo"),
        tensor(device="cuda"),
        tensor(dtype="int64", shape=[50], stride=[1]),
        tensor(dtype="bfloat16"),
        ["float", "nan"],
        ["dict", []],
        ["object", "Thing"],
    ],
)
def test_values_without_a_short_way_leave_it_unwritten(argument: Any) -> None:
    assert written(argument) == ""


@pytest.mark.parametrize(
    "code",
    [
        "",
        CODE.replace("torch.cos(x)", "torch.cos(self.weight)"),
        CODE.replace("torch.cos(x)", "torch.mul(x, CONSTANTS.c0)"),
        CODE.replace("torch.cos(x)", "__torch__.helper(x)"),
        CODE + "\n" + CODE,
        CODE.replace("torch.cos(x)", "'''"),
    ],
)
def test_code_that_needs_the_archive_leaves_it_unwritten(code: str) -> None:
    assert written(tensor(), code=code) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"reset": "start"},
        {"requests": []},
        {"profile": {"env": {"A": "b"}}},
        {"profile": {"numerics": {"deterministic": True}}},
        {"profile": {"libraries": ["libx.so"]}},
        {"profile": {"switches": {"freeze": True}}},
    ],
)
def test_cases_that_need_more_leave_it_unwritten(changes: dict[str, Any]) -> None:
    assert written(tensor(), **changes) == ""


def operator(schema: str, *inputs: Any) -> str:
    return operator_snippet({"schema": schema, "inputs": list(inputs), "profiles": {"new": PROFILE}}, DATA)


def test_an_operator_is_called_by_its_overload_with_keywords_where_it_has_them() -> None:
    text = operator(
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", tensor(), ["int", 2], ["int", 3]
    )
    ast.parse(text)
    assert "    print(torch.ops.aten.add.Tensor(\n        torch.tensor([[0.1" in text
    assert "        2,\n        alpha=3,\n    ))" in text
    assert "torch.ops.aten.cosh.default(" in operator("aten::cosh(Tensor self) -> Tensor", tensor())


def test_an_operator_that_cannot_be_written_is_left_out() -> None:
    assert operator("aten::cosh(Tensor self) -> Tensor", ["object", "Thing"]) == ""
    assert operator("aten::cosh(Tensor self) -> Tensor") == ""
    assert operator("no schema", tensor()) == ""


def test_the_name_of_an_argument_is_never_code() -> None:
    assert (
        operator("aten::op(Tensor self, *, int __import__('os').system('id')<) -> Tensor", tensor(), ["int", 1]) == ""
    )
