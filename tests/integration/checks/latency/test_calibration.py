"""Calibration end to end on real torch, with two benchmarks: a planted slowdown is found, identical code is not."""

from pathlib import Path

import pytest

from benchmarks.calibrate import benchmarks, rivals
from benchmarks.calibrate.batches import SAME, SLOW, planned_batches
from benchmarks.calibrate.tallies import is_found

pytestmark = [pytest.mark.integration, pytest.mark.timed, pytest.mark.slow]


def test_the_slowdown_is_found_and_the_twin_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "p_value", lambda old, new: 0.5)  # scipy is of calibration only
    (batch,) = planned_batches([], tiny=True)
    wanted = {name for entry in batch.entries for name in (entry.old, entry.new)}
    with benchmarks.exported(tmp_path, wanted) as (facts, effects, artifacts):
        assert set(artifacts) == wanted
        rows = [
            dict(zip(benchmarks.COLUMNS, row, strict=True))
            for row in benchmarks.run_batch(batch, artifacts, facts, effects)
        ]
    found = {row["what"]: row for row in rows}
    assert is_found(found[SLOW])
    assert found[SLOW]["suspected"]
    assert found[SLOW]["fresh_rounds"] >= 3
    assert 1.1 < found[SLOW]["ratio"] < 1.3
    assert not is_found(found[SAME])
    assert 0 < found[SAME]["spent_s"] < found[SLOW]["spent_s"] + 10
