"""Cells as CSV: a row per cell, the furthest over a limit first, and columns that are documented."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

from harness.core.report import RunReport
from harness.report.ci.spreadsheet import COLUMNS, render_csv
from tests.unit.builders.causes import SLOWER, of_three_causes
from tests.unit.builders.reports import blocked, cell_id

PAGE = Path(__file__).parents[4] / "docs" / "formats" / "cells.md"


def rows(report: RunReport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(report))))


def test_every_cell_has_its_row() -> None:
    report = of_three_causes()
    assert sorted(row["cell"] for row in rows(report)) == sorted(cell.cell for cell in report.judgement.cells)


def test_a_slow_cell_has_its_cause_its_excess_and_its_times() -> None:
    (row,) = [row for row in rows(of_three_causes()) if row["cell"] == cell_id("ranker_001", "latency")]
    assert (row["status"], row["findings"], row["causes"], row["decides"]) == ("FAIL", "latency", SLOWER, "yes")
    assert float(row["ratio"]) == 1.189 and float(row["ratio_low"]) == 1.179 and float(row["over_limit"]) == 6.3
    assert float(row["new_s"]) / float(row["old_s"]) - 1.189 < 1e-4
    assert row["what"].startswith("p50 of a call (steady latency)") and "--cause" not in row["rerun"]


def test_the_worst_is_first_and_what_was_not_measured_is_empty() -> None:
    found = rows(replace(blocked(), durations_s={cell_id("text_tagger", "latency"): 5.7}))
    order = list(dict.fromkeys(row["model"] for row in found))
    assert order[2:4] == ["recommender_v2", "text_tagger"]
    spent = {row["cell"]: row["duration_s"] for row in found}
    assert spent.pop(cell_id("text_tagger", "latency")) == "5.7" and set(spent.values()) == {""}


def test_every_column_is_documented() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == COLUMNS


def test_a_name_that_looks_like_a_formula_is_none() -> None:
    report = of_three_causes(3, 0)
    row = report.judgement.rows[0]
    named = replace(row, model="=1+1", cells=tuple(replace(cell, model="=1+1") for cell in row.cells))
    report = replace(report, models=(), judgement=replace(report.judgement, rows=(named,)))
    assert {row["model"] for row in rows(report)} == {"'=1+1"}
