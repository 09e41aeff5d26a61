"""What a fleet's folder keeps is told, and what was not used for long goes when one says so."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.fleet.keeping import collect, status
from harness.apps.fleet.plan import CACHE, RUNS, STORE, UNPACKED, PlannedFleet
from harness.apps.fleet.results import INDEX, FleetResults
from tests.unit.apps.fleet.answers import FRAME, artifact, plan_of, result_of

LONG_AGO = 10**9
OLD, NEW = "0" * 32, "1" * 32


@pytest.fixture
def fleet(tmp_path: Path) -> PlannedFleet:
    planned = replace(plan_of(artifact("a"), artifact("b", program="Q")), folder=tmp_path)
    with FleetResults(tmp_path / STORE) as results:
        results.save(result_of(planned, "a"), FRAME)
    for path in (f"{RUNS}/old/report.json", f"{RUNS}/new/report.json", f"{CACHE}/{OLD}.pt", f"{CACHE}/{NEW}.pt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * 2048)
        if path.startswith((f"{RUNS}/old", f"{CACHE}/{OLD}")):
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
    assert left == [f"cache/{NEW}.pt", "runs/new/report.json"]
    with FleetResults(fleet.folder / STORE) as results:
        assert results.status().results == 1


def test_what_a_killed_download_left_goes(fleet: PlannedFleet) -> None:
    dead, alive = (fleet.folder / CACHE / f".ab.{pid}.1.part" for pid in (2**22 + 1, os.getpid()))
    for path in (dead, alive):
        path.write_bytes(b"x")
    collect(fleet, 30, remove=False)
    assert dead.exists()
    collect(fleet, 30, remove=True)
    assert not dead.exists() and alive.exists()


@pytest.mark.parametrize("name", [CACHE, RUNS, STORE])
def test_nothing_behind_a_link_is_touched(
    fleet: PlannedFleet, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / name
    (fleet.folder / name).rename(elsewhere)
    (fleet.folder / name).symlink_to(elsewhere)
    if name == STORE:
        with sqlite3.connect(elsewhere / INDEX) as index:
            index.execute("UPDATE results SET used = '2020-01-01'")
        fleet = replace(fleet, plan=replace(fleet.plan, units=()))
    before = sorted(elsewhere.rglob("*"))
    assert f"{fleet.folder / name} is a link: what lies there is not touched" in collect(fleet, 30, remove=True)
    assert sorted(elsewhere.rglob("*")) == before


def test_what_is_not_the_fleet_s_own_stays_wherever_it_lies(fleet: PlannedFleet, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = [outside / "report.json", outside / f"{OLD}.pt", fleet.folder / CACHE / "mine.pt"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (LONG_AGO, LONG_AGO))
    (fleet.folder / RUNS / "linked").symlink_to(outside)
    (fleet.folder / CACHE / UNPACKED).symlink_to(outside)
    (fleet.folder / CACHE / f"{'2' * 32}.pt").symlink_to(outside / f"{OLD}.pt")
    collect(fleet, 30, remove=True)
    assert all(path.exists() for path in kept)


def test_results_behind_a_linked_folder_stay(fleet: PlannedFleet, tmp_path: Path) -> None:
    (part,) = (fleet.folder / STORE / "results").iterdir()
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with sqlite3.connect(fleet.folder / STORE / INDEX) as index:
        index.execute("UPDATE results SET used = '2020-01-01'")
    collect(replace(fleet, plan=replace(fleet.plan, units=())), 30, remove=True)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1
