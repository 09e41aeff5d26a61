"""The page says the same for the same results, and leaves out what was not measured."""

import json

from benchmarks.calibrate.corpus import RESULTS
from benchmarks.calibrate.page import SUMMARY, rendered, summary
from tests.unit.calibrate import results
from tests.unit.builders.snapshots import check_snapshot


def test_page_is_the_accepted_one() -> None:
    check_snapshot("calibration.md", rendered(results.latency(), results.numbers(), results.failures()))


def test_a_part_that_was_not_measured_is_left_out() -> None:
    page = rendered(results.latency(), {}, {})
    assert "## Latency" in page
    assert "## Numbers" not in page
    assert "## Failures" not in page
    assert "drift of values" not in page


def test_the_summary_in_reports_is_that_of_the_committed_results() -> None:
    names = ("latency", "numbers", "lengths")
    latency, numbers, lengths = (json.loads((RESULTS / f"{name}.json").read_text()) for name in names)
    assert SUMMARY.read_text() == summary(latency, numbers, lengths)


def test_lengths_of_a_call_have_their_own_part() -> None:
    known = results.latency()
    columns = known["columns"]
    row = dict(zip(columns, known["benchmarks"][0], strict=True)) | {"base": "10ms", "what": "slow", "size": 10}
    shared = [[0, 16, 1.101, 1.097, 1.105, 1.0, 10], [1, 16, 1.099, 1.092, 1.106, 1.0, 10]]
    lengths = {
        **{name: known[name] for name in ("columns", "measured")},
        "benchmarks": [list(row.values())],
        "common_columns": ["batch", "models", "ratio", "low", "high", "control", "size"],
        "common": shared,
        "rival_columns": known["rival_columns"],
        "rivals": [row for row in known["rivals"] if row[2] < 20],
    }
    page = rendered(results.latency(), {}, {}, lengths=lengths)
    part = page[page.index("### By length of a call") : page.index("## When and where")]
    assert "| 10ms | quick | 10 % |" in part
    assert "| 10 % | 2 | +9.90 to +10.10 % | +-0.64 % |" in part
    assert "| pytest-benchmark, --benchmark-compare-fail=median:5% | 1 of 1" in part
    assert "missed at 10 %" in part
    assert "20 %" not in part
