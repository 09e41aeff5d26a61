"""Whether a schema takes a call: sure of what it refuses, and never sure of what it cannot see."""

import pytest

from harness.checks.prediction.schema_fit import Fit, covers, fit, type_fit, why_not
from tests.unit.builders.archives import schema, use

PAD = schema("aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.) -> Tensor")


@pytest.mark.parametrize(
    ("argument", "parameter", "expected"),
    [
        ("Tensor", "Tensor", Fit.YES),
        ("Tensor", "Tensor?", Fit.YES),
        ("Optional[Tensor]", "Tensor", Fit.NO),
        ("Optional[Tensor]", "Tensor?", Fit.YES),
        ("None", "Tensor", Fit.NO),
        ("None", "int?", Fit.YES),
        ("None", "t", Fit.MAYBE),
        ("int", "Scalar", Fit.YES),
        ("int", "float", Fit.MAYBE),
        ("int", "Tensor", Fit.MAYBE),
        ("int", "str", Fit.NO),
        ("int", "int[2]", Fit.YES),
        ("int", "int[]", Fit.NO),
        ("str", "int", Fit.NO),
        ("str", "Device", Fit.MAYBE),
        ("List[int]", "int[]?", Fit.YES),
        ("List[int]", "str[1]", Fit.NO),
        ("List[int]", "Tensor", Fit.NO),
        ("List", "int[]", Fit.MAYBE),
        ("List", "int", Fit.NO),
        ("List[List[int]]", "t[]", Fit.MAYBE),
        ("~int", "str", Fit.NO),
        ("~int", "int", Fit.MAYBE),
        ("", "int", Fit.MAYBE),
        ("__torch__.m.Own", "Any", Fit.YES),
        ("__torch__.m.Own", "Tensor", Fit.MAYBE),
    ],
)
def test_types(argument: str, parameter: str, expected: Fit) -> None:
    assert type_fit(argument, parameter) is expected


@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        (("List[Tensor]",), (), Fit.YES),
        (("List[Tensor]", "bool", "float"), (), Fit.YES),
        (("List[Tensor]", "bool", "float", "str"), (), Fit.NO),
        (("List[Tensor]",), ("padding_value",), Fit.MAYBE),
        (("List[Tensor]",), ("padding_side",), Fit.NO),
        ((), (), Fit.NO),
    ],
)
def test_arguments_go_in_by_place_then_by_name(
    arguments: tuple[str, ...], keywords: tuple[str, ...], expected: Fit
) -> None:
    assert fit(PAD, use("aten::pad_sequence", *arguments, keywords=keywords)) is expected


def test_a_keyword_only_argument_takes_no_place() -> None:
    only = schema("a::f(Tensor x, *, int k) -> Tensor")
    assert fit(only, use("a::f", "Tensor", "int")) is Fit.NO
    assert fit(only, use("a::f", "Tensor", keywords=("k",))) is not Fit.NO


def test_more_arguments_go_where_they_are_allowed() -> None:
    assert fit(schema("aten::format(str self, ...) -> str"), use("aten::format", "str", "", "int")) is Fit.YES


@pytest.mark.parametrize(("returns", "fits"), [("(Tensor, Tensor)", True), ("(Tensor, Tensor, Tensor)", False)])
def test_an_answer_is_unpacked_into_as_many_variables(returns: str, fits: bool) -> None:
    assert (fit(schema(f"a::f() -> {returns}"), use("a::f", results=2)) is not Fit.NO) is fits


def test_a_list_is_unpacked_into_any_number() -> None:
    assert fit(schema("a::f() -> Tensor[]"), use("a::f", results=3)) is Fit.YES


def test_the_reason_is_reported() -> None:
    assert why_not(PAD, use("f", "", "", "", "")) == "takes 3 positional arguments, not 4"
    assert why_not(PAD, use("f", "", keywords=("side",))) == "has no argument side"
    assert why_not(PAD, use("f")) == "needs an argument that the call does not give"
    assert why_not(PAD, use("f", "str")) == "takes Tensor[] for sequences, not str"
    assert why_not(schema("a::f() -> (int, int)"), use("a::f", results=3)) == "returns 2 values, not 3"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("a::f(Tensor x) -> Tensor", "a::f(Tensor y, int n=1) -> Tensor", True),
        ("a::f(Tensor x) -> Tensor", "a::f(Tensor? x) -> Tensor", True),
        ("a::f(Tensor? x) -> Tensor", "a::f(Tensor x) -> Tensor", False),
        ("a::f(int x) -> Tensor", "a::f(Scalar x) -> Tensor", True),
        ("a::f(Scalar x) -> Tensor", "a::f(int x) -> Tensor", False),
        ("a::f(Tensor x) -> Tensor", "a::f(Tensor x) -> (Tensor, Tensor)", False),
        ("a::f(Tensor x) -> Tensor", "a::f(Tensor x, int n) -> Tensor", False),
    ],
)
def test_one_schema_covers_another(before: str, after: str, same: bool) -> None:
    assert covers(schema(before), schema(after), use("a::f", "")) is same


@pytest.mark.parametrize(("argument", "same"), [("int", True), ("", False), ("Tensor", False), ("~int", False)])
def test_a_schema_that_takes_a_known_argument_covers_one_that_would_convert_it(argument: str, same: bool) -> None:
    before = schema("aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps) -> Tensor")
    after = schema("aten::linspace(Scalar start, Scalar end, int steps) -> Tensor")
    assert covers(before, after, use("aten::linspace", "int", argument, "")) is same
