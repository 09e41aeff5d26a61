"""Which sizes and values requests vary, and which of them a program takes in part."""

import pytest

from harness.core.migration import Dimension
from harness.checks.migration.dimensions import (
    batches,
    best_example,
    differing,
    fixed_dimensions,
    held,
    larger,
    leaves_of,
    taken,
)
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.trees import Tree


def tensor(*shape: int) -> Tree:
    return ["tensor", {"dtype": "float32", "shape": list(shape)}]


def request(*arguments: Tree) -> Tree:
    return ["tuple", list(arguments)]


NESTED = request(["list", [tensor(2, 3), ["int", 4]]], ["dict", [[["str", "x"], tensor(5)]]], ["none", None])


def test_leaves_are_named_as_elsewhere() -> None:
    assert dict(leaves_of(NESTED)) == {
        "input[0][0]": (2, 3),
        "input[0][1]": "4",
        "input[1]['x']": (5,),
        "input[2]": "None",
    }


def test_the_example_leaves_the_varied_sizes_free() -> None:
    requests = {"single": request(tensor(1, 1)), "batch": request(tensor(4, 1)), "empty": request(tensor(0, 1))}
    assert best_example(requests) == "batch"


def test_the_first_request_is_the_example_where_all_are_as_good() -> None:
    assert best_example({"one": request(tensor(4, 1)), "other": request(tensor(7, 1))}) == "one"
    assert best_example({"one": request(tensor(1)), "other": request(tensor(1))}) == "one"


def test_a_size_that_is_held_and_varied_is_fixed_and_a_free_one_is_not() -> None:
    requests = {"one": request(tensor(4, 3)), "other": request(tensor(7, 3)), "third": request(tensor(1, 3))}
    held = taken([[["input", 0], [4, 3]]])
    assert fixed_dimensions(held, "one", requests) == (
        Dimension(argument="input[0]", axis=0, taken="4", asked=("1", "7")),
    )
    assert fixed_dimensions(taken([[["input", 0], [None, 3]]]), "one", requests) == ()


def test_the_batch_is_what_equals_the_first_size_and_none_where_requests_vary_it() -> None:
    """The state of a recurrent network has the batch second; a size that happens to equal it is tried last."""
    one = request(tensor(4, 16), tensor(1, 4, 8), tensor(4, 3), ["int", 4])
    first, every = batches("one", {"one": one, "other": one})
    assert first == {("input[0]", 0), ("input[2]", 0)}
    assert every == first | {("input[1]", 1)}
    assert list(batches("one", {"one": one, "other": request(tensor(7, 16), *one[1][1:])})) == []
    assert (
        list(batches("one", {"one": request(tensor(0, 3))})) == list(batches("one", {"one": request(tensor())})) == []
    )
    grown = larger(one, every)[1]
    assert [spec["grows"] for kind, spec in grown if kind == "tensor"] == [[0], [1], [0]]


def test_only_what_the_program_takes_alone_is_held() -> None:
    one, places = request(tensor(4, 16), tensor(4, 3)), {("input[0]", 0), ("input[1]", 0)}
    program = taken([[["input", 0], [4, 16]], [["input", 1], [None, 3]]])
    assert held(program, one, places) == (Dimension(argument="input[0]", axis=0, taken="4", asked=("5",)),)
    assert held(taken([]), one, places) == ()


def test_a_plain_value_that_requests_vary_is_a_constant_of_the_program() -> None:
    requests = {"one": request(["int", 4]), "other": request(["int", 2]), "same": request(["int", 4])}
    assert fixed_dimensions(taken([[["input", 0], None]]), "one", requests) == (
        Dimension(argument="input[0]", axis=None, taken="4", asked=("2",)),
    )


def test_requests_of_another_structure_are_not_compared() -> None:
    requests = {"one": request(tensor(4, 3)), "other": request(["list", [tensor(2)]]), "flat": request(tensor(4))}
    assert fixed_dimensions(taken([[["input", 0], [4, 3]]]), "one", requests) == ()


def test_every_size_that_differs_from_the_example_is_told() -> None:
    assert differing(request(tensor(4, 3)), request(tensor(1, 3))) == (
        Dimension(argument="input[0]", axis=0, taken="4", asked=("1",)),
    )
    assert differing(request(tensor(4, 3)), request(tensor(4, 3))) == ()


def test_a_mark_with_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(DecodeError):
        taken([["input[0]", [4]]])
