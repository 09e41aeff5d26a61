"""The console: what a reader of a terminal must find, and where."""

import re
from dataclasses import replace

import pytest

from harness.domain.outcome import Status
from harness.render.console import render_console
from harness.render.red_cells import red_cells
from tests.unit.render.builders import (
    PROFILING_OFF,
    REPORTS,
    blocked,
    inconclusive,
    mitigated,
    nothing_tested,
    upgrade_ok,
)

WHOLE_LINES = re.compile(r" *(evidence|rerun|reports) ")


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_fit_but_paths_and_commands_stay_whole(name: str, width: int) -> None:
    lines = render_console(REPORTS[name](), width=width).splitlines()
    assert [line for line in lines if len(line) > width and not WHOLE_LINES.match(line)] == []
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", REPORTS)
def test_the_decision_is_the_last_line(name: str) -> None:
    report = REPORTS[name]()
    last = render_console(report).splitlines()[-1]
    assert last.startswith(f"{report.judgement.decision.value}  (exit code {report.judgement.exit_code}")
    assert len(last) <= 80


def test_every_red_cell_says_model_stage_event_release_and_command() -> None:
    text = render_console(blocked())
    block = text[text.index("FAIL  fused_ranker: concurrent init") :].split("\n\n")[0]
    assert "hang: call 1 has not returned after 60 s" in block
    assert "since     torch 2.6.0; torch 2.1.2 is fine; gone with profiling off" in block
    assert "cure      profiling off (profiling_mode=False): steady latency +0.9 % [-0.4, +2.2]" in block
    assert "no cure   serialize loading (still hangs)" in block
    assert "evidence  reports/20250114-093011-2.1.2-2.6.0/probes/5d1c0a/stacks.txt" in block
    assert block.endswith("fused_ranker/backward/concurrent/cpu/default/all")


def test_every_red_cell_has_its_command_even_if_the_report_lacks_it() -> None:
    for cell in red_cells(replace(blocked(), rerun={})):
        assert cell.rerun == f"python -m harness rerun 20250114-093011-2.1.2-2.6.0 {cell.cell}"


def test_a_made_command_quotes_a_hostile_cell() -> None:
    commands = [cell.rerun for cell in red_cells(replace(REPORTS["hostile"](), rerun={}))]
    assert any(command.endswith("'pipe|in|name/backward/alone/cpu/default/all'") for command in commands)


def test_a_release_found_by_a_search_stands_for_the_pair() -> None:
    assert "since     torch 2.3.0 (bisected; torch 2.2.2 is fine)" in render_console(blocked())


def test_a_switch_that_never_helps_is_said() -> None:
    report = mitigated()
    row = report.judgement.rows[0]
    vain = replace(row, mitigations=(replace(PROFILING_OFF, cures=False),))
    text = render_console(replace(report, judgement=replace(report.judgement, rows=(vain,))))
    assert "every switch tried shows it too" in text


def test_a_cure_that_breaks_others_says_whom() -> None:
    report = mitigated()
    row = report.judgement.rows[0]
    harmful = replace(row, mitigations=(replace(PROFILING_OFF, price=None, breaks=("detector",)),))
    text = render_console(replace(report, judgement=replace(report.judgement, rows=(harmful,))))
    assert "price not measured; but breaks detector" in text


def test_the_reason_of_a_row_that_is_not_red_stands_below_the_table() -> None:
    text = render_console(blocked(), width=120)
    assert "SAME_FAIL  old_trouble\n  why       RuntimeError on call 0 in torch 2.1.2 too" in text


def test_a_red_row_without_red_cells_still_tells_its_reason() -> None:
    report = upgrade_ok()
    row = replace(report.judgement.rows[0], status=Status.FAIL, reason="the latency cell is missing")
    text = render_console(replace(report, judgement=replace(report.judgement, rows=(row,))))
    assert "FAIL  detector\n  why       the latency cell is missing" in text


def test_many_findings_are_counted_not_listed() -> None:
    report = blocked()
    row = report.judgement.rows[1]
    crowded = replace(row.cells[0], findings=row.cells[0].findings * 20)
    judgement = replace(report.judgement, rows=(replace(row, cells=(crowded,)),))
    text = render_console(replace(report, judgement=judgement))
    assert "and 37 more findings, in report.json" in text


def test_a_missed_canary_is_named() -> None:
    assert "canaries  5 of 6 caught; MISSED slow_down: expected latency" in render_console(inconclusive())


def test_a_run_without_canaries_says_so() -> None:
    assert "canaries  none ran" in render_console(nothing_tested())


def test_the_price_of_a_mitigation_is_part_of_the_decision() -> None:
    tail = render_console(mitigated(), width=120).splitlines()[-5:]
    assert tail[1].startswith("cost      fused_ranker: profiling off (profiling_mode=False): steady latency +0.9 %")


def test_an_accepted_mitigation_is_marked() -> None:
    report = mitigated()
    judgement = replace(report.judgement, exit_code=0, accepted_mitigations=("profiling off",))
    text = render_console(replace(report, judgement=judgement), width=120)
    assert "accepted by the policy" in text
    assert text.endswith("OK WITH MITIGATION  (exit code 0: compatible)\n")


def test_time_shares_are_shown_largest_first() -> None:
    assert "time      1 min 33 s: duel 38.1 s (41 %), export 21.2 s (23 %)" in render_console(blocked())


def test_the_folder_of_the_run_can_be_named() -> None:
    text = render_console(blocked(), directory="out/runs/7/")
    assert "reports   out/runs/7/\n" in text
    assert "evidence  out/runs/7/probes/5d1c0a/stacks.txt" in text


@pytest.mark.parametrize("name", REPORTS)
def test_colour_only_paints_status_words_and_the_decision(name: str) -> None:
    report = REPORTS[name]()
    painted = render_console(report, colour=True)
    plain = render_console(report)
    assert "\x1b" not in plain
    found = re.findall(r"\x1b\[[0-9;]+m([^\x1b]*)\x1b\[0m", painted)
    assert set(found) <= {*Status, report.judgement.decision.value}
    assert report.judgement.decision.value in found
    assert re.sub(r"\x1b\[[0-9;]+m", "", painted) == plain
