"""What other commands than a run write for machines, as accepted, and a matrix read back from its JSON."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.core.prediction import Inspection
from harness.core.errors import RunDirError
from harness.verdict.matrix import judge_matrix
from harness.report.ci.sarif import render_sarif
from harness.report.json.results import dump, load_matrix
from tests.unit.builders import searches
from tests.unit.builders.golden_reviews import REVIEW
from tests.unit.builders.matrices import mixed
from tests.unit.builders.readers import valid
from tests.unit.builders.snapshots import check_snapshot

WRITTEN = dump(mixed())


def test_what_was_written_is_read_back() -> None:
    assert load_matrix(WRITTEN.encode(), file="matrix.json") == mixed()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is damaged"),
        (b"\xff", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b"[1]", "is no matrix of schema version 1"),
        (json.dumps({**json.loads(WRITTEN), "schema_version": 9}).encode(), "is no matrix of schema version 1"),
        (json.dumps({**json.loads(WRITTEN), "cells": 3}).encode(), "`$.cells`"),
    ],
)
def test_a_bad_file_is_named(data: bytes, said: str) -> None:
    with pytest.raises(RunDirError) as caught:
        load_matrix(data, file="m/matrix.json")
    assert caught.value.message.startswith("m/matrix.json ") and said in caught.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checkup_sick.json", lambda: dump(searches.checkup(sick=True))),
        ("golden_diff.json", lambda: dump(REVIEW)),
        ("inspect_facts.json", lambda: dump(searches.ALONE)),
        ("inspect_facts.sarif", lambda: render_sarif(searches.ALONE)),
        ("inspect_pair.json", lambda: dump(searches.PAIR)),
        ("inspect_pair.sarif", lambda: render_sarif(searches.PAIR)),
    ],
)
def test_what_other_commands_write_for_machines_is_as_accepted(name: str, text: Callable[[], str]) -> None:
    check_snapshot(name, text())


@pytest.mark.parametrize("inspection", [searches.PAIR, searches.ALONE])
def test_the_log_of_an_inspection_is_what_its_schema_says(inspection: Inspection) -> None:
    valid(render_sarif(inspection), "sarif-2.1.0-rtm.5.json")


def test_of_more_results_than_are_kept_the_worst_stay_and_the_others_are_counted() -> None:
    pair = replace(searches.PAIR, files=searches.PAIR.files * 3)
    (run,) = valid(render_sarif(pair, most_results=3), "sarif-2.1.0-rtm.5.json")["runs"]
    assert [result["level"] for result in run["results"]] == ["error"] * 3
    assert "invocations" in run
