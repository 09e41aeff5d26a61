"""Counts per decade."""

import numpy as np

from harness.checks.outputs.totals import error_counts
from harness.core.comparison import ERROR_EDGES


def test_each_decade_has_its_bin_and_zero_one_of_its_own() -> None:
    errors = 2.0 * np.array([0.0, 0.0, 5e-10, 5e-7, 1e-5, 0.5, 1.0, 7.0])
    counts = error_counts(errors, 2.0).tolist()
    assert counts == [2, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 2]
    assert len(counts) == len(ERROR_EDGES) + 1


def test_every_error_of_an_all_zero_tensor_falls_into_the_last_bin() -> None:
    assert error_counts(np.array([0.0, 1e-30, np.inf]), 0.0).tolist() == [1, *[0] * 10, 2]


def test_no_errors_count_nothing() -> None:
    assert sum(error_counts(np.empty(0), 1.0).tolist()) == 0
