"""A race that a run has not seen is told all the same, once, for the releases that have it."""

import pytest

from harness.checks.migration.known_races import RACES, race_notes
from harness.checks.migration.serving import FIRST_CALLS, LOADS


@pytest.mark.parametrize(
    ("torch", "races"), [("2.5.1", 0), ("2.6.0+cu124", 2), ("2.11.0", 2), ("2.15.0+cpu", 1), ("2.16.0", 0), ("none", 0)]
)
def test_releases_are_told_of_what_was_seen_in_them(torch: str, races: int) -> None:
    assert len(list(race_notes("r", torch, ()))) == races


def test_what_a_cause_tells_of_is_no_note_as_well() -> None:
    (loading,) = race_notes("r", "2.6.0", {FIRST_CALLS.name})
    assert loading.startswith("seen here or not: r loads packages")
    assert not list(race_notes("r", "2.6.0", {LOADS.name, FIRST_CALLS.name}))


def test_what_mitigates_a_race_is_tried_where_it_is_seen() -> None:
    assert [race.mitigation for race in RACES] == [LOADS.name, FIRST_CALLS.name]
