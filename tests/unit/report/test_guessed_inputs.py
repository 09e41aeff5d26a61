"""Inputs that were guessed are told wherever a person looks: in the table, below it, in its own list, in the notes."""

from functools import partial
from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import Finding, Ruled
from harness.report.backends.html import render_page
from harness.report.backends.terminal import render_terminal
from harness.report.ci.junit import render_junit
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_console
from harness.report.documents.run import run_document
from harness.report.text.table import guessed_words, row_cells, table_rows
from harness.report.words.red_cells import red_cells
from tests.unit.builders.reports import upgrade_ok, verdict

everything = partial(render_console, verbose=True)

GUESS = "forward(x=float32[2, 16], words={'a|b': int64[2]})"
NOTE = f"inputs of 1 of 3 models were guessed: detector ({GUESS})"


def guessed() -> RunReport:
    """Return a green run in which the inputs of one model of three were guessed."""
    report = upgrade_ok()
    models = tuple(replace(model, guessed=GUESS if model.model == "detector" else "") for model in report.models)
    return replace(report, models=models, notes=(*report.notes, NOTE))


def test_outputs_of_guessed_inputs_are_marked() -> None:
    rows = table_rows(guessed())
    outputs = {row.model: row_cells(row, compact=True)[4] for row in rows}
    assert {name for name, text in outputs.items() if text.endswith(" *")} == {"detector"}
    assert guessed_words(rows) == "inputs of 1 of 3 models, marked *"
    assert guessed_words(table_rows(upgrade_ok())) == ""


@pytest.mark.parametrize("width", [80, 100, 120])
def test_console_has_the_mark_its_meaning_and_the_note_within_its_width(width: int) -> None:
    text = everything(guessed(), width=width)
    (row,) = [line for line in text.splitlines() if line.startswith("detector ") and line.endswith("PASS")]
    assert " * " in row and len(row) <= width
    assert "\nguessed   inputs of 1 of 3 models, marked *, listed in report.md\n" in text
    assert "note      inputs of 1 of 3 models were guessed: detector" in text
    assert "guessed" not in everything(upgrade_ok(), width=width)


def test_markdown_lists_every_guess() -> None:
    text = render_markdown(guessed())
    assert "inputs of 1 of 3 models" in text
    section = text[text.index("## Guessed inputs") :].split("\n## ")[0]
    assert "| detector | forward(x=float32" in section
    assert "Guessed inputs" not in render_markdown(upgrade_ok())


def test_junit_has_the_notes_once() -> None:
    text = render_junit(guessed())
    assert text.count("inputs of 1 of 3 models were guessed") == 1
    assert "guessed" not in render_junit(upgrade_ok())


def test_a_pass_that_guesses_may_not_have_shown_is_marked_and_told_before_all_notes() -> None:
    report = guessed()
    changed = Finding(kind="changed_operator", message="aten::gelu: the newer one rounds", subject="aten::gelu")
    warned = verdict("detector", "alone", Status.PASS, changed)
    rows = tuple(
        replace(row, cells=(warned, *row.cells[1:])) if row.model == "detector" else row
        for row in report.judgement.rows
    )
    notes = tuple(f"{at}.bin is no TorchScript (left out)" for at in range(12))
    report = replace(report, judgement=replace(report.judgement, rows=rows), notes=notes)
    text = render_terminal(run_document(report), width=100, most_lines=30)
    assert text.count("\n") <= 30 and "left out" not in text.replace(notes[0], "")
    assert "warning   detector: aten::gelu: the newer one rounds\n" in text
    assert [line.split()[0] for line in text.splitlines() if line.endswith("PASS (warning)")] == ["detector"]
    assert "| **PASS (warning)** |" in render_markdown(report)
    page = render_page(run_document(report))
    assert '<tr data-status="PASS"' in page and "PASS (warning)" in page and 'data-status="PASS (warning)"' not in page
    ruled = replace(warned, ruled=(Ruled(kind="changed_operator", was="warn", now="info", by="policy.toml"),))
    rows = tuple(replace(row, cells=(ruled,)) if row.model == "detector" else row for row in rows)
    assert "(warning)" not in everything(replace(report, judgement=replace(report.judgement, rows=rows)), width=100)


def test_slow_model_whose_latency_decides_nothing_is_reported_and_is_no_red_cell() -> None:
    report = guessed()
    slow = Finding(kind="latency", message="steady latency +50.0 % [+40.0, +60.0]", rule="benchmark")
    cell = replace(verdict("detector", "latency", Status.FAIL, slow), decides=False, note="shown and decides nothing")
    rows = tuple(
        replace(row, cells=(row.cells[0], cell)) if row.model == "detector" else row for row in report.judgement.rows
    )
    report = replace(report, judgement=replace(report.judgement, rows=rows))
    text = everything(report, width=160)
    assert red_cells(report) == ()
    assert "slower    latency of 1 model, does not decide the run (shown and decides nothing): detector" in text
    assert "worst     detector: steady latency +50.0 %" in text
    assert "undecided" not in text and "longer" not in text
