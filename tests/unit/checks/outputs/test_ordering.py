"""Rows in any order."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.outputs import ordering
from harness.checks.outputs.noise import old_noise
from harness.checks.outputs.ordering import is_found, matching, reordered, unordered_groups, with_sorted_plain
from harness.checks.outputs.outputs import compare_outputs
from harness.artifacts.tensors.decode import Decoded
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import LeafPair
from tests.unit.builders.tensors import Recorder, decoded, float32, outputs

SCORES = float32(0.9, 0.8, 0.7, 0.1)


def order_of(*sides: tuple[Any, Any]) -> list[int] | None:
    both = [tuple(side if isinstance(side, Decoded) else decoded(np.asarray(side)) for side in pair) for pair in sides]
    found = matching([(one, other) for one, other in both])
    return None if found is None else found.tolist()


def test_moved_rows_find_their_partners() -> None:
    assert order_of((SCORES, SCORES[[2, 0, 1, 3]])) == [1, 2, 0, 3]


def test_tensors_of_a_group_move_together() -> None:
    boxes = np.arange(8, dtype=np.float32).reshape(4, 2)
    equal_scores = float32(0.5, 0.5, 0.5, 0.5)
    new = [3, 1, 0, 2]
    assert order_of((equal_scores, equal_scores[new]), (boxes, boxes[new])) == [2, 1, 3, 0]


def test_rows_in_their_place_stay_and_so_do_near_ties() -> None:
    assert order_of((SCORES, SCORES)) is None
    assert order_of((SCORES, SCORES + np.float32(1e-7))) is None
    assert order_of((float32(1, 1, 1), float32(1, 1 + 1e-6, 1 - 1e-6))) is None


def test_near_ties_in_another_order_are_matched_within_tolerance() -> None:
    labels = np.array([3, 5, 3], dtype=np.int64)
    scores, swapped = float32(0.5, 0.5000001, 0.1), float32(0.5000002, 0.5, 0.1)
    assert order_of((scores, swapped), (labels, labels[[1, 0, 2]])) == [1, 0, 2]


def test_a_partner_is_given_up_where_another_row_needs_it() -> None:
    # Tolerance 9e-5. In its place, golden 0 takes new 0, the only row that golden 1 fits; so it moves on to new 1.
    assert order_of((float32(1.0, 0.99992, 9), float32(0.99996, 1.00008, 9))) == [1, 0, 2]


def test_a_wrong_row_takes_what_is_left_and_so_shows() -> None:
    assert order_of((float32(1, 2, 3), float32(3, 1, 2.5))) == [1, 2, 0]


def test_nan_and_infinite_rows_are_rows_like_others() -> None:
    golden = float32(math.nan, math.inf, -math.inf, 1)
    assert order_of((golden, golden[[3, 2, 1, 0]])) == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32(1), np.float32(2)),
        (float32(1), float32(2)),
        (float32(), float32()),
        (float32(1, 2), float32(2, 1, 3)),
    ],
    ids=["no axis", "one row", "no row", "other number of rows"],
)
def test_where_rows_cannot_be_told_nothing_moves(one: Any, other: Any) -> None:
    assert order_of((one, other)) is None


def test_groups_of_unequal_rows_and_quantizers_per_channel_do_not_move() -> None:
    assert order_of((SCORES, SCORES[::-1]), (float32(1, 2), float32(1, 2))) is None
    scheme = {"scales": [0.5, 0.25], "zero_points": [0, 0], "axis": 0}
    one = decoded(np.array([1, 2], np.int8), "qint8", quantizer=scheme)
    assert order_of((one, decoded(np.array([2, 1], np.int8), "qint8", quantizer=scheme))) is None
    plain = {"scale": 0.5, "zero_point": 1}
    one = decoded(np.array([1, 2], np.uint8), "quint8", quantizer=plain)
    assert order_of((one, decoded(np.array([9, 1], np.uint8), "quint8", quantizer=plain))) == [1, 0]


def test_very_large_outputs_are_matched_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MOST_COMPARISONS", 4)
    assert order_of((SCORES, SCORES[[2, 0, 1, 3]])) == [1, 2, 0, 3]


@given(st.permutations(range(9)), st.integers(0, 2**31))
def test_any_permutation_with_rounding_comes_back(moved: list[int], seed: int) -> None:
    golden = np.random.default_rng(seed).normal(size=(9, 3)).astype(np.float32)
    new = (golden * np.float32(1 + 1e-7))[moved]
    found = matching([(decoded(golden), decoded(new))])
    back = new if found is None else reordered(decoded(new), found).values
    assert np.allclose(back, golden, rtol=1e-6)


def test_declared_paths_match_themselves_and_what_is_below() -> None:
    def names(*declared: str) -> dict[str, list[str]]:
        paths = ["output[0]['boxes']", "output[0]['scores']", "output[1]['boxes']", "output[10]", "output.at"]
        pairs = [LeafPair(path, {}, {}) for path in paths]
        return {name: [pair.path for pair in found] for name, found in unordered_groups(pairs, declared).items()}

    assert names("output[1]") == {"output[1]": ["output[1]['boxes']"]}
    assert names("output[*]['boxes']", "output.at") == {
        "output[0]['boxes']": ["output[0]['boxes']"],
        "output[1]['boxes']": ["output[1]['boxes']"],
        "output.at": ["output.at"],
    }
    assert list(names("output[*]")) == ["output[0]", "output[1]", "output[10]"]
    assert not is_found("output.a", ["output.at"])


def test_lists_of_plain_values_are_sorted_where_declared() -> None:
    ids = ["list", [["int", 3], ["int", 1]]]
    tree = ["dict", [[["str", "ids"], ids], [["str", "kept"], ids]]]
    ordered = ["list", [["int", 1], ["int", 3]]]
    assert with_sorted_plain(tree, ["output['ids']"]) == [
        "dict",
        [[["str", "ids"], ordered], [["str", "kept"], ids]],
    ]
    named = ["namedtuple", ["N", [["a", ["tuple", ids[1]]], ["b", ["none", None]]]]]
    assert with_sorted_plain(named, ["output.a"])[1][1][0] == ["a", ["tuple", ordered[1]]]


def test_comparison_measures_in_the_golden_order_and_says_what_moved() -> None:
    golden, new = outputs(SCORES), outputs(SCORES[[1, 0, 2, 3]])
    (call,) = compare_outputs("m", "alone", golden, new, unordered=["output"]).calls
    (tensor,) = call.tensors
    assert (tensor.bit_equal, tensor.moved_rows, tensor.max_abs) == (True, 2, 0.0)
    (call,) = compare_outputs("m", "alone", golden, new).calls
    assert (call.tensors[0].bit_equal, call.tensors[0].moved_rows) == (False, 0)


def test_repeats_in_another_order_are_neither_noise_nor_unstable() -> None:
    noise = old_noise(outputs(SCORES), [outputs(SCORES[::-1].copy())], unordered=["output"])
    assert (noise.largest["example", "output"], noise.unstable) == (0.0, ())
    assert old_noise(outputs(SCORES), [outputs(SCORES[::-1].copy())]).unstable == ("output",)


def test_other_length_is_still_another_structure() -> None:
    (call,) = compare_outputs("m", "alone", outputs(SCORES), outputs(SCORES[:3]), unordered=["output"]).calls
    assert [item.path for item in call.tree] == ["output"]


def test_sampled_goldens_have_no_rows() -> None:
    recorder = Recorder()
    one = recorder.tensor(SCORES, full={"shape": [9], "sha256": "", "step": 2})
    golden, probe = (Outputs({("s", 0): tree}, recorder.buffer) for tree in (one, recorder.tensor(SCORES[::-1].copy())))
    probe = Outputs(probe.calls, recorder.buffer)
    golden = Outputs(golden.calls, recorder.buffer)
    (call,) = compare_outputs("m", "alone", golden, probe, unordered=["output"]).calls
    assert call.tensors[0].moved_rows == 0


def test_declared_path_that_no_output_has_is_named() -> None:
    result = compare_outputs("m", "alone", outputs(SCORES), outputs(SCORES), unordered=["output", "output[3]"])
    assert result.unordered_missing == ("output[3]",)
