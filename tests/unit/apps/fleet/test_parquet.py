"""Results as a Parquet file: one line each, numbers as numbers, and what was not measured is null."""

import math
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest

from harness.core.errors import RunDirError
from harness.apps.fleet import parquet
from harness.apps.fleet.parquet import NUMBERS, TEXTS, export
from harness.apps.fleet.plan import STORE, PlannedFleet
from harness.apps.fleet.results import FleetResults
from tests.unit.builders.reports import latency, ratio
from tests.unit.apps.fleet.answers import FRAME, artifact, plan_of, result_of


@pytest.fixture
def fleet(tmp_path: Path) -> PlannedFleet:
    planned = replace(plan_of(artifact("a"), artifact("b"), artifact("c", program="Q")), folder=tmp_path)
    with FleetResults(tmp_path / STORE) as results:
        for name in "abc":
            made = result_of(planned, name)
            if name == "a":
                timed = replace(made.facts, latency=latency("a", ratio(1.25)), worst_relative=math.inf)
                made = replace(made, facts=timed)
            results.save(made, FRAME)
    return planned


def test_every_result_is_a_line(fleet: PlannedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "AT_ONCE", 2)
    assert export(fleet, tmp_path / "out" / "results.parquet") == 3
    table = pyarrow.parquet.read_table(tmp_path / "out" / "results.parquet")
    assert table.column_names == [*TEXTS, *NUMBERS]
    lines = {line["artifact"]: line for line in table.to_pylist()}
    assert set(lines) == {"a", "b", "c"} and {line["status"] for line in lines.values()} == {"PASS"}
    assert lines["a"]["latency"] == 1.25 and lines["a"]["worst_relative"] == math.inf
    assert lines["b"]["latency"] is None
    assert (lines["b"]["old"], lines["b"]["program"], lines["b"]["examination"]) == ("2.1.2", "P", "weights")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results.parquet"]


def test_a_file_that_cannot_be_written_is_named(fleet: PlannedFleet, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(RunDirError, match="taken/results.parquet cannot be written"):
        export(fleet, tmp_path / "taken" / "results.parquet")
