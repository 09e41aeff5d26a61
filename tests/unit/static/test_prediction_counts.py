"""Predictions are counted against what happened, and the wrong ones are found."""

import pytest

from harness.domain.matrix import BACKWARD, FORWARD, SAME
from harness.domain.prediction import PredictedLoad, Prediction
from harness.static.judging import confusion, confusion_by_direction, is_wrong
from tests.unit.builders.matrices import cell, mixed

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
