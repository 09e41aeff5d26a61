"""What counts as right, wrong or a wrong green beside plain torch."""

from typing import Any

import pytest

from tests.corpus.grading import judged, predictions
from tests.corpus.page import page_of

FINE: dict[str, Any] = {"old_error": "", "new_error": "", "noise": 0.0, "difference": 1e-7}


def record(**changes: Any) -> dict[str, Any]:
    first: dict[str, Any] = {
        "name": "timm_vit_trace",
        "library": "timm",
        "model": "vit",
        "how": "trace",
        "exporter": "2.1.2",
        "version": "0.9.12",
        "bytes": 100,
        "not_exported": "",
        "seconds": 3.0,
        "loads": {"2.1.2": "", "2.6.0": ""},
        "predicted": {"2.1.2": ["will load", ""], "2.6.0": ["will load", ""]},
        "statuses": {},
        "with_library": {},
    }
    return {**first, **changes}


@pytest.mark.parametrize(
    ("predicted", "error", "grade"),
    [
        ("will load", "", "right"),
        ("will not load", "RuntimeError: Unknown builtin op", "right"),
        ("will load", "RuntimeError: Unknown builtin op", "wrong"),
        ("will not load", "", "wrong"),
        ("unknown", "", "unknown"),
        ("unreadable", "", "unknown"),
    ],
)
def test_a_prediction_is_graded_by_what_loading_came_to(predicted: str, error: str, grade: str) -> None:
    asked = list(predictions([record(loads={"2.6.0": error}, predicted={"2.6.0": [predicted, "why"]})]))
    assert [p.grade for p in asked] == [grade]


def test_a_release_that_nobody_asked_about_is_not_right() -> None:
    assert [p.grade for p in predictions([record(predicted={})])] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("status", "truth", "grade"),
    [
        ("PASS", {}, "right"),
        ("FAIL", {}, "wrong"),
        ("INCONCLUSIVE", {}, "undecided"),
        ("PASS", {"difference": 1e-3}, "wrong green"),
        ("FAIL", {"difference": 1e-3}, "right"),
        ("FAIL", {"noise": 1e-2, "difference": 1e-2}, "right"),
        ("SAME_FAIL", {"new_error": "RuntimeError"}, "wrong green"),
        ("FAIL", {"new_error": "RuntimeError"}, "right"),
        ("SAME_FAIL", {"old_error": "RuntimeError", "new_error": "RuntimeError"}, "right"),
        ("PASS", {"old_error": "RuntimeError"}, "wrong green"),
        ("FAIL", {"old_error": "RuntimeError"}, "wrong"),
        ("no row, exit code 5", {}, "wrong"),
    ],
)
def test_a_status_is_graded_by_what_plain_torch_answers(status: str, truth: dict[str, Any], grade: str) -> None:
    found = {"status": status, "reason": "", **FINE, **truth}
    assert [j.grade for j in judged([record(statuses={"2.1.2 -> 2.6.0": found})])] == [grade]


def test_the_page_names_each_wrong_answer_and_counts_the_rest() -> None:
    wrong = record(name="x", predicted={"2.1.2": ["will load", ""], "2.6.0": ["will not load", "gone"]})
    green = record(statuses={"2.1.2 -> 2.6.0": {"status": "PASS", "reason": "", **FINE, "difference": 0.5}})
    failed = record(bytes=0, not_exported="RuntimeError: no", how="script")
    page = page_of([wrong, green, failed], {"2.1.2": {"timm": 4}})
    assert "4 predictions of loading: **1 wrong**, 0 unknown, 3 as it happened." in page
    assert "1 statuses: **1 wrong greens**" in page
    assert "- timm vit (traced) of 2.1.2 in 2.6.0, plain: will not load (`gone`); it loads" in page
    assert "- 1 of 4 architectures of 1 exporters have been tried;" in page
    assert "| timm | 2.1.2 | 1 | 0 |" in page
