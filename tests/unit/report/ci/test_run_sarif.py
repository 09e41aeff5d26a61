"""The causes of a run as SARIF: valid, a result per cause, at the lines that declare its models."""

import json
from dataclasses import replace
from typing import Any

from harness.verdict.decide import decide
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import PlantedDefectResult
from harness.report.ci.sarif import ELSEWHERE, render_run_sarif
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.planted_causes import run_of
from tests.unit.builders.readers import valid
from tests.unit.builders.reports import blocked, hostile, upgrade_ok


def run(report: RunReport, **more: Any) -> dict[str, Any]:
    text = render_run_sarif(report, **more)
    valid(text, "sarif-2.1.0-rtm.5.json")
    (found,) = json.loads(text)["runs"]
    return dict(found)


def test_a_cause_is_one_result_with_all_its_models() -> None:
    report = of_three_causes()
    results = run(report)["results"]
    assert [result["ruleId"] for result in results] == ["operator", "slowdown", "setting"]
    assert [result["properties"]["models"] for result in results] == [list(cause.models) for cause in report.causes]
    assert results[1]["properties"]["excess"] == 6.3 and results[1]["level"] == "error"
    assert (
        "33 models: ranker_001" in results[1]["message"]["text"]
        and "fix: profiling off" in results[1]["message"]["text"]
    )


def test_it_points_to_where_the_models_are_declared_each_place_once() -> None:
    places = {"thumbnail_000": "models/thumbs.py:7", "thumbnail_003": "models/thumbs.py:7", "ranker_001": "a b.py"}
    first, second, third = run(of_three_causes(), places=places)["results"]
    physical = [item["physicalLocation"] for item in first["locations"]]
    assert physical == [{"artifactLocation": {"uri": "models/thumbs.py"}, "region": {"startLine": 7}}]
    assert second["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "a%20b.py"}}
    assert third["locations"] == [ELSEWHERE]


def test_an_undecided_cause_is_a_warning_and_a_green_run_has_no_result() -> None:
    report = of_three_causes(3, 0)
    open_ = replace(report, causes=(replace(report.causes[0], status=Status.INCONCLUSIVE),))
    assert run(open_)["results"][0]["level"] == "warning"
    green = run(upgrade_ok())
    assert green["results"] == [] and green["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]


def test_a_red_run_without_a_cause_has_its_decision_as_a_result() -> None:
    green = run_of([], healthy_models=3)
    rows, caught = green.judgement.rows, green.judgement.planted_defects
    missed = PlantedDefectResult(name="p", expected="hang", reported=(), caught=False)
    blind, asked = decide(rows, [missed]), decide(rows, caught, unmet="minimum_models = 9: 3 judged")
    for judgement, told in ((blind, "p"), (asked, "minimum_models = 9")):
        (result,) = run(replace(green, judgement=judgement))["results"]
        assert result["ruleId"] == "decision" and told in result["message"]["text"]
        assert result["locations"] == [ELSEWHERE]
    assert run(green)["results"] == []
    red_too = replace(of_three_causes(), judgement=replace(of_three_causes().judgement, planted_defects=(missed,)))
    assert [result["ruleId"] for result in run(red_too)["results"]][0] == "decision"


def test_every_cause_is_a_result_and_hostile_names_are_valid_too() -> None:
    kinds = {cause.kind for cause in blocked().causes}
    assert (
        {result["ruleId"] for result in run(blocked())["results"]}
        == kinds
        == {"culprit", "hang", "limit", "operator", "slowdown"}
    )
    assert run(hostile())["results"]
