import pytest

from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.schemas import parse_schema
from harness.core.archive import Parameter, Schema


def test_a_schema_is_parsed_with_aliases_left_out() -> None:
    text = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    parameters = (
        Parameter("self", "Tensor", False, False),
        Parameter("other", "Tensor", False, False),
        Parameter("alpha", "Scalar", True, True),
    )
    assert parse_schema(text) == ("aten::add_", Schema("Tensor", parameters, ("Tensor",)))


@pytest.mark.parametrize(
    ("text", "types", "returns"),
    [
        ("a::f(SymInt[2] x, str s=\"a, b\") -> ()", ["int[2]", "str"], ()),
        ("a::f(t[](a!) self, t(c -> *) el) -> t[](a!)", ["t[]", "t"], ("t[]",)),
        ("a::f(Tensor x) -> (Tensor values, Tensor indices)", ["Tensor"], ("Tensor", "Tensor")),
        ("a::f(__torch__.torch.classes.q.P p) -> ((Tensor, Tensor?) _0)", ["__torch__.torch.classes.q.P"], ("(Tensor, Tensor?)",)),
        ("a::f(Dict(str, int) d, int? n=None) -> str", ["Dict(str, int)", "int?"], ("str",)),
    ],
)  # fmt: skip
def test_types_come_out_whole(text: str, types: list[str], returns: tuple[str, ...]) -> None:
    _, schema = parse_schema(text)
    assert [parameter.type for parameter in schema.parameters] == types
    assert schema.returns == returns


def test_more_arguments_may_follow() -> None:
    assert parse_schema("aten::format(str self, ...) -> str")[1].takes_more


@pytest.mark.parametrize("text", ["", "f(x)", "aten::f(Tensor x"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(CannotRead):
        parse_schema(text)
