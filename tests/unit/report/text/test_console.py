"""The console: what a reader of a terminal must find, and where."""

import re
from functools import partial
from dataclasses import replace

import pytest

from harness.verdict.causes import with_causes
from harness.verdict.decide import decide
from harness.verdict.counting import counts_of, exceeded
from harness.core.migration import RunMigration
from harness.core.outcome import Status
from harness.core.report import RunReport, SideReport
from harness.core.verdict import PlantedDefectResult, Finding
from harness.report.markdown.report import render_markdown
from harness.report.text.console import render_console
from harness.report.words.red_cells import red_cells
from harness.report.words.summary import headline
from tests.unit.builders.planted_causes import of_forty_causes, of_three_causes, red, run_of
from tests.unit.builders.reports import (
    PROFILING_OFF,
    REPORTS,
    blocked,
    inconclusive,
    migrating,
    mitigated,
    nothing_tested,
    upgrade_ok,
)

everything = partial(render_console, verbose=True)

WHOLE_LINES = re.compile(r" *(evidence|found|rerun|bisect|reports|more|says more|artifact|shows) | {12}reports/\S+$")


def undecided() -> RunReport:
    """Return a green run with a warning and a latency that was not decided."""
    report = upgrade_ok()
    row = report.judgement.rows[0]
    slow = Finding(kind="load_time", message="load time +70.0 % [+60.0, +80.0], told from +50 %")
    open_ = Finding(kind="latency_undecided", message="steady latency +1.0 % [-3.0, +5.0] is not decided")
    cells = (
        replace(row.cells[0], findings=(slow,)),
        replace(
            row.cells[-1], status=Status.INCONCLUSIVE, findings=(open_,), decides=False, note="+1.0 % [-3.0, +5.0]"
        ),
    )
    rows = (replace(row, cells=cells), *report.judgement.rows[1:])
    over = tuple(item.words for item in exceeded(rows))
    return replace(report, judgement=replace(report.judgement, rows=rows, counts=counts_of(rows), exceeded=over))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_fit_but_paths_and_commands_stay_whole(name: str, width: int) -> None:
    lines = everything(REPORTS[name](), width=width).splitlines()
    assert [line for line in lines if len(line) > width and not WHOLE_LINES.match(line)] == []
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", REPORTS)
def test_the_decision_is_the_last_line(name: str) -> None:
    report = REPORTS[name]()
    last = everything(report).splitlines()[-1]
    assert last.startswith(f"{headline(report)}  (exit code {report.judgement.exit_code}")
    assert len(last) <= 80


def test_a_long_condition_is_cut_and_the_exit_code_stays() -> None:
    report = mitigated()
    judgement = replace(report.judgement, mitigation="; ".join(["fuser off, latency +80.5 % [+79.3, +81.7]"] * 4))
    last = everything(replace(report, judgement=judgement), colour=True).splitlines()[-1]
    assert "OK WITH MITIGATION\x1b[0m: fuser off, la" in last
    assert "..." in last and last.endswith("  (exit code 1)") and len(last) <= 80 + len("\x1b[1;33m\x1b[0m")


def test_every_red_cell_says_model_stage_event_release_and_command() -> None:
    text = everything(blocked())
    block = text[text.index("FAIL  fused_ranker: concurrent init") :].split("\n\n")[0]
    assert "hang: call 1 has not returned after 60 s" in block
    assert "since     torch 2.6.0; torch 2.1.2 is fine; gone with profiling off" in block
    assert "cure      profiling off (profiling_mode=False): steady latency +0.9 % [-0.4, +2.2]" in block
    assert "no cure   serialize loading (still hangs)" in block
    assert "evidence  reports/20250114-093011-2.1.2-2.6.0/probes/5d1c0a/stacks.txt" in block
    assert block.endswith("fused_ranker/backward/concurrent/cpu/default")


def test_a_red_latency_says_how_sure_it_is_and_what_else_is_slower() -> None:
    text = everything(blocked(), width=120)
    block = text[text.index("FAIL  text_tagger: latency") :].split("\n\n")[0]
    assert "steady latency +11.9 % [+9.9, +13.9] (2.12 ms -> 2.38 ms) over 3 fresh process pairs, limit +5 %" in block
    assert "measured  same against same +0.4 % [-0.9, +1.7]; detectable from +2.0 %; callers waited for a core" in block
    assert "beside    first calls of input set large 21.0 -> 158 ms, +652 % [+562, +742]" in block


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "hostile"])
def test_a_terminal_gets_ascii_where_the_models_do(name: str) -> None:
    assert everything(REPORTS[name]()).isascii()


def test_every_red_cell_has_its_command_even_if_the_report_lacks_it() -> None:
    for cell in red_cells(replace(blocked(), rerun={})):
        assert cell.rerun == f"python -m harness rerun 20250114-093011-2.1.2-2.6.0 {cell.cell}"


def test_a_made_command_quotes_a_hostile_cell() -> None:
    commands = [cell.rerun for cell in red_cells(replace(REPORTS["hostile"](), rerun={}))]
    assert any(command.endswith("'pipe|in|name/backward/alone/cpu/default'") for command in commands)


def test_a_release_found_by_a_search_stands_for_the_pair() -> None:
    assert "since     torch 2.3.0; torch 2.2.2 is good" in everything(blocked())


def test_a_switch_that_never_helps_is_said() -> None:
    report = mitigated()
    row = report.judgement.rows[0]
    vain = replace(row, mitigations=(replace(PROFILING_OFF, cures=False),))
    text = everything(replace(report, judgement=replace(report.judgement, rows=(vain,))))
    assert "every switch tried shows it too" in text


def test_switches_that_fail_alike_share_their_reason() -> None:
    report = mitigated()
    row = report.judgement.rows[0]
    names = ("profiling off", "fuser off", "inference mode")
    notes = ("still hangs", "still hangs", "crashes")
    tried = [replace(PROFILING_OFF, name=name, cures=False, note=note) for name, note in zip(names, notes, strict=True)]
    row = replace(row, mitigations=tuple(tried))
    text = everything(replace(report, judgement=replace(report.judgement, rows=(row,))))
    assert "no cure   profiling off, fuser off (still hangs), inference mode (crashes)" in text


def test_the_note_of_a_single_finding_stands_beside_it() -> None:
    report = blocked()
    row = report.judgement.rows[3]
    row = replace(row, cells=(replace(row.cells[0], note="in 2 of 3 rounds"),))
    cell = red_cells(replace(report, judgement=replace(report.judgement, rows=(row,))))[0]
    assert cell.lines[0][1].endswith("[load]; in 2 of 3 rounds")
    assert [label for label, _ in cell.lines].count("what") == 1


def test_a_cure_that_breaks_others_says_whom() -> None:
    report = mitigated()
    row = report.judgement.rows[0]
    harmful = replace(row, mitigations=(replace(PROFILING_OFF, price=None, breaks=("detector",)),))
    text = everything(replace(report, judgement=replace(report.judgement, rows=(harmful,))))
    assert "price not measured; but breaks detector" in text


def test_the_reason_of_a_row_that_is_not_red_stands_below_the_table() -> None:
    text = everything(blocked(), width=120)
    assert "SAME_FAIL  old_trouble\n  why       RuntimeError on call 0 in torch 2.1.2 too" in text


def test_a_red_row_without_red_cells_still_tells_its_reason() -> None:
    report = upgrade_ok()
    row = replace(report.judgement.rows[0], status=Status.FAIL, reason="the latency cell is missing")
    text = everything(replace(report, judgement=replace(report.judgement, rows=(row,))))
    assert "FAIL  detector\n  why       the latency cell is missing" in text


def test_many_findings_are_counted_not_listed() -> None:
    report = blocked()
    row = report.judgement.rows[1]
    crowded = replace(row.cells[0], findings=row.cells[0].findings * 20)
    judgement = replace(report.judgement, rows=(replace(row, cells=(crowded,)),))
    text = everything(replace(report, judgement=judgement))
    assert "and 37 more findings, in report.json" in text


def test_a_latency_that_does_not_decide_is_reported_but_is_no_red_cell() -> None:
    report = undecided()
    text = everything(report, width=120)
    assert red_cells(report) == ()
    assert "undecided latency of 1 model, does not decide the run: detector" in text
    assert "worst     detector: steady latency +1.0 % [-3.0, +5.0] is not decided" in text
    go_on = f"longer    python -m harness compat --resume {report.run} --more 10min"
    assert go_on in text.splitlines()
    assert go_on in render_console(report, width=80).splitlines()
    repeated = everything(replace(report, arguments=("rerun", "last")), width=120)
    assert "longer    python -m harness rerun" in repeated
    assert text.splitlines()[-1].startswith("UPGRADE OK, but detector: load time ")


def test_a_warning_on_a_cell_that_passes_is_reported() -> None:
    assert "warning   detector, load and calls: load_time: load time +70.0 % [+60.0, +80.0]" in everything(undecided())


def test_many_side_lines_are_counted_on_the_console_and_listed_in_markdown() -> None:
    report = undecided()
    row = report.judgement.rows[0]
    rows = tuple(replace(row, model=f"m{index}") for index in range(9))
    crowded = replace(report, judgement=replace(report.judgement, rows=rows))
    assert "and 6 more warnings, in report.md" in everything(crowded)
    assert render_markdown(crowded).count("- **warning** ") == 9


def test_a_cell_that_was_kept_out_says_so_once_and_claims_no_release() -> None:
    report = blocked()
    row = report.judgement.rows[3]
    note = "kept out of its server group: it fails alone already"
    kept_out = replace(row.cells[0], cell=row.cells[0].cell.replace("alone", "concurrent"), findings=(), note=note)
    rows = (replace(row, cells=(*row.cells, kept_out)),)
    cell = red_cells(replace(report, judgement=replace(report.judgement, rows=rows)))[1]
    assert cell.lines == (("what", note),)


def test_a_reason_that_is_the_note_of_its_cell_is_reported_once() -> None:
    report = inconclusive()
    row = report.judgement.rows[0]
    cells = (replace(row.cells[1], findings=(), note="no pair finished"),)
    row = replace(row, cells=cells, reason="no pair finished")
    text = everything(replace(report, judgement=replace(report.judgement, rows=(row,))))
    assert text.count("no pair finished") == 1


def test_the_heaviest_findings_are_reported_first() -> None:
    report = blocked()
    row = report.judgement.rows[3]
    light = tuple(Finding(kind="stride", message=f"stride {index}") for index in range(5))
    cell = replace(row.cells[0], findings=(*light, *row.cells[0].findings))
    rows = (replace(row, cells=(cell,)),)
    found = red_cells(replace(report, judgement=replace(report.judgement, rows=rows)))[0]
    assert found.lines[0][1].startswith("load_error: ")


def test_golden_records_are_named_as_the_judge() -> None:
    report = blocked()
    text = everything(replace(report, old=SideReport(name="golden records", fingerprint=None, golden=True)))
    assert "torch     golden records -> 2.6.0+cu124" in text
    assert "since     torch 2.6.0; judged by golden records" in text


def test_an_environment_that_never_started_is_said() -> None:
    report = nothing_tested()
    text = everything(replace(report, new=replace(report.new, fingerprint=None)))
    assert "-> torch 2.6.0 (never started)" in text


def test_a_fact_that_names_itself_is_not_named_twice() -> None:
    report = blocked()
    sides = {"old": replace(report.old, fingerprint=None)}
    fingerprint = report.new.fingerprint
    assert fingerprint is not None
    sides["new"] = replace(report.new, fingerprint=replace(fingerprint, glibc="glibc 2.36"))
    assert ", glibc 2.36," in everything(replace(report, old=sides["old"], new=sides["new"]))


def test_a_narrow_terminal_counts_as_80_columns() -> None:
    assert everything(blocked(), width=7) == everything(blocked(), width=80)


def test_a_healthy_twin_that_was_accused_is_named() -> None:
    report = upgrade_ok()
    twin = PlantedDefectResult(name="hang_twin", expected="", reported=("values",), caught=False)
    text = everything(replace(report, judgement=replace(report.judgement, planted_defects=(twin,))))
    assert "MISSED hang_twin: expected nothing (a healthy twin), reported values" in " ".join(text.split())


def test_a_missed_planted_is_named() -> None:
    assert "planted   defects: 5 of 6 caught; MISSED slow_down: expected latency" in everything(inconclusive())


def test_a_run_without_planted_defects_says_so() -> None:
    assert "planted   defects: none ran" in everything(nothing_tested())


def test_the_price_of_a_mitigation_is_part_of_the_decision() -> None:
    tail = everything(mitigated(), width=120).splitlines()[-5:]
    assert tail[1].startswith("cost      fused_ranker: profiling off (profiling_mode=False): steady latency +0.9 %")


def test_an_accepted_mitigation_is_marked() -> None:
    report = mitigated()
    judgement = replace(report.judgement, exit_code=0, accepted_mitigations=("profiling off",))
    text = everything(replace(report, judgement=judgement), width=120)
    assert "accepted by the policy" in text
    assert text.endswith("OK WITH MITIGATION: profiling off, latency +0.9 % [-0.3, +2.1]  (exit code 0)\n")


def test_time_shares_are_shown_largest_first() -> None:
    assert "time      1 min 33 s: benchmark 38.1 s (41 %), export 21.2 s (23 %)" in everything(blocked())


def test_the_folder_of_the_run_can_be_named() -> None:
    text = everything(blocked(), directory="out/runs/7/")
    assert "reports   out/runs/7/\n" in text
    assert "evidence  out/runs/7/probes/5d1c0a/stacks.txt" in text


@pytest.mark.parametrize("name", REPORTS)
def test_colour_only_paints_status_words_and_the_decision(name: str) -> None:
    report = REPORTS[name]()
    painted = everything(report, colour=True)
    plain = everything(report)
    assert "\x1b" not in plain
    found = re.findall(r"\x1b\[[0-9;]+m([^\x1b]*)\x1b\[0m", painted)
    assert set(found) <= {*Status, report.judgement.decision.value, "NO ROLLBACK", "WRONG PREDICTION"}
    assert report.judgement.decision.value in found
    assert re.sub(r"\x1b\[[0-9;]+m", "", painted) == plain


def test_models_that_came_closer_to_float64_are_reported_once_each() -> None:
    report = undecided()
    nearer = Finding(kind="closer_to_reference", message="output: differs, and is closer to float64 than before")
    row = report.judgement.rows[0]
    cells = tuple(replace(cell, findings=(*cell.findings, nearer)) for cell in row.cells)
    text = everything(
        replace(report, judgement=replace(report.judgement, rows=(replace(row, cells=cells),))), width=120
    )
    assert "float64   1 model, beyond tolerance and no further from float64 than before: detector" in text


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("report", [*(make() for make in REPORTS.values()), of_three_causes(), of_forty_causes()])
def test_the_console_has_at_most_60_lines_whatever_is_red(report: RunReport, width: int) -> None:
    lines = render_console(report, width=width).splitlines()
    assert len(lines) <= 60
    assert report.judgement.decision.value in lines[-1]
    assert any(line.startswith("more      python -m harness report ") for line in lines)


def test_a_hundred_red_cells_of_three_causes_are_three_blocks() -> None:
    text = render_console(of_three_causes())
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("FAIL")]
    assert [block[1].strip() for block in blocks] == [
        "models    30: legacy_00, legacy_01, legacy_02, legacy_03, legacy_04 and 25 more",
        "models    20 in 40 cells: ranker_00, ranker_01, ranker_02, ranker_03, ranker_04 and 15 more",
        "models    30: vision_29, vision_28, vision_27, vision_26, vision_25 and 25 more",
    ]
    assert all(block[-2].strip().startswith("rerun") and "--cause" in block[-2] for block in blocks)
    assert "and 90 models more: 70 FAIL, 20 PASS" in text


def test_of_forty_causes_some_are_blocks_some_lines_and_the_rest_is_counted() -> None:
    text = render_console(of_forty_causes())
    lines = [line for line in text.splitlines() if line.startswith("FAIL  ")]
    (rest,) = re.findall(r"and (\d+) more causes: python -m harness report \S+ --verbose", text)
    assert len(lines) + int(rest) == 40
    assert text.count("  rerun ") >= 3
    assert sum(line.startswith("FAIL  values-m") for line in lines) >= 3


def test_a_healthy_run_of_65_models_is_short() -> None:
    lines = render_console(run_of([], healthy_models=65)).splitlines()
    assert len(lines) <= 30
    assert "and 55 models more: 55 PASS" in lines


def test_the_table_begins_with_the_clearest_model_of_each_cause() -> None:
    lines = render_console(of_three_causes()).splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("-----")) + 1
    assert [line.split()[0] for line in lines[begin : begin + 4]] == [
        "legacy_00",
        "ranker_00",
        "vision_29",
        "legacy_01",
    ]


def test_in_full_every_cell_names_its_cause() -> None:
    text = everything(of_three_causes(), width=200)
    assert text.count("  cause     operator-aten::_pad_packed_sequence_v0, as of 29 other models") == 30
    assert text.count("FAIL  operator-aten::_pad_packed_sequence_v0 (30 models): ") == 1


def test_the_short_form_says_what_the_signs_in_its_table_mean() -> None:
    assert "table     x: new time / old time" in render_console(upgrade_ok(), width=80)
    for report in (undecided(), inconclusive()):
        assert "?: could not tell whether within the limit" in " ".join(render_console(report).split())
    assert "-: not measured" in render_console(inconclusive())
    assert "?: " not in render_console(upgrade_ok())


def test_what_all_models_share_is_the_reason_beside_a_model_that_fails() -> None:
    report = run_of([red("a", "load_error", "does not load: RuntimeError: Unknown builtin op: aten::foo")])
    shared = Finding(kind="common_slowdown", message="what all 9 timed models share: +30 %", size=1.3)
    rows, defects = report.judgement.rows, report.judgement.planted_defects
    both = with_causes(replace(report, judgement=decide(rows, defects, findings=(shared,))))
    text = " ".join(render_console(both, width=120).split())
    assert " why a: does not load" in text and "; what all 9 timed models share: +30 %" in text
    assert not any(line.startswith("why ") for line in render_console(report).splitlines())


@pytest.mark.parametrize(
    ("reasons", "said"), [(("hangs", "hangs"), "a, b: hangs"), (("hangs", "crashes"), "a, b; a: hangs")]
)
def test_a_reason_that_not_all_share_is_said_of_the_one_that_has_it(reasons: tuple[str, str], said: str) -> None:
    report = upgrade_ok()
    row, model = report.judgement.rows[0], report.models[0]
    cell = replace(row.cells[0], status=Status.SAME_FAIL, findings=())
    rows = tuple(
        replace(row, model=name, status=Status.SAME_FAIL, reason=reason, cells=(replace(cell, model=name),))
        for name, reason in zip("ab", reasons, strict=True)
    )
    models = tuple(replace(model, model=name) for name in "ab")
    told = render_console(replace(report, models=models, judgement=replace(report.judgement, rows=rows)), width=100)
    assert f"SAME_FAIL  {said}\n" in told


@pytest.mark.parametrize("verbose", [False, True])
def test_a_run_that_was_asked_counts_who_could_leave_torchscript_and_says_how_to_learn_more(*, verbose: bool) -> None:
    report = migrating()
    text = " ".join(render_console(report, verbose=verbose).split())
    assert "migrate 6 models: 1 ready, 1 not convertible," in text
    assert "(in torch 2.6.0; decides nothing); 1 model has left TorchScript already" in text
    assert "says more python -m harness migrate --old 2.1.2 --new 2.6.0" in text
    why_not = "torch 2.1.2 has no converter: convert in a release that has one"
    none = replace(report, migration=RunMigration(release="torch 2.1.2", why_not=why_not))
    text = " ".join(render_console(none, verbose=verbose).split())
    assert text.count(why_not) == 1
    assert "says more" not in text
