"""An artifact needs a program for each method, each way to leave arguments out, and each value that chooses."""

from harness.artifacts.tensors.trees import Tree
from harness.checks.migration.parts import MOST_VALUES, Part, parts_of
from harness.core.migration import Presence

TENSOR: Tree = ["tensor", {"dtype": "float32", "shape": [4, 3]}]
NONE: Tree = ["none", None]


def call(*arguments: Tree, method: str = "forward") -> tuple[str, Tree]:
    return method, ["tuple", list(arguments)]


def test_requests_alike_need_one_program() -> None:
    requests = {"a": call(TENSOR, ["int", 3]), "b": call(TENSOR, ["int", 7])}
    assert parts_of(requests) == [Part("forward", (), ("a", "b"))]


def test_each_method_has_a_program_of_its_own() -> None:
    requests = {"a": call(TENSOR), "b": call(TENSOR, method="encode"), "c": call(TENSOR)}
    assert parts_of(requests) == [Part("forward", (), ("a", "c")), Part("encode", (), ("b",))]


def test_an_argument_that_is_none_or_not_given_makes_another_program_and_no_choice_by_value() -> None:
    requests = {"a": call(TENSOR, TENSOR), "b": call(TENSOR), "c": call(TENSOR, NONE)}
    parts = parts_of(requests)
    assert parts == [
        Part("forward", (("input[1]", Presence.GIVEN),), ("a",)),
        Part("forward", (("input[1]", Presence.LEFT_OUT),), ("b", "c")),
    ]
    assert not any(part.by_value for part in parts)


def test_a_text_that_requests_vary_chooses_and_a_number_only_where_it_is_asked_for() -> None:
    texts = {"a": call(["str", "image"]), "b": call(["str", "text"])}
    assert [(part.fixed, part.by_value) for part in parts_of(texts)] == [
        ((("input[0]", "image"),), True),
        ((("input[0]", "text"),), True),
    ]
    numbers = {"a": call(TENSOR, ["int", 0]), "b": call(TENSOR, ["int", 1])}
    assert len(parts_of(numbers)) == 1
    assert [part.fixed for part in parts_of(numbers, whole_numbers=True)] == [
        (("input[1]", "0"),),
        (("input[1]", "1"),),
    ]


def test_a_text_that_reads_like_an_absence_chooses_all_the_same() -> None:
    requests = {"a": call(["str", "left out"]), "b": call(["str", "given"]), "c": call(NONE)}
    assert [part.by_value for part in parts_of(requests)] == [True, True, False]


def test_more_values_than_anybody_would_serve_are_no_choice() -> None:
    requests = {str(number): call(["str", f"text {number}"]) for number in range(MOST_VALUES + 1)}
    assert len(parts_of(requests)) == 1
