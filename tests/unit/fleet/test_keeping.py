"""What a fleet's folder keeps is told, and what was not used for long goes when one says so."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.fleet.keeping import collect, status
from harness.fleet.plan import CACHE, RUNS, STORE, PlannedFleet
from harness.fleet.results import FleetResults
from tests.unit.fleet.answers import FRAME, artifact, plan_of, result_of

LONG_AGO = 10**9


@pytest.fixture
def fleet(tmp_path: Path) -> PlannedFleet:
    planned = replace(plan_of(artifact("a"), artifact("b", program="Q")), folder=tmp_path)
    with FleetResults(tmp_path / STORE) as results:
        results.save(result_of(planned, "a"), FRAME)
    for path in (f"{RUNS}/old/report.json", f"{RUNS}/new/report.json", f"{CACHE}/old.pt", f"{CACHE}/new.pt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * 2048)
        if "/old" in path:
            os.utime(tmp_path / path, (LONG_AGO, LONG_AGO))
    return planned


def test_what_is_kept_is_counted(fleet: PlannedFleet) -> None:
    text = status(fleet)
    assert "1 of 1 program" in text and "1 of 2.1.2 -> 2.6.0" in text
    assert "runs 4.00 KiB, fetched files 4.00 KiB" in text


def test_what_was_not_used_goes_when_one_says_so_and_what_the_plan_needs_stays(fleet: PlannedFleet) -> None:
    said = "0 results, 1 run, 1 fetched file not used for 30 days, 4.00 KiB"
    assert collect(fleet, 30, remove=False) == f"to go: {said}\nremove with --yes\n"
    assert (fleet.folder / RUNS / "old").exists()
    assert collect(fleet, 30, remove=True) == f"removed: {said}\n"
    left = sorted(
        path.relative_to(fleet.folder).as_posix() for path in fleet.folder.rglob("*.[jp]*") if "store" not in path.parts
    )
    assert left == ["cache/new.pt", "runs/new/report.json"]
    with FleetResults(fleet.folder / STORE) as results:
        assert results.status().results == 1
