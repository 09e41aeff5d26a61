"""Entries of the shipped atlas, asked again of both releases with nothing but plain torch."""

import random
import subprocess

import pytest

from benchmarks.atlas.again import UNASKED, unconfirmed
from harness.checks.prediction.atlas import atlas, changed_between

pytestmark = pytest.mark.integration

DRAWN = 10


def release_of(python: str) -> str:
    program = "from importlib.metadata import version; print(version('torch'))"
    return subprocess.run([python, "-s", "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("some", [pytest.param(True, id="some"), pytest.param(False, id="all", marks=pytest.mark.slow)])
def test_an_entry_shows_again_what_it_says(old_python: str, new_python: str, some: bool) -> None:
    old, new = release_of(old_python), release_of(new_python)
    known = [item for item in changed_between(atlas(), old, new) if item.kind not in UNASKED]
    assert known, f"the atlas has nothing between torch {old} and {new}: measure them, or compare two that it has"
    changes = random.Random(len(known)).sample(known, DRAWN) if some else known
    differing = [(change.operator, change.kind) for change in unconfirmed(changes, old_python, new_python)]
    assert differing == []


@pytest.mark.slow
def test_what_is_no_change_is_not_confirmed(new_python: str) -> None:
    (first, *_) = [item for item in atlas().changes if item.kind not in UNASKED]
    assert unconfirmed([first], new_python, new_python) == [first]
