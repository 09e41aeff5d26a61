"""report.json: lossless, strict about its version, and documented field by field."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.report import SCHEMA_VERSION
from harness.core.errors import RunDirError
from harness.report.json.report import dump_report, load_report, report_schema
from tests.unit.builders.reports import REPORTS, blocked, inconclusive, ratio, upgrade_ok

DOCUMENT = Path(__file__).parents[4] / "docs" / "formats" / "report.md"


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_survives_the_round_trip_byte_for_byte(name: str) -> None:
    data = dump_report(REPORTS[name]())
    assert dump_report(load_report(data, file="report.json")) == data


@pytest.mark.parametrize("name", ["upgrade_ok", "mitigated", "inconclusive", "nothing_tested"])
def test_a_report_without_nan_comes_back_equal(name: str) -> None:
    report = REPORTS[name]()
    assert load_report(dump_report(report), file="report.json") == report


def test_infinities_and_nan_come_back_as_floats() -> None:
    report = load_report(dump_report(blocked()), file="report.json")
    metrics = report.models[1].comparisons[0].calls[0].tensors[0]
    assert metrics.max_rel == math.inf
    assert metrics.reference_new_abs is not None
    assert math.isnan(metrics.reference_new_abs)
    latency = load_report(dump_report(inconclusive()), file="report.json").models[0].latency
    assert latency is not None
    assert latency.steady is not None
    assert latency.steady.high == math.inf


def test_text_that_reads_like_a_number_stays_text() -> None:
    report = upgrade_ok()
    report = replace(report, notes=("nan", "inf"), environment_differences={"inf": ("nan", "-inf")})
    assert load_report(dump_report(report), file="report.json") == report


def test_times_that_are_not_finite_survive_in_tuples_and_mappings() -> None:
    report = upgrade_ok()
    model = replace(report.models[0], load_s=(-math.inf, math.inf))
    report = replace(report, models=(model,), time_shares_s={"benchmark": math.inf})
    assert load_report(dump_report(report), file="report.json") == report


def test_the_file_is_standard_json_in_one_line() -> None:
    data = dump_report(blocked())
    assert data.startswith(b'{"schema_version":7,')
    assert data.endswith(b"}\n") and data.count(b"\n") == 1

    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads(data, parse_constant=refuse)


def test_equal_reports_give_equal_bytes_whatever_the_order_of_their_mappings() -> None:
    report = blocked()
    turned = replace(report, time_shares_s=dict(reversed(list(report.time_shares_s.items()))))
    assert dump_report(turned) == dump_report(report)


def test_a_field_from_a_later_harness_is_ignored() -> None:
    plain = json.loads(dump_report(upgrade_ok()))
    plain["added_later"] = {"x": "inf"}
    assert load_report(json.dumps(plain).encode(), file="report.json") == upgrade_ok()


def changed(**changes: Any) -> bytes:
    """Return a good report's JSON with some fields replaced."""
    return json.dumps({**json.loads(dump_report(upgrade_ok())), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (dump_report(upgrade_ok())[:-30], "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'"\xff"', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "`$.schema_version` is missing"),
        (b"{}", "`$.schema_version` is missing"),
        *((changed(schema_version=other), f"has schema version {other!r} at") for other in (1, 6, 8, True, "7", None)),
        (changed(schema_version=6), "this harness reads only 7"),
        (changed(wall_s="soon"), "`$.wall_s`"),
        (changed(models=3), "`$.models`"),
        (changed(models=[3]), "`$.models[0]`"),
        (changed(old={"name": "torch"}), "`$.old`"),
        (changed(environment_differences={"cuda": ["12.1"]}), "`$.environment_differences"),
        (changed(judgement={"decision": "FINE"}), "`$.judgement.decision`"),
    ],
)
def test_a_bad_file_is_named_with_its_place_and_what_to_do(data: bytes, said: str) -> None:
    with pytest.raises(RunDirError) as caught:
        load_report(data, file="reports/7/report.json")
    assert caught.value.message.startswith("reports/7/report.json ")
    assert said in caught.value.message
    assert caught.value.hint


def test_the_schema_allows_the_three_words_for_numbers() -> None:
    bound = report_schema()["$defs"]["RatioEstimate"]["properties"]["high"]
    assert bound == {"anyOf": [{"type": "number"}, {"enum": ["-inf", "inf", "nan"]}]}
    assert ratio(1.0).high == 1.012


@pytest.mark.parametrize("name", sorted(report_schema()["$defs"]))
def test_every_field_of_the_schema_is_documented(name: str) -> None:
    definition = report_schema()["$defs"][name]
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE))
    assert name in sections, f"docs/formats/report.md has no section for {name}"
    documented = re.findall(r"^\| `([^`]+)` \|", sections[name], re.MULTILINE)
    assert sorted(documented) == sorted(definition.get("properties", definition.get("enum", [])))


def test_the_document_names_the_schema_version() -> None:
    assert f"Schema version: {SCHEMA_VERSION}" in DOCUMENT.read_text()
