"""Arg-max and top-5 agreement."""

import numpy as np
import pytest

from harness.correctness import metrics
from harness.correctness.metrics import agreement, is_head

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]], dtype=np.float32)


def test_the_share_of_rows_with_the_same_winner() -> None:
    changed = SCORES.copy()
    changed[1] = [0.4, 0.5, 0.1]
    assert agreement(SCORES, changed) == (0.75, None)
    assert agreement(SCORES, SCORES * 3) == (1.0, None)


def test_the_five_largest_are_a_set_and_ties_go_to_the_first() -> None:
    row = np.array([[9.0, 8, 7, 6, 5, 4, 4]])
    assert agreement(row, row[:, [1, 0, 2, 3, 4, 5, 6]]) == (0.0, 1.0)
    assert agreement(row, np.array([[9.0, 8, 7, 6, 0, 4, 4]])) == (1.0, 0.0)
    assert agreement(np.zeros((1, 7)), np.zeros((1, 7))) == (1.0, 1.0)


def test_nan_counts_as_the_largest() -> None:
    row = np.array([[np.nan, 1.0, 2, 3, 4, 5, 6]])
    assert agreement(row, np.array([[7.0, 1, 2, 3, 4, 5, 6]])) == (1.0, 1.0)
    assert agreement(row, np.array([[0.0, 1, 2, 3, 4, 5, 6]])) == (0.0, 0.0)


def test_slices_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3, 11, 8))
    whole = agreement(one, other)
    monkeypatch.setattr(metrics, "SLICE_ELEMENTS", 16)
    assert agreement(one, other) == whole


@pytest.mark.parametrize(
    ("values", "head"),
    [
        (np.zeros((2, 3), np.float16), True),
        (np.zeros(3), False),
        (np.zeros((3, 1)), False),
        (np.zeros((0, 3)), False),
        (np.zeros((2, 3), np.int64), False),
        (np.zeros((2, 3), np.complex64), False),
    ],
)
def test_a_head_is_floating_with_rows_and_classes(values: np.ndarray, *, head: bool) -> None:
    assert is_head(values) is head
