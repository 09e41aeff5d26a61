"""Which dimensions of inputs may be larger: what differs between recorded input sets of one method."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.models import InputSet
from harness.checks.startup.larger_inputs import larger_inputs
from harness.worker import wire
from tests.unit.builders.stages import artifact


def tensor(*shape: int) -> list[Any]:
    return ["tensor", {"dtype": "float32", "shape": list(shape)}]


def asked(*values: Any) -> list[Any]:
    return ["tuple", list(values)]


def grows(folder: Path, *trees: Any, methods: tuple[str, ...] = ("forward",) * 3) -> Any:
    lines = [{"set": f"s{i}", "method": methods[i], "tree": tree} for i, tree in enumerate(trees)]
    (folder / wire.TENSORS_INDEX).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / wire.TENSORS_BIN).write_bytes(b"")
    sets = tuple(InputSet(name=f"s{i}", method=method) for i, method in zip(range(len(trees)), methods, strict=False))
    return larger_inputs(artifact("m", inputs_dir=str(folder), input_sets=sets))


def test_dimensions_of_two_sizes_may_be_larger_and_the_values_are_those_of_the_first_set(tmp_path: Path) -> None:
    first = asked(tensor(4, 8), ["float", "0.5"], ["dict", [[["str", "mask"], tensor(4, 3, 1)]]], tensor(2))
    other = asked(tensor(7, 8), ["float", "2.5"], ["dict", [[["str", "mask"], tensor(7, 5, 1)]]], tensor(2))
    _, (rows, number, (_, ((_, mask),)), fixed) = grows(tmp_path, first, first, other)
    assert (rows[1]["grows"], mask[1]["grows"], fixed[1]["grows"]) == ([0], [0, 1], [])
    assert (rows[1]["shape"], number) == ([4, 8], ["float", "0.5"])


@pytest.mark.parametrize(
    "other",
    [
        asked(tensor(4, 8)),
        asked(tensor(32)),
        asked(tensor(7, 8), tensor(1)),
        asked(["list", [tensor(7, 8)]]),
    ],
    ids=["same sizes", "other rank", "more tensors", "other structure"],
)
def test_nothing_is_known_to_vary_where_no_other_set_shows_it(tmp_path: Path, other: Any) -> None:
    assert grows(tmp_path, asked(tensor(4, 8)), other) is None
    assert grows(tmp_path, asked(tensor(4, 8))) is None


def test_another_method_says_nothing_and_an_empty_dimension_cannot_be_repeated(tmp_path: Path) -> None:
    larger = asked(tensor(7, 8))
    assert grows(tmp_path, asked(tensor(4, 8)), larger, methods=("forward", "encode")) is None
    assert grows(tmp_path, asked(tensor(0, 8)), larger) is None


def test_nothing_is_larger_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert grows(tmp_path) is None
