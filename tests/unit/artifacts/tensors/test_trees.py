"""Two trees in step."""

from typing import Any

import pytest

from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.trees import LONGEST_TEXT, leaves, walk_trees
from tests.unit.builders.tensors import Recorder, float32

RECORDER = Recorder()
ONE = RECORDER.tensor(float32(1.0))
TWO = RECORDER.tensor(float32(1.0, 2.0))


def found(expected: Any, actual: Any) -> list[tuple[str, str, str, str]]:
    return [(item.path, item.kind, item.expected, item.actual) for item in walk_trees(expected, actual).differences]


def test_equal_trees_pair_every_leaf_by_path() -> None:
    tree = ["tuple", [["dict", [[["str", "scores"], ["namedtuple", ["Box", [["field", ONE]]]]]]], ["float", "0.5"]]]
    walk = walk_trees(tree, tree)
    assert walk.differences == []
    assert [pair.path for pair in walk.pairs] == ["output[0]['scores'].field", "output[1]"]
    assert [path for path, _ in leaves(tree)] == ["output[0]['scores'].field", "output[1]"]


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        (["none", None], ONE, ("None", "tensor float32 (1,)")),
        (["int", 1], ["bool", True], ("int 1", "bool True")),
        (["int", 1], ["float", "1.0"], ("int 1", "float '1.0'")),
        (["int", 2**70], ["int", 2**70 + 1], (f"int {2**70}", f"int {2**70 + 1}")),
        (["str", "a"], ["str", "b"], ("str 'a'", "str 'b'")),
        (["device", "cpu"], ["device", "cuda:0"], ("device 'cpu'", "device 'cuda:0'")),
        (["tuple", []], ["list", []], ("tuple of length 0", "list of length 0")),
        (["object", "A"], ["object", "B"], ("object 'A'", "object 'B'")),
        (["namedtuple", ["A", []]], ["namedtuple", ["B", []]], ("namedtuple A", "namedtuple B")),
        (["namedtuple", ["A", []]], ["tuple", []], ("namedtuple A", "tuple of length 0")),
    ],
)
def test_plain_difference_is_structure(expected: Any, actual: Any, words: tuple[str, str]) -> None:
    assert found(expected, actual) == [("output", "structure", *words)]


def test_shorter_list_is_reported_and_the_common_part_compared() -> None:
    walk = walk_trees(["list", [ONE, TWO]], ["list", [ONE]])
    assert [(item.expected, item.actual) for item in walk.differences] == [("list of length 2", "list of length 1")]
    assert [pair.path for pair in walk.pairs] == ["output[0]"]


def test_dict_pairs_by_key_and_reports_missing_and_extra() -> None:
    expected = ["dict", [[["str", "a"], ONE], [["int", 1], TWO]]]
    actual = ["dict", [[["str", "1"], TWO], [["str", "a"], ONE]]]
    walk = walk_trees(expected, actual)
    assert found(expected, actual) == [
        ("output[1]", "structure", "present", "missing"),
        ("output['1']", "structure", "absent", "extra"),
    ]
    assert [pair.path for pair in walk.pairs] == ["output['a']"]


def test_dict_order_is_no_difference() -> None:
    entries = [[["str", "a"], ONE], [["str", "b"], TWO]]
    assert found(["dict", entries], ["dict", entries[::-1]]) == []


def test_dict_keys_of_equal_tensors_stay_apart() -> None:
    tree = ["dict", [[ONE, ["int", 1]], [ONE, ["int", 2]]]]
    other = ["dict", [[ONE, ["int", 1]], [ONE, ["int", 3]]]]
    assert [item[0].endswith("#2") for item in found(tree, other)] == [True]


def test_named_tuple_fields_pair_by_name_and_their_order_counts() -> None:
    expected = ["namedtuple", ["P", [["x", ONE], ["y", TWO]]]]
    actual = ["namedtuple", ["P", [["y", TWO], ["x", ONE]]]]
    assert found(expected, actual) == [("output", "structure", "fields x, y", "fields y, x")]
    renamed = ["namedtuple", ["P", [["x", ONE], ["z", TWO]]]]
    assert [item[0] for item in found(expected, renamed)] == ["output.y", "output.z"]


def test_shape_difference_is_structure_and_not_compared() -> None:
    walk = walk_trees(ONE, TWO)
    assert [(item.kind, item.expected, item.actual) for item in walk.differences] == [
        ("structure", "shape (1,)", "shape (2,)")
    ]
    assert walk.pairs == []


def test_dtype_difference_is_reported_and_still_compared() -> None:
    walk = walk_trees(TWO, RECORDER.tensor(float32(1.0, 2.0).astype("float16")))
    assert [(item.kind, item.expected, item.actual) for item in walk.differences] == [("dtype", "float32", "float16")]
    assert len(walk.pairs) == 1


def test_quantization_scheme_is_part_of_the_dtype() -> None:
    per_tensor = RECORDER.tensor([1], "qint8", quantizer={"scale": 1.0, "zero_point": 0})
    per_channel = RECORDER.tensor([1], "qint8", quantizer={"scales": [1.0], "zero_points": [0], "axis": 0})
    assert [item[1:] for item in found(per_tensor, per_channel)] == [
        ("dtype", "qint8 per tensor", "qint8 per channel of axis 0")
    ]


@pytest.mark.parametrize(("aspect", "values"), [("device", ("cpu", "cuda")), ("layout", ("strided", "sparse_coo"))])
def test_device_and_layout_are_structure(aspect: str, values: tuple[str, str]) -> None:
    expected: dict[str, Any] = {aspect: values[0]}
    actual: dict[str, Any] = {aspect: values[1]}
    walk = walk_trees(RECORDER.tensor([1], **expected), RECORDER.tensor([1], **actual))
    assert [(item.kind, item.expected) for item in walk.differences] == [("structure", f"{aspect} {values[0]}")]
    assert len(walk.pairs) == 1


def test_stride_change_is_distinguished_from_structure() -> None:
    walk = walk_trees(RECORDER.tensor([[1, 2], [3, 4]]), RECORDER.tensor([[1, 2], [3, 4]], stride=[1, 2]))
    assert walk.differences == []
    assert walk.stride_changes == ["output: stride (2, 1) -> (1, 2)"]


@pytest.mark.parametrize(("values", "stride"), [([[1, 2]], [7, 1]), ([[]], [5, 5])])
def test_strides_that_address_nothing_are_ignored(values: Any, stride: list[int]) -> None:
    assert walk_trees(RECORDER.tensor(values), RECORDER.tensor(values, stride=stride)).stride_changes == []


def test_floats_are_left_to_the_numbers() -> None:
    walk = walk_trees(["tuple", [["float", "nan"], ["float", "0.1"]]], ["tuple", [["float", "nan"], ["float", "0.2"]]])
    assert walk.differences == []
    assert [pair.path for pair in walk.pairs] == ["output[0]", "output[1]"]


def test_values_without_wire_form_are_listed_as_opaque() -> None:
    assert walk_trees(["list", [["object", "A"]]], ["list", [["object", "A"]]]).opaque == ["output[0]"]


def test_long_values_are_shortened() -> None:
    assert len(found(["str", "a" * 500], ["str", "b"])[0][2]) == LONGEST_TEXT


@pytest.mark.parametrize(
    "damaged",
    [
        None, [], ["tensor"], [3, None], ["mystery", 1], ["list", 3], ["dict", [[1]]], ["dict", [["a", ONE]]],
        ["namedtuple", ["P"]], ["namedtuple", ["P", [["x"]]]], ["tensor", {"dtype": "float32"}], ["tensor", None],
        ["float", "x"], ["complex", "1"],
    ],
)  # fmt: skip
def test_damaged_tree_is_a_decode_error(damaged: Any) -> None:
    with pytest.raises(DecodeError):
        walk_trees(damaged, damaged)
