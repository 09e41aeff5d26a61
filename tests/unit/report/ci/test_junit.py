"""JUnit, read back by a parser as a CI server would."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.report.ci.junit import render_junit
from tests.unit.builders.planted_causes import of_three_causes
from tests.unit.builders.reports import (
    REPORTS,
    STORY,
    blocked,
    hostile,
    inconclusive,
    mitigated,
    nothing_tested,
    upgrade_ok,
)


def parsed(report: RunReport) -> dict[str, ET.Element]:
    """Return the suites of the rendered document by name."""
    root = ET.fromstring(render_junit(report).encode())  # noqa: S314 - our own output
    assert root.tag == "testsuites"
    return {suite.attrib["name"]: suite for suite in root}


def counts(suite: ET.Element) -> tuple[int, ...]:
    """Return tests, failures, errors and skipped as the attributes say."""
    return tuple(int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped"))


@pytest.mark.parametrize("name", REPORTS)
def test_counts_are_those_of_the_cases(name: str) -> None:
    for suite in parsed(REPORTS[name]()).values():
        cases = suite.findall("testcase")
        found = [sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")]
        assert counts(suite) == (len(cases), *found)
        assert cases


@pytest.mark.parametrize("name", REPORTS)
def test_only_an_exit_code_of_zero_is_green(name: str) -> None:
    report = REPORTS[name]()
    bad = sum(sum(counts(suite)[1:3]) for suite in parsed(report).values())
    assert (bad == 0) == (report.judgement.exit_code == 0)


def test_one_suite_per_scenario_then_planted_defects_then_the_rollback_then_gate() -> None:
    suites = parsed(blocked())
    assert list(suites) == ["alone", "concurrent", "while_serving", "latency", "planted_defects", "rollback", "gate"]
    assert {name: counts(suite) for name, suite in suites.items()} == {
        "alone": (6, 2, 0, 1),
        "concurrent": (4, 1, 0, 0),
        "while_serving": (1, 0, 0, 0),
        "latency": (3, 1, 0, 0),
        "planted_defects": (6, 0, 0, 0),
        "rollback": (3, 0, 0, 2),
        "gate": (1, 1, 0, 0),
    }


def test_the_suite_of_a_scenario_says_what_each_server_group_made_of_it() -> None:
    suites = parsed(blocked())
    properties = {item.attrib["name"]: item.attrib["value"] for item in suites["concurrent"].iter("property")}
    assert "the C++ worker, 4 threads: models ready 1 -> 0 of 1" in properties["server group ranking"]
    assert properties["server group ranking"].endswith("2 of 3 rounds failed: up to 99 % of starts may fail (95 %)")
    assert not [item for item in suites["alone"].iter("property") if "group" in item.attrib["name"]]


def test_the_whole_story_of_a_hang_is_in_its_case() -> None:
    failure = parsed(blocked())["concurrent"].find("testcase/failure")
    assert failure is not None
    assert [line for line in (failure.text or "").splitlines() if line.startswith("threads: ")] == [
        f"{label}: {text}" for label, text in STORY if label == "threads"
    ]


def test_a_case_is_named_by_its_cell() -> None:
    case = parsed(blocked())["concurrent"].findall("testcase")[0]
    assert case.attrib["classname"] == "concurrent/new"
    assert case.attrib["name"] == "fused_ranker/concurrent"
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "hang"
    assert "rerun: python -m harness rerun" in (failure.text or "")


def test_the_worst_cases_of_a_suite_come_first() -> None:
    order = ["failure", "error", "skipped", "system-out", None]
    for suite in parsed(blocked()).values():
        tags = [next((item.tag for item in case), None) for case in suite.findall("testcase")]
        assert tags == sorted(tags, key=order.index)


def test_evidence_is_named_as_a_reader_would_type_it() -> None:
    text = render_junit(blocked(), directory="/var/runs/a")
    assert "evidence: /var/runs/a/probes/5d1c0a/stacks.txt" in text


def test_nothing_tested_is_an_error() -> None:
    suites = parsed(nothing_tested())
    assert {name: counts(suite) for name, suite in suites.items()} == {"gate": (1, 0, 1, 0)}


def test_inconclusive_is_an_error_and_a_missed_planted_a_failure() -> None:
    suites = parsed(inconclusive())
    assert counts(suites["latency"]) == (1, 0, 1, 0)
    assert counts(suites["planted_defects"]) == (6, 1, 0, 0)
    assert counts(suites["gate"]) == (1, 0, 1, 0)


def test_a_mitigation_that_policy_accepts_is_green() -> None:
    report = mitigated()
    assert counts(parsed(report)["gate"]) == (1, 1, 0, 0)
    assert counts(parsed(replace(report, judgement=replace(report.judgement, exit_code=0)))["gate"]) == (1, 0, 0, 0)


@pytest.mark.parametrize("status", [Status.SAME_FAIL, Status.UNSUPPORTED, Status.XFAIL])
def test_known_trouble_is_skipped_with_its_reason(status: Status) -> None:
    report = upgrade_ok()
    row = report.judgement.rows[0]
    row = replace(row, cells=(replace(row.cells[0], status=status),), reason="known since 2.1")
    suite = parsed(replace(report, judgement=replace(report.judgement, rows=(row,))))["alone"]
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == f"{status.value}: known since 2.1"


def with_first_cell(status: Status, *, decides: bool) -> RunReport:
    """Return a report whose only cell has ``status``."""
    report = upgrade_ok()
    row = report.judgement.rows[0]
    row = replace(row, cells=(replace(row.cells[0], status=status, decides=decides),))
    return replace(report, judgement=replace(report.judgement, rows=(row,)))


def test_a_waiver_that_nothing_needs_is_a_failure() -> None:
    assert counts(parsed(with_first_cell(Status.XPASS, decides=True))["alone"]) == (1, 1, 0, 0)


def test_what_does_not_decide_the_run_is_skipped_not_an_error() -> None:
    assert counts(parsed(with_first_cell(Status.INCONCLUSIVE, decides=False))["alone"]) == (1, 0, 0, 1)


def test_hostile_names_survive_a_parser() -> None:
    names = [case.attrib["name"] for case in parsed(hostile())["alone"].findall("testcase")]
    assert "\\x1b[31mred\\x1b[0m/alone" in names
    assert "<script>alert(1)</script>/alone" in names


@pytest.mark.parametrize(
    ("started_at", "timestamp"),
    [
        ("2025-01-14T09:30:11+00:00", "2025-01-14T09:30:11"),
        ("2025-01-14T09:30:11.5Z", "2025-01-14T09:30:11"),
        ("?", None),
    ],
)
def test_a_timestamp_has_the_form_that_readers_accept(started_at: str, timestamp: str | None) -> None:
    suite = parsed(replace(upgrade_ok(), started_at=started_at))["alone"]
    assert suite.attrib.get("timestamp") == timestamp


def test_each_suite_names_the_pair() -> None:
    for suite in parsed(blocked()).values():
        properties = {item.attrib["name"]: item.attrib["value"] for item in suite.findall("properties/property")}
        assert properties["pair"] == "torch 2.1.2 -> torch 2.6.0"
        assert properties["decision"] == "BLOCKED"


def test_the_time_of_a_case_is_what_its_probes_took_and_that_of_a_suite_their_sum() -> None:
    cells = [cell.cell for cell in upgrade_ok().judgement.cells if cell.scenario == "alone"]
    report = replace(upgrade_ok(), durations_s={cells[0]: 1.2345, cells[1]: 10.0})
    suites = parsed(report)
    times = {case.attrib["name"]: case.attrib["time"] for case in suites["alone"].findall("testcase")}
    assert [times[cell] for cell in cells] == ["1.234", "10", "0"]
    assert suites["alone"].attrib["time"] == "11.234"
    assert suites["latency"].attrib["time"] == "0"


def test_a_failing_case_names_its_cause_and_how_many_others_share_it() -> None:
    cases = [case for suite in parsed(of_three_causes()).values() for case in suite.findall("testcase/failure")]
    told = [line for case in cases for line in (case.text or "").splitlines() if line.startswith("cause: ")]
    assert told.count("cause: operator-aten::_pad_packed_sequence_v0, as of 29 other models") == 30
    assert told.count("cause: slower, as of 29 other models") == 30
    assert len(told) == 100
