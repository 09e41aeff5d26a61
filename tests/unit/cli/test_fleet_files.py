"""Damaged files of a fleet end a command in a documented way; the short form of ``nox -s bench -- faults fleet_files``."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults import fleet_files


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fleet_files") / "whole"
    with fleet_files.stubs():
        fleet_files.make_fleet(folder)
        yield folder


def test_no_damage_ends_as_a_bug_or_changes_what_is_said_of_another_artifact(whole: Path) -> None:
    assert not fleet_files.wrong_endings(whole, 2 * len(fleet_files.READERS), seed=1)


@pytest.mark.parametrize(
    "pattern", ["fleet/plan.json", "fleet/store/results/*/*.json", "store/a.pt", "store/fleet.toml"]
)
@pytest.mark.parametrize("edit", fleet_files.EDITS[-5:])
def test_nothing_else_in_place_of_a_file_ends_as_a_bug(whole: Path, pattern: str, edit: fleet_files.Edit) -> None:
    place = whole.with_name("replaced")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place)
    edit(min(place.glob(pattern)), random.Random(1))
    for words in (fleet_files.PLAN, fleet_files.REPORT, fleet_files.RUN):
        assert fleet_files.called(place, words).code in (0, 1, 2, 4)
