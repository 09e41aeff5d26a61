"""What has changed since another run, in every format that a reader may have."""

from functools import partial
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from harness.core.outcome import Status
from harness.core.report import CellChange, CellTrend
from harness.report.ci.junit import render_junit
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_console
from harness.report.words.red_cells import red_cells
from harness.report.words.since import disturbed_words, since_lines, since_words, trend_counts
from tests.unit.builders.reports import beside_another, blocked, cell_id, golden

everything = partial(render_console, verbose=True)


def test_nothing_is_said_where_nobody_asked() -> None:
    assert since_lines(blocked()) == ()
    assert since_words(blocked()) == ""
    for render in (everything, render_markdown, render_junit):
        assert "since 2025" not in render(blocked()).lower()


def test_new_and_fixed_are_counted_also_where_there_are_none() -> None:
    report = beside_another()
    assert report.baseline is not None
    quiet = replace(report, baseline=replace(report.baseline, changes=(), counts={"unchanged": 16}))
    assert since_words(quiet).startswith("0 new, 0 fixed, 16 unchanged (cells), since 20250113")


def test_the_order_is_that_of_a_readers_interest() -> None:
    labels = [label for label, _ in since_lines(beside_another())]
    assert labels == ["baseline", "differs", "differs", "new", "new", "fixed", "gone"]


def test_the_cells_of_a_model_that_is_gone_are_one_line() -> None:
    (gone,) = [text for label, text in since_lines(beside_another()) if label == "gone"]
    assert gone.startswith("retired, load and calls, concurrent init, load while serving, latency: PASS -> not there")


def test_of_many_models_that_are_gone_only_those_that_failed_are_reported_one_by_one() -> None:
    report = beside_another()
    assert report.baseline is not None
    gone = [
        CellChange(cell=f"{name}/x", model=name, scenario="alone", change=CellTrend.GONE, was=was, why="not there")
        for name, was in (("a", Status.PASS), ("b", Status.FAIL), ("c", Status.PASS), ("d", Status.SAME_FAIL))
    ]
    report = replace(report, baseline=replace(report.baseline, changes=tuple(gone)))
    told = [text for label, text in since_lines(report) if label == "gone"]
    assert told == [
        "3 cells of a, c, d, none of them red; not there",
        "b, load and calls: FAIL -> not there; not there",
    ]


def test_what_is_not_listed_is_counted() -> None:
    assert since_lines(beside_another(), listed=1)[-1] == ("more", "6 cells, in report.json")


def test_a_red_cell_says_whether_it_was_red_before() -> None:
    said = {cell.cell: dict(cell.lines).get("baseline") for cell in red_cells(beside_another())}
    assert said[cell_id("fused_ranker", "concurrent")] == "unchanged since 20250113-093007-2.1.2-2.6.0"
    assert said[cell_id("text_tagger", "latency")] == (
        "new since 20250113-093007-2.1.2-2.6.0 (PASS before): +11.9 % [+9.9, +13.9], was +0.4 % [-0.8, +1.6]"
    )
    assert (
        said[cell_id("legacy_lstm", "alone")]
        == "new since 20250113-093007-2.1.2-2.6.0: the other run did not have the model"
    )
    assert not any(label == "baseline" for cell in red_cells(blocked()) for label, _ in cell.lines)


def test_a_latency_is_shown_with_what_disturbed_the_machine_and_a_hang_with_the_kills() -> None:
    said = {
        cell.cell: [text for label, text in cell.lines if label == "machine"] for cell in red_cells(beside_another())
    }
    assert said[cell_id("text_tagger", "latency")] == ["steal time: the hypervisor took 12 % of the cores' time"]
    assert said[cell_id("fused_ranker", "concurrent")] == [
        "out of memory: the kernel killed 2 processes in this container"
    ]
    assert said[cell_id("recommender_v2", "alone")] == said[cell_id("legacy_lstm", "alone")] == []


def test_the_table_of_latencies_is_read_with_the_machine() -> None:
    told = "machine   steal time: the hypervisor took 12 % of the cores' time"
    assert told in everything(beside_another())
    assert "machine   " not in everything(blocked())
    untimed = golden()
    assert disturbed_words(replace(untimed, during_run=beside_another().during_run)) == ""


def test_markdown_has_a_section_and_a_line_at_the_top() -> None:
    text = render_markdown(beside_another())
    assert text.index("- **baseline** 2 new, 1 fixed, 4 gone, 11 unchanged") < text.index("## Models")
    section = text.partition("## Since the baseline")[2].partition("\n## ")[0]
    assert "- **new** text_tagger, latency: PASS -&gt; FAIL" in section or "PASS -> FAIL" in section


def test_junit_tells_it_and_fails_nothing_for_it() -> None:
    suites = {}
    for report in (blocked(), beside_another()):
        root = ET.fromstring(render_junit(report).encode())  # noqa: S314 - our own output
        suites[report.baseline is not None] = root
    gate = next(suite for suite in suites[True] if suite.attrib["name"] == "gate")
    told = [item.attrib["value"] for item in gate.iter("property") if item.attrib["name"] == "baseline"]
    assert told and told[0].startswith("2 new, 1 fixed")
    failures = [[suite.attrib["failures"] for suite in root] for root in suites.values()]
    assert failures[0] == failures[1]


@pytest.mark.parametrize("change", CellTrend)
def test_every_change_has_words(change: CellTrend) -> None:
    assert change.words.replace(" ", "").isalpha()


def test_what_only_the_other_run_left_open_is_decided_now() -> None:
    change = CellChange(
        cell="m/alone",
        model="m",
        scenario="alone",
        change=CellTrend.UNDECIDED,
        was=Status.INCONCLUSIVE,
        now=Status.PASS,
    )
    assert change.words == "decided now"
    open_now = replace(change, was=Status.PASS, now=Status.INCONCLUSIVE)
    assert open_now.words == "undecided"
    found = beside_another().baseline
    assert found is not None
    found = replace(found, changes=(change, open_now), counts={"undecided": 2})
    assert [(words, count) for _, words, count in trend_counts(found) if count] == [
        ("undecided", 1),
        ("decided now", 1),
    ]
