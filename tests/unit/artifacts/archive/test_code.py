"""What printed code says: operators, arguments, place and condition; what may be called, and what a memory keeps."""

import re
import time
import pytest
from hypothesis import given, strategies as st
from harness.artifacts.archive.code import Call, CodeFacts, operator_of, read_code
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.tokens import TOKEN, statements
from harness.artifacts.archive.code import Function
from harness.artifacts.archive.code import may_loop, reachable
from harness.artifacts.archive.code import CodeMemory

FORWARD = "class Net(Module):\n  size : Final[int] = 3\n  weight : Tensor\n  def forward(self: __torch__.m.Net,\n    x: Tensor, n: Optional[int]=None) -> Tensor:\n"


def body(*lines: str) -> CodeFacts:
    return read_code(FORWARD + "".join(f"    {line}\n" for line in lines), "__torch__.m")


def calls(*lines: str) -> list[Call]:
    return body(*lines).calls


def only(*lines: str) -> Call:
    (call,) = calls(*lines)
    return call


@pytest.mark.parametrize(
    ("printed", "operator"),
    [
        ("torch.add", "aten::add"),
        ("ops.prim.min", "prim::min"),
        ("ops.quantized.linear", "quantized::linear"),
        ("torch.autograd.grad", "aten::grad"),
        ("torch", ""),
        ("torch.classes.x", ""),
        ("self.torch.add", ""),
        ("__torch__.torch.nn.functional.relu", ""),
    ],
)
def test_names_of_operators(printed: str, operator: str) -> None:
    assert operator_of(printed) == operator


def test_a_call_has_its_place_and_its_arguments() -> None:
    call = only('return torch.f(x, n, 1, 2., "s", None, True, [1, 2], [x], self.size, self.weight, alpha=1, out=x)')
    assert (call.name, call.line, call.function) == ("aten::f", 6, "__torch__.m.Net.forward")
    assert call.arguments == (
        "Tensor", "Optional[int]", "int", "float", "str", "None", "bool", "List[int]", "List[Tensor]", "int", "Tensor",
    )  # fmt: skip
    assert call.keywords == ("alpha", "out")
    assert not call.branch


def test_nested_calls_are_all_found() -> None:
    found = calls("x0 = torch.to(torch.to(x, 5), dtype=ops.prim.dtype(x))")
    assert [(call.name, call.arguments, call.keywords) for call in found] == [
        ("aten::to", ("Tensor", "int"), ()),
        ("prim::dtype", ("Tensor",), ()),
        ("aten::to", ("Tensor",), ("dtype",)),
    ]


def test_text_in_strings_is_no_call() -> None:
    assert [call.name for call in calls('_0 = torch.format("torch.add(1, {})\\"(", x)')] == ["aten::format"]


def test_calls_over_several_lines_are_one() -> None:
    assert only("return torch.cat([x,", "      x], 1)").arguments == ("List[Tensor]", "int")


def test_branches_are_reported_and_conditions_are_not_in_them() -> None:
    found = calls("if torch.a(x):", "  y = torch.b(x)", "else:", "  y = torch.c(x)", "return torch.d(x)")
    assert [(call.name[-1], call.branch) for call in found] == [("a", False), ("b", True), ("c", True), ("d", False)]


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("a, b, = torch.chunk(x, 2)", 2),
        ("a, b = torch.max(x, 1)", 2),
        ("a = torch.max(x)", 0),
        ("a, b = torch.f(x), 1", 0),
        ("a, = torch.f(x)", 1),
    ],
)
def test_unpacked_answers_are_counted(line: str, results: int) -> None:
    assert only(line).results == results


@pytest.mark.parametrize(
    ("lines", "type_"),
    [
        (("y = 3",), "int"),
        (("y = unchecked_cast(Tensor, z)",), "Tensor"),
        (("y = annotate(Optional[List[int]], None)",), "Optional[List[int]]"),
        (("y = [1, 2][0]",), "int"),
        (("y = -1",), "int"),
        (("y = (x)",), "Tensor"),
        (("y = int(x)",), "int"),
        (("y = foo(x)",), ""),
        (("y = torch.sub(torch.dim(x), 1)",), "int"),
        (("y = torch.sub(torch.dim(x), foo(x))",), "~Scalar"),
        (("y = torch.mul(x, foo(x))",), "Tensor"),
        (("y = torch.mul(foo(x), 2)",), ""),  # of a list, so many times
        (("y = torch.mul(foo(x), 2.)",), "~Scalar"),
        (("y = torch.add(foo(x), foo(x))",), ""),
        (("if n:", "  y = 1", "else:", "  y = foo(x)"), "~int"),
        (("if n:", "  y = 1", "else:", "  y = x"), ""),
        (("for y in range(3):", "  z = y"), "int"),
    ],
)
def test_types_are_reported_where_the_text_tells_them(lines: tuple[str, ...], type_: str) -> None:
    assert calls(*lines, "return torch.last(y)")[-1].arguments == (type_,)


def test_types_of_one_function_are_forgotten_in_the_next() -> None:
    text = "def f(a: int) -> int:\n  return torch.f(a)\ndef g(b: int) -> int:\n  return torch.g(a)\n"
    assert [call.arguments for call in read_code(text, "__torch__").calls] == [("int",), ("",)]


def test_functions_tell_what_they_may_call() -> None:
    facts = body("_0 = __torch__.m.helper", "return (self.child).forward(_0(x, ), )")
    assert "forward" in facts.functions[0].methods
    assert "__torch__.m.helper" in facts.functions[0].names
    assert facts.classes == ["__torch__.m.Net"]


def test_what_else_the_text_names() -> None:
    facts = body(
        "p = annotate(__torch__.torch.classes.quantized.LinearPackedParamsBase, y)",
        'd = torch.device("cuda:1")',
        "w = annotate(Await[int], y)",
    )
    assert facts.custom_classes == {"quantized.LinearPackedParamsBase"}
    assert facts.devices == {"cuda:1"}
    assert facts.type_names == {"Await"}


def test_a_class_of_ones_own_is_no_type_of_torch() -> None:
    assert not read_code("class Generator(Module):\n  training : bool\n", "__torch__").type_names


@pytest.mark.parametrize("text", ["x = (1", "x = 1)", "x = (1]", 'x = "abc', "x = " + "(" * 500 + ")" * 500])
def test_code_that_does_not_close_is_damage(text: str) -> None:
    with pytest.raises(CannotRead):
        read_code(text, "__torch__")


@pytest.mark.parametrize("piece", ['"\\', '\\"', "((", "a.", "'", "1e", "#", ", ", "x = torch.f(", "[[", "0x", "é"])
def test_time_is_linear_in_hostile_text(piece: str) -> None:
    begin = time.process_time()
    try:
        read_code(piece * (200_000 // len(piece)), "__torch__")
    except CannotRead:
        pass
    assert time.process_time() - begin < 3.0  # quadratic would take minutes


def test_types_do_not_grow_with_each_statement() -> None:
    text = "".join(f"a{index + 1} = [a{index}]\n" for index in range(20_000))
    (call,) = read_code("a0 = 1\n" + text + "torch.f(a20000)\n", "__torch__").calls
    assert len(call.arguments[0]) < 300


def test_no_possessive_group_holds_an_assertion() -> None:
    # Debian 12 has Python 3.11.2, which reads "1.5" as "1.", "" and "5" with such a group.
    groups = re.findall(r"\((?:[^()\\]|\\.|\(\?[^()]*\))*\)[*+?]\+", TOKEN.pattern)
    assert groups
    assert not [group for group in groups if re.search(r"\(\?<?[=!]", group)]


@given(st.text(alphabet="ab_.,:=()[]{}\"'\\\n #-+0123456789eé", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_code(text, "__torch__")
    except CannotRead:
        return
    kept = "".join(token.text for found in statements(text, LIMITS) for token in found.tokens)
    assert "#" in text or kept == re.sub(r"[ \t\r\n]", "", text) or "'" in text or '"' in text


@given(st.lists(st.sampled_from(["class A(M):", "  def f(self: X,", "    x: Tensor):", "    if torch.a(x):", "      y, = torch.b(y, k=[1])", "    return (x).f(y, )", ")", "x : Final[int] = 3", "  for i in range(3):"]), max_size=12))  # fmt: skip
def test_lines_in_any_order_are_read_or_refused(lines: list[str]) -> None:
    try:
        read_code("\n".join(lines), "__torch__")
    except CannotRead:
        pass


def function(name: str, method: str = "", methods: str = "", names: str = "", *, loops: bool = False) -> Function:
    return Function(name, method, loops=loops, methods=set(methods.split()), names=set(names.split()))


FUNCTIONS = [
    function("__torch__.m.Net.forward", "forward", methods="encode", names="__torch__.f.helper"),
    function("__torch__.m.Net.exported", "exported"),
    function("__torch__.m.Part.encode", "encode"),
    function("__torch__.m.Other.encode", "encode", methods="decode"),
    function("__torch__.m.Other.decode", "decode", loops=True),
    function("__torch__.m.Other.lost", "lost", names="__torch__.f.lost"),
    function("__torch__.f.helper", methods="helper"),
    function("__torch__.f.lost"),
    function("__torch__.m.Table.__setstate__", "__setstate__", names="__torch__.f.fill"),
    function("__torch__.f.fill"),
]


def test_methods_are_found_by_name_and_functions_by_qualified_name() -> None:
    reached = reachable(FUNCTIONS, "__torch__.m.Net")
    assert [item.name for item in FUNCTIONS if item.name not in reached] == [
        "__torch__.m.Other.lost",
        "__torch__.f.lost",
    ]


def test_without_a_root_only_what_runs_at_load_is_reached() -> None:
    assert reachable(FUNCTIONS, "") == {"__torch__.m.Table.__setstate__", "__torch__.f.fill"}


def test_functions_that_call_each_other_come_to_an_end() -> None:
    both = [function("a.C.f", "f", methods="g"), function("a.C.g", "g", methods="f", loops=True)]
    assert reachable(both, "a.C") == may_loop(both) == {"a.C.f", "a.C.g"}


def test_a_loop_is_in_all_that_may_call_it() -> None:
    assert may_loop(FUNCTIONS) == {
        "__torch__.m.Other.decode",
        "__torch__.m.Other.encode",
        "__torch__.m.Net.forward",
    }


def text(name: str) -> str:
    return f"x = torch.{name}(y)\n"


def test_equal_text_is_read_once_and_told_apart_by_module() -> None:
    memory = CodeMemory()
    first = memory.read(text("f"), "__torch__.a", LIMITS)
    assert memory.read(text("f"), "__torch__.a", LIMITS) is first
    assert memory.read(text("f"), "__torch__.b", LIMITS) is not first


def test_the_oldest_is_forgotten_beyond_the_limit() -> None:
    memory = CodeMemory(limit_bytes=2 * len(text("f")))
    kept = {name: memory.read(text(name), "__torch__", LIMITS) for name in "fg"}
    assert memory.read(text("f"), "__torch__", LIMITS) is kept["f"]
    memory.read(text("h"), "__torch__", LIMITS)
    assert memory.read(text("f"), "__torch__", LIMITS) is kept["f"]
    assert memory.read(text("g"), "__torch__", LIMITS) is not kept["g"]


def test_what_cannot_be_read_is_not_remembered() -> None:
    memory = CodeMemory()
    for _ in range(2):
        with pytest.raises(CannotRead):
            memory.read("x = (", "__torch__", LIMITS)
