"""The page of the static check: counted from matrices, wrong predictions named, and as committed."""

import json
from typing import Any

import pytest

from harness.core.releases import Matrix
from harness.verdict.matrix import judge_matrix
from harness.report.json.results import dump
from benchmarks.calibrate.static import CORPORA, PAGE, STORED, summary_of
from benchmarks.calibrate.static_page import page_of
from tests.unit.builders.matrices import green, matrix, mixed


def summary(found: Matrix) -> dict[str, Any]:
    return summary_of(json.loads(dump(found)), CORPORA[0])


def test_wrong_predictions_are_named_and_counted() -> None:
    page = page_of([summary(mixed())])
    assert "42 predictions over zoo: **1 wrong**, 3 unknown, 38 as it happened." in page
    assert "- `old_op`, 2.6.0 -> 2.1.2: will load" in page
    assert "- `old_op`: `aten::gone` (2.1.2 -> 2.6.0, 2.15.0)" in page
    assert "| to an older one | will load | 12 | 1 | 0 |" in page


def test_a_page_without_a_wrong_prediction_says_so() -> None:
    page = page_of([summary(matrix(green("ranker")))])
    assert "9 predictions over zoo: **0 wrong**, 0 unknown, 9 as it happened." in page
    assert "Wrong:" not in page


def test_corpora_add_up() -> None:
    one, other = summary(mixed()), summary(matrix(green("ranker")))
    assert "51 predictions over zoo, zoo: **1 wrong**" in page_of([one, other])


@pytest.mark.skipif(not STORED.exists(), reason="the matrices have not been run")
def test_the_committed_page_is_what_its_results_say() -> None:
    known = json.loads(STORED.read_text())
    assert PAGE.read_text() == page_of([known[corpus.name] for corpus in CORPORA if corpus.name in known])
