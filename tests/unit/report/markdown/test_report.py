"""Markdown: inert whatever the names say, and never over the limit of a step summary."""

import re
from dataclasses import replace

import pytest

from harness.verdict.causes import with_causes
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict
from harness.report.markdown.report import LIMIT_BYTES, render_markdown
from harness.report.markdown.text import code, escape
from harness.report.words.summary import headline
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS, blocked, hostile, mitigated, slow, upgrade_ok


@pytest.mark.parametrize("name", REPORTS)
def test_the_decision_comes_first(name: str) -> None:
    report = REPORTS[name]()
    lines = render_markdown(report).splitlines()
    pair = f"{report.old.name} -> torch 2.6.0"
    assert lines[0].replace("\\", "").startswith(f"# {headline(report)}")
    assert lines[0].endswith((f": {pair}", f" ({pair})"))
    assert lines[2].startswith(f"**exit code {report.judgement.exit_code}")


def test_every_row_of_the_table_has_as_many_borders_as_its_head() -> None:
    text = render_markdown(hostile()).partition("## Times and memory")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    models, scenarios = 2 + len(HOSTILE_NAMES), 2 + 4
    back_and_static = [6] * models + [5] * models
    borders = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    causes = [6] * (2 + 2 * len(HOSTILE_NAMES))  # and what each has beyond a limit
    assert borders == causes + [10] * models + [9] * scenarios + back_and_static


FOLD = re.compile(r"^<details>$|^<summary>(?=[^<>]*</summary>$)|(?<!<)</summary>$|^</details>$", re.MULTILINE)


def test_no_html_survives_outside_code_but_that_of_folds() -> None:
    text = re.sub(r"(`+)[^`].*?[^`]\1(?!`)", "", FOLD.sub("", render_markdown(hostile())))
    assert "<" not in re.sub(r"```+sh\n.*?\n```+", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("fused_ranker -> x", "fused_ranker -> x"),
        ("_under_", "\\_under\\_"),
        ("a|b", "a\\|b"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("`code` **bold** [x](y)", "\\`code\\` \\*\\*bold\\*\\* \\[x\\](y)"),
        ("# head\n- item", "\\# head - item"),
        ("\x1b[0m", "\\\\x1b\\[0m"),
    ],
)
def test_escape_makes_text_inert(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a``b", "```a``b```"), ("", "`  `")]
)
def test_no_backtick_closes_a_code_span(text: str, span: str) -> None:
    assert code(text) == span


def test_a_command_with_backticks_stays_in_its_block() -> None:
    report = blocked()
    cell = "fused_ranker/backward/concurrent/cpu/default"
    text = render_markdown(replace(report, rerun={**report.rerun, cell: "run ```` now"}))
    assert "`````sh\nrun ```` now\n`````" in text


def test_a_report_over_the_limit_is_cut_between_pieces_and_says_so() -> None:
    text = render_markdown(blocked(), limit_bytes=3000)
    assert len(text.encode()) < 3200
    assert re.fullmatch(r"Cut here: \d+ more lines and cells are in `report.json`.", text.splitlines()[-1])
    assert text.count("```") % 2 == 0
    assert text.startswith("# BLOCKED")


def test_a_thousand_red_cells_stay_under_the_limit_of_a_step_summary() -> None:
    report = blocked()
    row = report.judgement.rows[1]
    crowd = tuple(replace(row, model=f"model_{index:04d}") for index in range(2500))
    text = render_markdown(replace(report, judgement=replace(report.judgement, rows=crowd), models=()))
    assert LIMIT_BYTES * 0.9 < len(text.encode()) < 1024 * 1024


def test_red_cells_and_reasons_are_reported_in_full() -> None:
    text = render_markdown(blocked())
    assert text.count("### FAIL: ") == 4
    assert "- **SAME_FAIL** old_trouble: RuntimeError on call 0 in torch 2.1.2 too" in text
    assert "`-` means not measured: init 2 of 6" in text


def test_the_cost_of_a_mitigation_is_reported() -> None:
    assert "- **cost** fused_ranker: profiling off (profiling_mode=False): steady latency" in render_markdown(
        mitigated()
    )


def times_and_memory(report: RunReport) -> str:
    """Return the section of times and memory."""
    return render_markdown(report).partition("## Times and memory\n")[2]


def test_every_row_of_times_and_memory_has_as_many_borders_as_its_head() -> None:
    for table in times_and_memory(hostile()).split("<details>")[1:]:
        lines = [line for line in table.splitlines() if line.startswith("| ")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_every_fold_is_closed() -> None:
    lines = render_markdown(hostile()).splitlines()
    assert lines.count("<details>") == lines.count("</details>") == 3 + len(HOSTILE_NAMES)


def test_a_healthy_run_marks_nothing_and_tells_no_model_in_full() -> None:
    text = times_and_memory(upgrade_ok())
    assert text.count("<details>") == 1
    assert "**" not in text.partition("<details>")[2]


def test_what_is_beyond_its_limit_is_bold_and_its_model_comes_first_and_in_full() -> None:
    text = times_and_memory(blocked())
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[2].startswith("| text_tagger | **+70.3 %** | -4.8 % |")
    assert rows[3].startswith("| recommender_v2 | +11.0 % |")
    assert "<summary>text_tagger: 8 of 15 beyond their limits</summary>" in text
    assert "| load | 118 -> 201 ms | **+70.3 % \\[+60.3, +80.3\\]** | +40 % |" in text
    assert "| growth of resident memory per call | **12 bytes -> 79.4 KiB** | - | - |" in text
    assert "<summary>recommender_v2" not in text


def test_what_no_model_has_gets_no_column() -> None:
    assert "device memory" not in times_and_memory(upgrade_ok())
    assert "| - |" in times_and_memory(blocked())


def test_without_a_benchmark_there_is_no_section() -> None:
    assert times_and_memory(REPORTS["golden"]()) == ""


def _passed(cells: tuple[CellVerdict, ...]) -> tuple[CellVerdict, ...]:
    return tuple(replace(cell, status=Status.PASS) for cell in cells)


@pytest.mark.slow
def test_of_thousands_of_slow_models_the_worst_are_reported_and_the_rest_counted() -> None:
    report = blocked()
    row, facts = slow()
    models = tuple(replace(facts, model=f"model_{index:04d}") for index in range(3000))
    rows = tuple(replace(row, model=model.model) for model in models)
    let_pass = [replace(row, status=Status.PASS, cells=_passed(row.cells)) for row in rows[:500]]
    noted = replace(report.judgement, rows=tuple(let_pass))
    text = render_markdown(with_causes(replace(report, judgement=noted, models=models[:500])))
    assert "And 300 more models, in `report.json`." in text
    assert "And 450 more models with a finding, in `report.json`." in text
    text = render_markdown(replace(report, judgement=replace(report.judgement, rows=rows), models=models))
    assert len(text.encode()) < 1024 * 1024
    assert text.count("<details>") == text.count("</details>")
