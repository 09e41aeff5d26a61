"""Metrics, read back by both parsers of Prometheus' own client: OpenMetrics and the older text format."""

import datetime as dt
import math
from dataclasses import replace

import pytest

from harness.verdict.counting import WORDS
from prometheus_client.parser import text_string_to_metric_families as textfile

from harness.core.outcome import Decision, Status
from harness.core.report import RunReport
from harness.core.verdict import Waiver, WaiverState, WaiverUse
from harness.report.ci.openmetrics import render_openmetrics
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS, blocked, golden, hostile, upgrade_ok
from tests.unit.builders.readers import openmetrics

Samples = dict[str, list[tuple[dict[str, str], float]]]


def read(report: RunReport) -> Samples:
    """Return name -> samples, which both parsers find alike."""
    text = render_openmetrics(report)
    found = [
        {family.name: [(dict(one.labels), one.value) for one in family.samples] for family in parse(text)}
        for parse in (openmetrics, textfile)
    ]
    assert {name: repr(samples) for name, samples in found[0].items()} == {
        name: repr(samples) for name, samples in found[1].items()
    }
    return {name.removeprefix("torchscript_gate_"): samples for name, samples in found[0].items()}


@pytest.mark.parametrize("name", REPORTS)
def test_both_parsers_read_the_same_gauges(name: str) -> None:
    text = render_openmetrics(REPORTS[name]())
    assert read(REPORTS[name]())["exit_code"] == [({}, REPORTS[name]().judgement.exit_code)]
    assert {family.type for family in openmetrics(text)} == {family.type for family in textfile(text)} == {"gauge"}


@pytest.mark.parametrize("name", REPORTS)
def test_no_sample_has_a_timestamp_and_none_is_there_twice(name: str) -> None:
    text = render_openmetrics(REPORTS[name]())
    samples = [sample for family in textfile(text) for sample in family.samples]
    assert not [sample for sample in samples if sample.timestamp is not None]
    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(keys) == len(set(keys))
    assert text.endswith("# EOF\n")


def test_exactly_one_decision_is_the_one() -> None:
    decisions = {labels["decision"]: value for labels, value in read(blocked())["decision"]}
    assert decisions == {item.value: float(item is Decision.BLOCKED) for item in Decision}


def test_models_are_counted_by_status_and_each_has_its_own() -> None:
    found = read(blocked())
    counts = {labels["status"]: value for labels, value in found["models"]}
    assert counts == {word: {"FAIL": 4, "SAME_FAIL": 1, "PASS": 1}.get(word, 0) for word in WORDS}
    statuses = {
        labels["model"]: (labels["status"], labels["old"], labels["new"]) for labels, _ in found["model_status"]
    }
    assert statuses["old_trouble"] == ("SAME_FAIL", "torch 2.1.2", "torch 2.6.0")
    assert len(statuses) == 6


def test_ratios_have_their_bounds() -> None:
    found = read(blocked())
    steady = [
        [value for labels, value in found[name] if (labels["model"], labels["quantity"]) == ("text_tagger", "steady")]
        for name in ("new_over_old", "new_over_old_low", "new_over_old_high")
    ]
    assert steady == [[1.119], [pytest.approx(1.099)], [pytest.approx(1.139)]]
    assert {labels["quantity"] for labels, _ in found["new_over_old_low"]} == {"steady"}
    assert {"steady", "load", "p99"} <= {labels["quantity"] for labels, _ in found["new_over_old"]}


def test_what_was_not_measured_is_left_out() -> None:
    found = read(golden())
    assert not {"new_over_old", "load_seconds", "waiver_expires_timestamp_seconds"} & set(found)


def test_a_waiver_tells_its_last_day_and_what_it_did() -> None:
    waiver = Waiver(model="a", kind="values", reason="r", owner='"ads"\\team', expires=dt.date(2027, 2, 1))
    uses = (WaiverUse(waiver=waiver, state=WaiverState.UNUSED),)
    ((labels, value),) = read(replace(upgrade_ok(), waivers=uses))["waiver_expires_timestamp_seconds"]
    assert (labels["owner"], labels["state"], value) == ('"ads"\\team', "unused", 1_801_440_000)


def test_two_waivers_that_are_for_other_places_are_both_there_and_of_two_alike_the_one_that_ends_first() -> None:
    """What ends first is what somebody must hear of."""
    late = Waiver(model="a", kind="values", reason="r", owner="ads", expires=dt.date(2027, 3, 1), device="cpu", bound=1)
    early = replace(late, expires=dt.date(2027, 2, 1), bound=0.5)
    elsewhere = (replace(late, device="cuda"), replace(late, profile="fusion"))
    uses = tuple(WaiverUse(waiver=item, state=WaiverState.USED) for item in (late, early, *elsewhere))
    found = read(replace(upgrade_ok(), waivers=uses))["waiver_expires_timestamp_seconds"]
    ends = {(labels["device"], labels["profile"]): value for labels, value in found}
    march = dt.datetime(2027, 3, 1, tzinfo=dt.UTC).timestamp()
    assert ends == {("cpu", ""): 1_801_440_000, ("cuda", ""): march, ("cpu", "fusion"): march}


def test_numbers_that_are_none_are_reported_as_the_format_has_them() -> None:
    report = upgrade_ok()
    odd = (math.nan, math.inf, 1e-300)
    models = tuple(replace(model, worst_relative=value) for model, value in zip(report.models, odd, strict=True))
    values = {labels["model"]: value for labels, value in read(replace(report, models=models))["output_error_ratio"]}
    assert repr(list(values.values())) == repr([math.nan, math.inf, 1e-300])


def test_hostile_names_stay_inside_their_label() -> None:
    names = {labels["model"] for labels, _ in read(hostile())["model_status"]}
    assert {"<script>alert(1)</script>", "\\x1b[31mred\\x1b[0m", "lone\\udcff"} <= names
    assert len(names) == len(HOSTILE_NAMES)


def test_two_names_that_look_alike_leave_the_worse_one() -> None:
    report = blocked()
    alike = {"text_tagger": "a\x00", "detector": "a\\x00"}
    rows = tuple(replace(row, model=alike.get(row.model, row.model)) for row in report.judgement.rows)
    models = tuple(replace(model, model=alike.get(model.model, model.model)) for model in report.models)
    found = read(replace(report, judgement=replace(report.judgement, rows=rows), models=models))["model_status"]
    assert sorted(labels["status"] for labels, _ in found if labels["model"] == "a\\x00") == ["FAIL", "PASS"]
    assert len([labels for labels, _ in found if (labels["model"], labels["status"]) == ("a\\x00", "PASS")]) == 1
