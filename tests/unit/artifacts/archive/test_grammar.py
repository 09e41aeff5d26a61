"""The grammar of printed code: what torch prints passes (the golden records do), anything else is named by its line."""

import pytest

import struct

from harness.artifacts.archive.grammar import CLAIMED, may_be
from harness.artifacts.archive.reading import read_artifact
from tests.unit.builders.archives import CODE, MODULE, NOTHING, BytesSource, torchscript, zipped

MANAGER = "__torch__.m.Grad"
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
    b"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
)


def attribute(name: str) -> bytes:
    """Return an attribute in data.pkl, a tensor."""
    return b"X" + struct.pack("<I", len(name.encode())) + name.encode() + TENSOR


HELPER = """class Grad:
  prev : bool
  def __enter__(self: __torch__.m.Grad) -> int:
    return 1
  def __exit__(self: __torch__.m.Grad,
    type: Any,
    value: Any,
    tb: Any) -> NoneType:
    return None
  def __init__(self: __torch__.m.Grad) -> NoneType:
    self.prev = False
    return None
class Color(Enum):
  RED = 1
  GREEN = 2
def twice(x: Tensor,
    times: int=2) -> Tensor:
  return torch.mul(x, times)
"""


def problem_of(code: str, attribute: bytes = b"") -> str:
    content = {"data.pkl": MODULE.replace(b"ub.", attribute + b"ub."), "data__0": b"x" * 8} if attribute else {}
    return " ".join(item.text for item in read_artifact(BytesSource(torchscript(code, **content)), "net.pt").problems)


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
        f"    _0 = {MANAGER}.__new__({MANAGER})\n    _1 = (_0).__init__()\n    with _0:\n      y = torch.relu(x)\n    return y",
        f"    _0 = {MANAGER}.__new__({MANAGER})\n    with _0 as c:\n      with _0:\n        pass\n      y = torch.mul(x, c)\n    return y",
        '    print(x, 1, "a")\n    print()\n    return x',
        "    y = sorted([2, 1])\n    z = sorted(torch.tolist(x))\n    return torch.add(x, y[0])",
        "    c = __torch__.m.Color.RED\n    n = (c).value\n    if torch.eq(c, __torch__.m.Color.GREEN):\n      y = x\n"
        "    else:\n      y = torch.mul(x, n)\n    return y",
        "    return torch.add(torch.mul(x, 0.+2.j), -1.5-3.e-20j)",
        "    a = [inf+infj, nan-nanj, -inf+1.j]\n    return torch.mul(x, a[0])",
        "    y = torch.zeros([2])\n    z = y\n    for i in range(3):\n      z = torch.add(z, x)\n    return z",
        '    return torch.add(x, getattr(self, "1.a"))',
    ],
)
def test_what_torch_prints_is_read(body: str) -> None:
    code = CODE.replace("  training", '  __annotations__["1.a"] = Tensor\n  training', 1) if "1.a" in body else CODE
    assert not problem_of(
        code.replace("    return torch.relu(x)", body) + HELPER, attribute("1.a") if "1.a" in body else b""
    )


@pytest.mark.parametrize("name", ["this", "me", "_", "cls", "module", "x0"])
def test_a_method_calls_itself_as_it_likes(name: str) -> None:
    code = CODE.replace("self: __torch__", f"{name}: __torch__").replace(
        "torch.relu(x)", f"torch.add(x, {name}.training)"
    )
    assert not problem_of(code)


@pytest.mark.parametrize(
    "default", ["__torch__.m.Color.RED", "1.5-2.j", "inf", "(1, 2)", "[-1]", 'torch.device("cpu")']
)
def test_a_default_may_be_any_constant(default: str) -> None:
    types = {
        "_": "__torch__.m.Color",
        "1": "complex",
        "i": "float",
        "(": "Tuple[int, int]",
        "[": "List[int]",
        "t": "Device",
    }
    assert not problem_of(CODE.replace("x: Tensor", f"x: Tensor,\n    d: {types[default[0]]}={default}") + HELPER)


@pytest.mark.parametrize("name", ["größe", "вес", "层", "a b", "a-b", "1x", "a\tb", "a:b/c", "x.y", "%"])
def test_an_attribute_may_have_any_name_that_is_written_between_quotes(name: str) -> None:
    code = CODE.replace("  training", f'  __annotations__["{name}"] = Tensor\n  training', 1)
    assert not problem_of(code.replace("__buffers__ = []", f'__buffers__ = ["{name}", ]'), attribute(name))


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        *(
            ("training : bool", f"{word} : bool", f"line 4: {word!r} is a word of TorchScript")
            for word in sorted(CLAIMED)
        ),
        ("training : bool", "__buffers__ : Tensor", "'__buffers__' is a name that TorchScript keeps for itself"),
        ("x: Tensor", "NoneType: Tensor", "line 5: 'NoneType' is a word"),
        ("x: Tensor", "größe: Tensor", "line 5: 'größe' is not written in ASCII"),
        ("def forward", "def größe", "line 5: 'größe' is not"),
        ("training : bool", "1x : Final[int] = 3", "line 4: '1x' begins with a digit"),
        ("training : bool", '__annotations__["a"b"] = Tensor', "line 4: the name of an attribute"),
        ("training : bool", '__annotations__["a\\n"] = Tensor', "line 4: the name of an attribute"),
        (
            "torch.relu(x)",
            'torch.relu(getattr(self, "gr\\0)+\\//"))',
            "line 7: an attribute is not called by a name in ASCII",
        ),
        ("torch.relu(x)", "(self).größe(x, )", "line 7: 'größe' is not"),
        ("torch.relu(x)", "__torch__.m.my-models.twice(x, )", "which is taken for a subtraction"),
        ("training : bool", "part : Optional[__torch__.my-m.Part]", "which is taken for a subtraction"),
        ("x: Tensor", "x: Tensor, y: List[__torch__.my-m.Part]", "which is taken for a subtraction"),
        ("training : bool", "part : __torch__.in.m.Part", "'in' is a word of TorchScript"),
        ("training : bool", "part : __torch__.2models.Part", "'2models' begins with a digit"),
        ("training : bool", "part : __torch__.pkg.phi-1_5.Part", "'1_5' begins with a digit"),
        ("RED = 1", "RED = inf", "a value of an enum is inf"),
        ("RED = 1", 'RED = "a\\d"', "a backslash"),
        ("RED = 1", 'RED = "a"b"', "a text in an enum"),
    ],
)
def test_names_that_no_release_reads_are_told_apart(was: str, now: str, why: str) -> None:
    problems = read_artifact(
        BytesSource(torchscript(CODE.replace(was, now, 1) + HELPER.replace(was, now, 1))), "n"
    ).problems
    assert why in " ".join(item.text for item in problems if item.kind == "name_refused")


def test_a_variable_that_torch_has_narrowed_to_none_is_told_apart() -> None:
    body = "    y = annotate(Optional[Tensor], None)\n    z : NoneType = y\n    return"
    content = torchscript(CODE.replace("    return", body))
    assert [item.kind for item in read_artifact(BytesSource(content), "net.pt").problems] == ["code_refused"]


MIXED, OPTIONAL, SMALLER = "Union[Tensor, float, str, NoneType]", "Optional[Union[Tensor, float, str]]", "Optional[Union[Tensor, float]]"  # fmt: skip
BRANCHES = "    if torch.eq(1, 1):\n      a{} = {}\n    else:\n      a{} = {}\n"


@pytest.mark.parametrize(
    ("before", "declared", "refused"),
    [
        (f"    a : {OPTIONAL} = None\n", MIXED, True),
        (f"    a : {MIXED} = None\n", MIXED, False),
        (f"    a : {MIXED} = None\n", OPTIONAL, False),
        (BRANCHES.format(f" : {MIXED}", "x", f" : {OPTIONAL}", "None"), MIXED, True),
        (BRANCHES.format(f" : {MIXED}", "x", f" : {OPTIONAL}", "None"), OPTIONAL, False),
        (BRANCHES.format(f" : {MIXED}", "x", f" : {MIXED}", "None"), MIXED, False),
        (f"    s : {SMALLER} = None\n" + BRANCHES.format(f" : {MIXED}", "x", "", "s"), MIXED, True),
        (f"    s : {SMALLER} = None\n" + BRANCHES.format("", "s", f" : {MIXED}", "x"), MIXED, True),
        (f"    s : {SMALLER} = None\n" + BRANCHES.format("", "s", f" : {MIXED}", "x"), OPTIONAL, False),
        (BRANCHES.format(f" : {MIXED}", "x", "", "1."), MIXED, False),
        (BRANCHES.format(f" : {MIXED}", "x", "", "None"), MIXED, False),
        ("    s : Union[Tensor, float] = x\n" + BRANCHES.format("", "s", "", "None"), MIXED, True),
        ("    s : Union[Tensor, float] = x\n" + BRANCHES.format("", "s", "", "None"), OPTIONAL, False),
        ("    a : Optional[Tensor] = None\n", MIXED, False),
        (BRANCHES.format(f" : {MIXED}", "x", " : Optional[Tensor]", "None"), MIXED, False),
        ("    a : Union[Tensor, float] = x\n", MIXED, False),
    ],
)
def test_an_optional_union_is_no_union_with_none(before: str, declared: str, refused: bool) -> None:
    """As 1.13.1, 2.1.2 and 2.15.0 load or refuse each of these bodies."""
    content = torchscript(CODE.replace("    return", f"{before}    r : {declared} = a\n    return"))
    kinds = [item.kind for item in read_artifact(BytesSource(content), "net.pt").problems]
    assert kinds == ["code_refused"] * refused


@pytest.mark.parametrize(
    "word", ["async", "await", "except", "finally", "from", "lambda", "nonlocal", "try", "yield", "print"]
)
def test_words_of_python_that_torchscript_has_not_are_names(word: str) -> None:
    code = CODE.replace("training", word).replace("torch.relu(x)", f"torch.add(x, self.{word})")
    content = torchscript(
        code, **{"data.pkl": MODULE.replace(b"\x08\0\0\0training", b"%c\0\0\0%b" % (len(word), word.encode()))}
    )
    assert not read_artifact(BytesSource(content), "net.pt").problems


def problems_in(folder: str) -> set[str]:
    """Return the kinds of problems of an archive whose code lies in ``folder``."""
    name = f"__torch__.{folder}.m"
    members: dict[str, bytes | str] = {
        "net/data.pkl": MODULE.replace(b"__torch__.m", name.encode()),
        f"net/code/{name.replace('.', '/')}.py": CODE.replace("__torch__.m", name),
        "net/constants.pkl": NOTHING,
        "net/version": "3",
    }
    return {item.kind for item in read_artifact(BytesSource(zipped(members)), "net.pt").problems}


@pytest.mark.parametrize(
    "folder", ["in", "2models", "größe", "my models", "pkg.global", "pkg.phi-1_5", "True", "my-in"]
)
def test_a_folder_of_code_that_no_release_reads_is_told(folder: str) -> None:
    assert "name_refused" in problems_in(folder)


@pytest.mark.parametrize("folder", ["models", "my-models", "a-b-c", "my-pkg.sub-pkg", "m1", "lambda", "_x"])
def test_a_folder_of_code_may_have_a_hyphen(folder: str) -> None:
    assert not problems_in(folder)


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
        ("    return", "    with x:\n      y = x\n    return", "Tensor as a context manager"),
        ("    return", "    with __torch__.m.twice:\n      y = x\n    return", "as a context manager"),
        (
            "    return",
            f"    _0 = {MANAGER}.__new__({MANAGER})\n    with _0:\n      y = x\n    return y\n    return",
            "behind a return",
        ),
        ("torch.relu(x)", "torch.mul(x, (__torch__.m.Color.BLUE).value)", "__torch__.m.Color has no BLUE"),
        ("torch.relu(x)", "(__torch__.m.Color.RED).label", "has no attribute label"),
        ("torch.relu(x)", "sorted(3)", "int is sorted"),
        ("torch.relu(x)", "torch.mul(x, 2.+x)", "line 7: not as torch prints"),
        ("torch.relu(x)", '"größe"', "a string"),
        ("x: Tensor", "x: Tensor, n: int=y", "y is not defined"),
        ("x: Tensor", "x: Tensor, n: str=CONSTANTS.c0", "names constant 0 of 0"),
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
