"""What other commands than a run write for machines, as accepted."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.core.prediction import Inspection
from harness.report.ci.sarif import render_sarif
from harness.report.json.results import dump
from tests.unit.builders import searches
from tests.unit.builders.readers import valid
from tests.unit.builders.snapshots import check_snapshot


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checkup_sick.json", lambda: dump(searches.checkup(sick=True))),
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
