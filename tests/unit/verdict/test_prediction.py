"""Predictions against what happened, and the answer of the rollback."""

from dataclasses import replace

import pytest
from harness.core.archive import ArchiveProblem
from harness.core.outcome import Outcome, Status
from harness.core.prediction import (
    InspectedFile,
    PredictedLoad,
    PredictedModel,
    Prediction,
    RollbackAnswer,
    StaticFinding,
    StaticVerdict,
    Weight,
)
from harness.core.probe import Failure, ModelResult
from harness.core.verdict import CellVerdict, Finding
from harness.verdict.prediction import predicted, judge_rollback, loading, rollback
from harness.checks.prediction.predict import CHANGED, LOOPS_AT_LOAD
from harness.core.releases import BACKWARD, FORWARD, SAME
from harness.verdict.prediction import confusion, confusion_by_direction, is_wrong
from tests.unit.builders.matrices import cell, mixed

LOADED = ModelResult(model="m", outcome=Outcome.COMPLETED, load_ns=5)
RAISED = ModelResult(model="m", outcome=Outcome.RUNTIME_ERROR, load_ns=5)
REFUSED = ModelResult(model="m", outcome=Outcome.LOAD_ERROR, phase="load")
HUNG = ModelResult(model="m", outcome=Outcome.HANG, phase="load")
CRASHED = ModelResult(model="m", outcome=Outcome.CRASH, phase="load")
NO_MEMORY = ModelResult(model="m", outcome=Outcome.OUT_OF_MEMORY, phase="load")
WARNED = replace(REFUSED, failure=Failure(type="FutureWarning", message="deprecated", phase="load"))
RAISED_AT_LOAD = replace(REFUSED, failure=Failure(type="RuntimeError", message="unknown operator", phase="load"))
UNREAD = ModelResult(model="m", outcome=Outcome.PROTOCOL_ERROR, phase="inputs")


def finding(weight: Weight, kind: str = "operator_missing") -> StaticFinding:
    return StaticFinding(kind=kind, weight=weight, subject="aten::x", text="is gone")


def read(prediction: Prediction, *findings: StaticFinding) -> InspectedFile:
    verdict = StaticVerdict(torch="2.6.0", direction="backward", prediction=prediction, findings=findings)
    return InspectedFile(path="m.pt", verdicts={"new": verdict})


def test_random_numbers_that_changed_are_told_of_models_that_draw_any() -> None:
    file = read(Prediction.LOADS, finding(Weight.NOTE, CHANGED), finding(Weight.NOTE, "upgrader_applies"))
    told = {draws: predicted(file, "new", "torch 2.15.0", [LOADED], draws=draws).verdict for draws in (True, False)}
    assert {draws: [item.kind for item in verdict.findings] for draws, verdict in told.items() if verdict} == {
        True: [CHANGED],
        False: [],
    }


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((LOADED,), PredictedLoad.LOADED),
        ((LOADED, RAISED), PredictedLoad.LOADED),
        ((REFUSED, REFUSED), PredictedLoad.REFUSED),
        ((LOADED, REFUSED), PredictedLoad.UNKNOWN),
        ((HUNG,), PredictedLoad.UNKNOWN),
        ((CRASHED,), PredictedLoad.UNKNOWN),
        ((NO_MEMORY,), PredictedLoad.UNKNOWN),
        ((UNREAD,), PredictedLoad.UNKNOWN),
        ((WARNED,), PredictedLoad.UNKNOWN),
        ((RAISED_AT_LOAD,), PredictedLoad.REFUSED),
        ((), PredictedLoad.UNKNOWN),
    ],
)
def test_only_a_load_that_ended_says_what_a_release_takes(
    results: tuple[ModelResult, ...], expected: PredictedLoad
) -> None:
    assert loading(results) is expected


@pytest.mark.parametrize(
    ("prediction", "result", "agreed"),
    [
        (Prediction.LOADS, LOADED, True),
        (Prediction.LOADS, REFUSED, False),
        (Prediction.FAILS, REFUSED, True),
        (Prediction.FAILS, LOADED, False),
        (Prediction.FAILS, HUNG, None),
        (Prediction.UNKNOWN, LOADED, None),
        (Prediction.UNKNOWN, REFUSED, None),
    ],
)
def test_a_prediction_is_right_or_wrong_only_where_both_sides_speak(
    prediction: Prediction, result: ModelResult, agreed: bool | None
) -> None:
    assert predicted(read(prediction), "new", "torch 2.6.0", [result]).agreed is agreed


def test_notes_are_left_out_and_a_hang_is_named() -> None:
    file = read(Prediction.LOADS, finding(Weight.WARNING), finding(Weight.NOTE))
    told = predicted(file, "new", "torch 2.6.0", [HUNG])
    assert told.verdict is not None
    assert [item.weight for item in told.verdict.findings] == [Weight.WARNING]
    assert told.note == "hang in load"


def test_a_file_that_cannot_be_read_predicts_nothing_and_says_why() -> None:
    failure = ArchiveProblem(kind="truncated", text="it ends early")
    told = predicted(InspectedFile(path="m.pt", failure=failure, verdicts={}), "new", "torch 2.6.0", [REFUSED])
    assert (told.verdict, told.agreed, told.happened) == (None, None, PredictedLoad.REFUSED)
    assert told.note == "truncated: it ends early"
    assert told.prediction is Prediction.UNKNOWN


def told(prediction: Prediction, *findings: StaticFinding) -> PredictedModel:
    return predicted(read(prediction, *findings), "new", "torch 2.1.2", [])


def test_reading_answers_the_rollback() -> None:
    assert rollback("m", told(Prediction.LOADS), None).answer is RollbackAnswer.YES
    closed = rollback("m", told(Prediction.FAILS, finding(Weight.STOPS), finding(Weight.STOPS)), None)
    assert (closed.answer, closed.reason) == (RollbackAnswer.NO, "aten::x: is gone (+1 more)")
    doubted = rollback("m", told(Prediction.UNKNOWN, finding(Weight.WARNING), finding(Weight.DOUBT)), None)
    assert (doubted.answer, doubted.reason) == (RollbackAnswer.UNKNOWN, "aten::x: is gone")
    missing = rollback("m", None, None, why_neither="torch 2.6.0 does not write it")
    assert (missing.answer, missing.reason) == (RollbackAnswer.UNKNOWN, "torch 2.6.0 does not write it")


LOOPS = replace(finding(Weight.DOUBT, LOOPS_AT_LOAD), text="it loops: it may never return")


def test_a_loop_at_load_says_how_long_it_took_where_every_load_has_ended() -> None:
    def text(*results: ModelResult) -> str:
        verdict = predicted(read(Prediction.UNKNOWN, LOOPS), "new", "torch 2.6.0", results).verdict
        assert verdict is not None
        return verdict.findings[0].text

    slow = replace(LOADED, load_ns=2_500_000_000)
    assert text(LOADED, slow).endswith("and loops; loading took 2.5 s here")
    for results in ((), (HUNG,), (slow, HUNG)):
        assert text(*results) == LOOPS.text


def test_a_loop_at_load_that_ends_in_the_old_release_leaves_the_rollback_no_doubt() -> None:
    looping = told(Prediction.UNKNOWN, LOOPS)
    assert rollback("m", looping, None, loads_already=True).answer is RollbackAnswer.YES
    assert rollback("m", looping, None, loads_already=False).reason == "aten::x: it loops: it may never return"
    other = told(Prediction.UNKNOWN, LOOPS, finding(Weight.DOUBT))
    assert rollback("m", other, None, loads_already=True).reason == "aten::x: is gone"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.PASS, RollbackAnswer.YES),
        (Status.FAIL, RollbackAnswer.NO),
        (Status.SAME_FAIL, RollbackAnswer.UNKNOWN),
        (Status.INCONCLUSIVE, RollbackAnswer.UNKNOWN),
    ],
)
def test_a_probe_answers_before_reading_does(status: Status, expected: RollbackAnswer) -> None:
    found = Finding(kind="values", message="differs")
    verdict = CellVerdict(cell="c", model="m", scenario="alone", status=status, findings=(found,), note="why")
    item = rollback("m", told(Prediction.LOADS), verdict)
    assert item.answer is expected
    assert item.reason == ("" if expected is RollbackAnswer.YES else "differs; why")


def test_one_closed_way_closes_all_and_an_open_question_leaves_it_open() -> None:
    yes = rollback("a", told(Prediction.LOADS), None)
    no = rollback("b", told(Prediction.FAILS, finding(Weight.STOPS)), None)
    unknown = rollback("c", None, None, why_neither="not written")

    def answer(*items: object) -> tuple[RollbackAnswer, str]:
        report = judge_rollback(items, method="read", gates=False)  # type: ignore[arg-type]
        return report.answer, report.reason

    assert answer(yes, yes) == (RollbackAnswer.YES, "")
    assert answer(yes, unknown) == (RollbackAnswer.UNKNOWN, "1 of 2 models: c: not written")
    assert answer(unknown, no, yes, no) == (RollbackAnswer.NO, "2 of 4 models: b: aten::x: is gone (+1 more)")


def test_what_nobody_could_ask_is_not_known() -> None:
    assert judge_rollback([], method="read", gates=True, why_not="golden records").reason == "golden records"
    assert judge_rollback([], method="read", gates=True).answer is RollbackAnswer.UNKNOWN


CASES = {
    (Prediction.LOADS, PredictedLoad.LOADED): False,
    (Prediction.LOADS, PredictedLoad.REFUSED): True,
    (Prediction.LOADS, PredictedLoad.UNKNOWN): False,
    (Prediction.FAILS, PredictedLoad.LOADED): True,
    (Prediction.FAILS, PredictedLoad.REFUSED): False,
    (Prediction.UNKNOWN, PredictedLoad.REFUSED): False,
    (None, PredictedLoad.REFUSED): False,
}


@pytest.mark.parametrize(("told", "wrong"), CASES.items())
def test_only_a_claim_that_did_not_come_true_is_wrong(
    told: tuple[Prediction | None, PredictedLoad], wrong: bool
) -> None:
    predicted, happened = told
    assert is_wrong(cell("net", "2.1.2", "2.6.0", predicted=predicted, happened=happened)) is wrong


def test_every_predicted_cell_is_counted_once_and_others_not_at_all() -> None:
    cells = [cell("net", "2.1.2", "2.6.0", predicted=predicted, happened=happened) for predicted, happened in CASES]
    counts = confusion(cells)
    assert counts[Prediction.LOADS] == {PredictedLoad.LOADED: 1, PredictedLoad.REFUSED: 1, PredictedLoad.UNKNOWN: 1}
    assert counts[Prediction.FAILS] == {PredictedLoad.LOADED: 1, PredictedLoad.REFUSED: 1, PredictedLoad.UNKNOWN: 0}
    assert counts[Prediction.UNKNOWN] == {PredictedLoad.LOADED: 0, PredictedLoad.REFUSED: 1, PredictedLoad.UNKNOWN: 0}


def test_directions_add_up_to_all() -> None:
    counts = confusion_by_direction(mixed().cells)
    for predicted in Prediction:
        for happened in PredictedLoad:
            parts = sum(counts[name][predicted][happened] for name in (BACKWARD, FORWARD, SAME))
            assert parts == counts["all"][predicted][happened]
    assert counts[FORWARD][Prediction.LOADS][PredictedLoad.REFUSED] == 1
