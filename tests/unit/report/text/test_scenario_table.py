"""The table of initializations: what is summed, what is listed, and that it fits."""

from functools import partial
from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport, ScenarioReport
from harness.report.markdown.report import render_markdown
from harness.report.text.console import render_console
from harness.report.text.scenarios import console_rows, facts_words, scenario_rows, summary_row, text_table
from harness.serving.scenarios import INITIALIZATIONS
from tests.unit.builders.reports import (
    REPORTS,
    blocked,
    golden,
    hanging_group,
    nothing_tested,
    scenario,
    scenario_side,
    upgrade_ok,
    verdict,
)

everything = partial(render_console, verbose=True)


def with_scenarios(*scenarios: ScenarioReport) -> RunReport:
    return replace(upgrade_ok(), scenarios=scenarios)


def first_texts(report: RunReport) -> list[str]:
    return [first for first, _ in console_rows(report)]


def lines_of(report: RunReport, width: int = 120) -> list[list[str]]:
    """Return the table's rows, split at gaps of two blanks."""
    lines = text_table(report, width=width).splitlines()[2:]
    return [[text.strip() for text in line.split("  ") if text.strip()] for line in lines]


def test_a_healthy_scenario_is_one_line_whatever_its_server_groups() -> None:
    assert first_texts(upgrade_ok()) == ["concurrent init", "load while serving"]
    assert lines_of(upgrade_ok())[0] == [
        "concurrent init",
        "3 -> 3 of 3",
        "2.48 -> 2.62 s",
        "1.8 -> 1.9",
        "393 MiB",
        "0 -> 0 of 6",
        "PASS",
    ]


def test_server_groups_are_listed_where_something_is_red() -> None:
    report = blocked()
    assert first_texts(report) == ["concurrent init", "in ranking", "init and teardown"]
    summary, ranking, _ = lines_of(report)
    assert summary[1] == "4 -> 3 of 4"
    assert ranking[1:3] == ["1 -> 0 of 1", "1.24 s -> -"]
    assert ranking[-2:] == ["0 -> 2 of 3", "FAIL"]


def test_a_single_server_group_needs_no_line_of_its_own() -> None:
    assert first_texts(with_scenarios(hanging_group())) == ["concurrent init"]


def test_a_race_makes_its_group_red_although_every_model_got_ready() -> None:
    report = upgrade_ok()
    row = report.judgement.rows[1]
    cells = (verdict(row.model, "concurrent", Status.FAIL),)
    rows = (report.judgement.rows[0], replace(row, cells=cells), report.judgement.rows[2])
    report = replace(report, judgement=replace(report.judgement, rows=rows))
    assert first_texts(report) == ["concurrent init", "in ranking", "load while serving"]
    assert [row.status_word for _, row in console_rows(report)][:2] == ["FAIL", "FAIL"]


def test_many_red_groups_are_counted_on_the_console_and_listed_in_markdown() -> None:
    groups = [replace(hanging_group(), group=f"group_{index}") for index in range(9)]
    report = with_scenarios(*groups)
    text = everything(report)
    assert "and 3 more server groups, in report.md" in text
    assert len(console_rows(report)) == 1 + 6
    assert render_markdown(report).count("| concurrent init | group") == 9


def test_a_group_that_nobody_judged_has_no_status() -> None:
    assert scenario_rows(with_scenarios(scenario("concurrent", "elsewhere", 2)))[0].status_word == "-"


def test_sums_leave_a_time_out_that_one_group_lacks() -> None:
    rows = scenario_rows(with_scenarios(scenario("concurrent", "vision", 3), hanging_group()))
    summed = summary_row(rows)
    assert summed.facts.new.init_s is None
    assert summed.facts.old is not None
    assert summed.facts.old.init_s == pytest.approx(2.48)
    assert summed.facts.hang_bound == 0.9831


def test_the_overlap_of_all_groups_weighs_each_model_alike() -> None:
    alone = scenario("concurrent", "a", 1, new=scenario_side(1, overlap=1.0))
    many = scenario("concurrent", "b", 3, new=scenario_side(3, overlap=2.0))
    assert summary_row(scenario_rows(with_scenarios(alone, many))).facts.new.load_overlap == 1.75


def test_an_overlap_that_one_group_lacks_has_no_mean() -> None:
    hanging = replace(hanging_group(), new=replace(hanging_group().new, load_overlap=None))
    report = with_scenarios(hanging, scenario("concurrent", "vision", 3))
    assert [facts_words(row, compact=False)[2] for _, row in console_rows(report)] == ["1.8 -> -", "1.8 -> -"]


def test_the_overlap_of_the_python_worker_says_nothing() -> None:
    assert golden().scenarios[0].new.load_overlap is not None
    assert {facts_words(row, compact=False)[2] for row in scenario_rows(golden())} == {"-"}


def test_beside_golden_records_there_is_no_old_side_and_no_overlap() -> None:
    text = text_table(golden(), width=120)
    assert "->" not in text
    assert "overlap" not in text
    assert lines_of(golden())[0] == ["concurrent init", "3 of 3", "2.62 s", "393 MiB", "0 of 2", "PASS"]


def test_growth_of_memory_has_a_sign_and_stands_for_the_peak() -> None:
    assert [facts_words(row, compact=False)[3] for row in scenario_rows(blocked())] == [
        "393 MiB",
        "393 MiB",
        "+1.18 MiB",
        "-2.05 KiB",
    ]


def test_rounds_that_differ_between_the_releases_are_reported_for_both() -> None:
    item = scenario("while_serving", "vision", 2, new=scenario_side(2, rounds=1, failed=1, ready=1))
    assert lines_of(with_scenarios(item))[0][-2] == "0 of 3 -> 1 of 1"


def test_a_run_without_initializations_has_no_table() -> None:
    assert text_table(nothing_tested(), width=80) == ""
    assert "Initialization" not in render_markdown(nothing_tested())
    assert "rounds" not in everything(nothing_tested())


@pytest.mark.parametrize("width", [80, 90, 100, 120])
@pytest.mark.parametrize("name", [name for name in REPORTS if REPORTS[name]().scenarios])
def test_the_table_fits_its_width(name: str, width: int) -> None:
    assert max(map(len, text_table(REPORTS[name](), width=width).splitlines())) <= width


def test_the_widest_words_fit_80_columns() -> None:
    side = scenario_side(1000, rounds=1000, failed=1000, ready=1000, init_s=1234.5, overlap=31.99, growth=-123e9)
    widest = [
        replace(scenario(name, "g" * 40, 1000, new=side), old=replace(side, rounds=999)) for name in INITIALIZATIONS
    ]
    lines = text_table(with_scenarios(*widest), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 2 + len(INITIALIZATIONS)


def test_colour_does_not_move_a_column() -> None:
    painted = text_table(blocked(), width=100, paint=lambda word: f"\x1b[31m{word}\x1b[0m")
    assert painted.replace("\x1b[31m", "").replace("\x1b[0m", "") == text_table(blocked(), width=100)


def test_a_small_green_run_is_read_without_scrolling() -> None:
    assert len(everything(upgrade_ok(), width=100).splitlines()) <= 40
