"""Predictions beside what happened, the rollback, and what a red cell takes from the static check."""

import xml.etree.ElementTree as ET
from functools import partial
from dataclasses import replace

from harness.core.outcome import Status
from harness.core.prediction import PredictedLoad, PredictedModel, Prediction, RollbackAnswer, RollbackReport, Weight
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Finding, RowVerdict
from harness.report.ci.junit import render_junit
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_console
from harness.report.words.predictions import foreseen, rollback_words, static_lines, static_words
from tests.unit.builders.reports import (
    LANCZOS,
    blocked,
    predicted,
    golden,
    healthy,
    nothing_tested,
    static,
    static_finding,
    upgrade_ok,
    verdict,
    model_rollback,
)

everything = partial(render_console, verbose=True)

STOPS = predicted(LANCZOS, prediction=Prediction.FAILS, happened=PredictedLoad.REFUSED)
LOAD_ERROR = Finding(kind="load_error", message="does not load")
VALUES = Finding(kind="values", message="differs")


def with_new(told: PredictedModel) -> RunReport:
    report = upgrade_ok()
    models = (replace(report.models[0], static=static(told)), *report.models[1:])
    return replace(report, models=models)


def red(*findings: Finding) -> CellVerdict:
    return verdict("detector", "alone", Status.FAIL, *findings)


def lines_of(told: PredictedModel, *findings: Finding) -> tuple[tuple[str, str], ...]:
    return static_lines(red(*findings), replace(healthy("detector"), static=static(told)))


def test_right_predictions_are_counted_per_artifact_and_release() -> None:
    assert static_words(upgrade_ok()) == "predictions of what will load: 6 of 6 right"
    assert static_words(golden()) == "predictions of what will load: 3 of 3 right"
    assert static_words(nothing_tested()) == ""


def test_a_wrong_prediction_is_named_with_what_to_send_and_changes_no_decision() -> None:
    report = with_new(predicted(LANCZOS, prediction=Prediction.FAILS))
    assert static_words(report) == "predictions of what will load: 5 of 6 right; WRONG: detector in torch 2.6.0"
    text = everything(report, directory="reports/7")
    block = text[text.index("WRONG PREDICTION  detector in torch 2.6.0") :].split("\n\n")[0]
    assert "will not load, and it loaded" in block and "please report it" in block
    assert block.endswith("python -m harness inspect reports/7/probes/0a1b2c/net.pt --format json")
    assert text.splitlines()[-1].startswith("UPGRADE OK")
    assert "### WRONG PREDICTION: detector in torch 2.6.0" in render_markdown(report)


def test_a_run_with_right_predictions_has_no_such_block() -> None:
    assert "WRONG" not in everything(upgrade_ok()) + render_markdown(upgrade_ok())


def test_what_nothing_tested_is_named_with_the_reason() -> None:
    hang = predicted(happened=PredictedLoad.UNKNOWN, note="hang in load")
    assert static_words(with_new(hang)) == (
        "predictions of what will load: 5 of 5 right; not tested: detector in torch 2.6.0 (hang in load)"
    )
    loops = predicted(prediction=Prediction.UNKNOWN)
    assert static_words(with_new(loops)).endswith("detector in torch 2.6.0 (predicted: unknown; loaded)")


def test_a_model_that_nothing_tested_in_two_releases_is_named_once() -> None:
    why = "damaged: a zip archive without its directory: truncated by a transfer that nobody has looked at?"
    torn = [
        replace(
            predicted(prediction=Prediction.UNKNOWN, happened=PredictedLoad.UNKNOWN, note=why),
            release=f"torch {release}",
        )
        for release in ("2.1.2", "2.6.0")
    ]
    report = upgrade_ok()
    sides = replace(static(torn[1]), sides={"old": torn[0], "new": torn[1]})
    said = static_words(replace(report, models=(replace(report.models[0], static=sides), *report.models[1:])))
    assert "not tested: detector in torch 2.1.2 and torch 2.6.0 (predicted: unknown; damaged: a zip" in said
    assert said.count("detector") == said.count("damaged") == 1
    assert len(said) < len(
        "predictions of what will load: 4 of 4 right; not tested: detector in torch 2.1.2 and torch 2.6.0 ()"
    ) + len(why)


def test_a_cell_that_does_not_load_names_operator_place_and_reach() -> None:
    ((label, text),) = lines_of(STOPS, LOAD_ERROR)
    assert label == "static"
    assert text.startswith("aten::_upsample_lanczos2d_aa: torch 2.1.2 does not have it; at code/__torch__/net.py:12")
    assert text.endswith("in __torch__.net.Net.forward, 3 calls, in a branch")


def test_a_load_error_that_was_not_foreseen_says_so() -> None:
    ((_, text),) = lines_of(predicted(happened=PredictedLoad.REFUSED), LOAD_ERROR)
    assert "wrong, and a bug of the static check" in text


def test_operators_that_answer_otherwise_stand_beside_other_answers_only() -> None:
    changed = static_finding("aten::x", "rounds otherwise", "semantics_changed", Weight.WARNING, "https://x.org/1")
    ((_, text),) = lines_of(predicted(changed), VALUES)
    assert text.startswith("aten::x: rounds otherwise; at ") and text.endswith("https://x.org/1")
    assert lines_of(predicted(changed), Finding(kind="hang", message="hangs")) == ()
    assert lines_of(STOPS, VALUES) == ()


def test_more_findings_than_a_reader_wants_are_counted() -> None:
    many = [static_finding(f"aten::op{index}", "is gone") for index in range(5)]
    told = predicted(*many, prediction=Prediction.FAILS, happened=PredictedLoad.REFUSED)
    lines = lines_of(told, LOAD_ERROR)
    assert len(lines) == 4 and lines[-1] == ("static", "and 2 findings more, in report.json")


def test_an_open_rollback_is_one_line() -> None:
    report = upgrade_ok()
    assert rollback_words(report) == (
        "yes: all 3 artifacts that torch 2.6.0 writes will load in torch 2.1.2 (read, not probed: --rollback)"
    )
    assert "NO ROLLBACK" not in everything(report)
    assert report.rollback is not None
    probed = replace(report, rollback=replace(report.rollback, method="probed"))
    assert rollback_words(probed).endswith("load and answer alike in torch 2.1.2 (probed)")


def test_a_closed_rollback_names_the_model_the_operator_and_the_command() -> None:
    text = everything(blocked())
    assert "rollback  no: 1 of 3 artifacts" in text
    block = text[text.index("NO ROLLBACK  detector: torch 2.6.0 -> torch 2.1.2") :].split("\n\n")[0]
    assert "aten::_upsample_lanczos2d_aa" in block and "code/__torch__/net.py:12" in block
    assert block.endswith("python -m harness compat --old 2.6.0 --new 2.1.2 -k detector --scenario alone")


def test_many_closed_rollbacks_are_cut_on_a_terminal_and_reported_in_markdown() -> None:
    ways = tuple(model_rollback(f"m{index:02}", RollbackAnswer.NO, "is gone", STOPS) for index in range(30))
    report = replace(
        upgrade_ok(), rollback=RollbackReport(answer=RollbackAnswer.NO, reason="30 of 30 models", models=ways)
    )
    text = everything(report)
    assert text.count("NO ROLLBACK") == 30
    assert render_markdown(report).count("### NO ROLLBACK") == 30


def test_nobody_asked_and_nobody_could_say_are_not_the_same() -> None:
    assert "rollback  " not in everything(replace(upgrade_ok(), rollback=None))
    assert "rollback  not known: golden records" in everything(golden())


def test_the_policy_decides_what_a_closed_rollback_is_for_a_reader_of_junit() -> None:
    def tags(gates: bool) -> list[str]:
        report = blocked()
        assert report.rollback is not None
        text = render_junit(replace(report, rollback=replace(report.rollback, gates=gates)))
        cases = ET.fromstring(text).findall(".//testsuite[@name='rollback']/testcase")
        return [child.tag for case in cases for child in case]

    assert tags(False) == ["skipped", "skipped"]
    assert tags(True) == ["failure", "error"]


def test_why_a_model_loads_in_neither_release_comes_before_the_error_that_may_not_say_so() -> None:
    def words_of(finding: Finding, side: PredictedModel = STOPS) -> tuple[str, ...]:
        row = RowVerdict(model="detector", status=Status.SAME_FAIL, cells=(red(finding),))
        return foreseen(row, replace(healthy("detector"), static=static(side)))

    assert words_of(LOAD_ERROR) == (LANCZOS.text,)
    assert words_of(VALUES) == ()
    assert words_of(LOAD_ERROR, replace(STOPS, agreed=False)) == ()
    assert foreseen(None, None) == ()
