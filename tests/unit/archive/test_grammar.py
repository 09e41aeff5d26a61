"""The grammar of printed code: what torch prints passes (the golden records do), anything else is named by its line."""

import pytest

from harness.archive.grammar import may_be
from harness.archive.reading import read_artifact
from tests.unit.builders.archives import CODE, BytesSource, torchscript

HELPER = """def twice(x: Tensor,
    times: int=2) -> Tensor:
  return torch.mul(x, times)
"""


def problem_of(code: str) -> str:
    return " ".join(item.text for item in read_artifact(BytesSource(torchscript(code)), "net.pt").problems)


@pytest.mark.parametrize(
    "body",
    [
        "    return torch.relu(x)",
        "    y = __torch__.m.twice(x, )\n    return y",
        "    f = __torch__.m.twice\n    return f(x, 3, )",
        '    if torch.gt(torch.len(x), 1):\n      y = x\n    else:\n      ops.prim.RaiseException("no")\n      y = x\n    return y',
        "    y = x\n    for i in range(3):\n      y0 = torch.add(y, i)\n      y = y0\n    return y",
        "    size : Optional[int] = None\n    a, b, = torch.size(x)\n    c, d = a, b\n    return torch.view(x, [c, -1])",
        '    d = {"a": x, "b": x}\n    t = annotate(Tuple[int, str], (1, "a\\n"))\n    return d["a"]',
        '    d = annotate(Dict[str, List[Tuple[Tensor, int]]], {})\n    return ((d["a"])[torch.len(d)])[0]',
    ],
)
def test_what_torch_prints_is_read(body: str) -> None:
    assert not problem_of(CODE.replace("    return torch.relu(x)", body) + HELPER)


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("training : bool", "training : boole", "line 4: not as torch prints (the type boole)"),
        ("x: Tensor)", "x: Tensors)", "the type Tensors"),
        ("x: Tensor)", "x: List)", "where '[' should be"),
        ("training : bool", "training : Dict[List[int], int]", "a Dict by List[int]"),
        ("training : bool", 'training : bool\n  n : Final[int] = "a"', "a constant of another type"),
        ("training : bool", "training : bool\n  n : Final[int] = x", "x is not defined"),
        ("training : bool", "training : bool\n  n : Final[Tuple[int, int]] = (1,)", "a constant of another type"),
        ("training : bool", "training : bool\n  training : bool", "declared twice"),
        ("__buffers__ = []", "__buffers__ = [1]", "no string"),
        ("__parameters__ = []", '__parameters__ = ["training"]', "a parameter that is no tensor"),
        ("(Module)", "(Widget)", "the class Widget"),
        ("self: __torch__.m.Net", "self: __torch__.m.Nut", "a method without its own self"),
        ("    return torch", "   return torch", "a function without a return"),
        ("    return torch", "     return torch", "indentation"),
        ("    return torch", "\treturn torch", "a character"),
        ("    return torch.relu(x)", "    y = torch.relu(x)", "a function without a return"),
        ("torch.relu(x)", "torch.relu(y)", "y is not defined"),
        ("torch.relu(x)", "self.width", "has no width"),
        ("torch.relu(x)", "(self).backward(x, )", "no class has the method backward"),
        ("torch.relu(x)", "__torch__.m.twice(x, 1, 2, )", "does not take 3 arguments"),
        ("torch.relu(x)", "1", "another type is returned than declared"),
        ("torch.relu(x)", "x + x", "line 7: not as torch prints"),
        ("torch.relu(x)", '(torch.size(x))["a"]', "an element of List[int] by str"),
        ("torch.relu(x)", '(torch.chunk(x, 2))["a"]', "an element of ~aten::chunk by str"),
        ("torch.relu(x)", "(x, x)[2]", "element 2 of Tuple[Tensor,Tensor]"),
        ("torch.relu(x)", "(torch.dim(x))[0]", "int has no elements"),
        ("torch.relu(x)", "annotate(Dict[str, Tensor], {})[0]", "an element of Dict[str,Tensor] by int"),
        ("torch.relu(x)", "annotate(Dict[str, Tensor], {})[torch.len(x)]", "an element of Dict[str,Tensor] by int"),
        ("torch.relu(x)", "CONSTANTS.c0", "names constant 0 of 0"),
        ("torch.relu(x)", "torch.add(x, 99999999999999999999)", "more than 64 bits"),
        ("torch.relu(x)", "[x, 1][0]", "values of several types"),
        ("    return", "    if True:\n      y = x\n    else:\n      pass\n    z = y\n    return", "y is not defined"),
        ("    return", "    x = 1\n    return", "a name given another type"),
    ],
)
def test_what_torch_does_not_print_is_named(was: str, now: str, why: str) -> None:
    assert why in problem_of(CODE.replace(was, now, 1) + HELPER)


@pytest.mark.parametrize(
    ("declared", "actual", "possible"),
    [
        ("Tensor", "", True),
        ("Optional[int]", "NoneType", True),
        ("Optional[int]", "Optional[List[int]]", False),
        ("Optional[int]", "Tensor", False),
        ("List[int]", "List", True),
        ("Tuple[int,str]", "Tuple[int]", False),
        ("Tuple[int,List[str]]", "Tuple[int,List[int]]", False),
        ("__torch__.m.Any", "__torch__.m.Net", True),
        ("Tensor", "__torch__.m.Net", False),
        ("bool", "int", False),
    ],
)
def test_types_that_cannot_meet(declared: str, actual: str, *, possible: bool) -> None:
    assert may_be(declared, actual) is possible
