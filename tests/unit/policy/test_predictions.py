"""Predictions are counted against what happened, and the wrong ones are found."""

import pytest

from harness.domain.foretold import Loading
from harness.domain.inspection import Prediction
from harness.domain.matrix import BACKWARD, FORWARD, SAME
from harness.policy.predictions import confusion, confusion_by_direction, is_wrong
from tests.unit.render.matrices import cell, mixed

CASES = {
    (Prediction.LOADS, Loading.LOADED): False,
    (Prediction.LOADS, Loading.REFUSED): True,
    (Prediction.LOADS, Loading.UNKNOWN): False,
    (Prediction.FAILS, Loading.LOADED): True,
    (Prediction.FAILS, Loading.REFUSED): False,
    (Prediction.UNKNOWN, Loading.REFUSED): False,
    (None, Loading.REFUSED): False,
}


@pytest.mark.parametrize(("told", "wrong"), CASES.items())
def test_only_a_claim_that_did_not_come_true_is_wrong(told: tuple[Prediction | None, Loading], wrong: bool) -> None:
    predicted, happened = told
    assert is_wrong(cell("net", "2.1.2", "2.6.0", predicted=predicted, happened=happened)) is wrong


def test_every_predicted_cell_is_counted_once_and_others_not_at_all() -> None:
    cells = [cell("net", "2.1.2", "2.6.0", predicted=predicted, happened=happened) for predicted, happened in CASES]
    counts = confusion(cells)
    assert counts[Prediction.LOADS] == {Loading.LOADED: 1, Loading.REFUSED: 1, Loading.UNKNOWN: 1}
    assert counts[Prediction.FAILS] == {Loading.LOADED: 1, Loading.REFUSED: 1, Loading.UNKNOWN: 0}
    assert counts[Prediction.UNKNOWN] == {Loading.LOADED: 0, Loading.REFUSED: 1, Loading.UNKNOWN: 0}


def test_directions_add_up_to_all() -> None:
    counts = confusion_by_direction(mixed().cells)
    for predicted in Prediction:
        for happened in Loading:
            parts = sum(counts[name][predicted][happened] for name in (BACKWARD, FORWARD, SAME))
            assert parts == counts["all"][predicted][happened]
    assert counts[FORWARD][Prediction.LOADS][Loading.REFUSED] == 1
