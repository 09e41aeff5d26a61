"""A race that a run has not seen is told all the same, once, for the releases that have it."""

import pytest

from harness.settings.mitigations import MITIGATIONS
from harness.successor.known_races import RACES, race_notes
from harness.successor.serving import CURES

LOADING = "packages of r, seen in this run or not: two loads at once crash or hang now and then;"


@pytest.mark.parametrize(
    ("torch", "races"), [("2.5.1", 0), ("2.6.0+cu124", 2), ("2.11.0", 2), ("2.15.0+cpu", 1), ("2.16.0", 0), ("none", 0)]
)
def test_releases_are_told_of_what_was_seen_in_them(torch: str, races: int) -> None:
    assert len(list(race_notes("r", torch, ["crash in shared module"]))) == races


def test_what_a_cause_tells_of_is_no_note_as_well() -> None:
    (loading,) = race_notes("r", "2.6.0", ["without serialized first calls"])
    assert loading.startswith(LOADING)
    assert not list(race_notes("r", "2.6.0", ["without serialized loading and serialized first calls"]))


def test_what_cures_a_race_is_tried_where_it_is_seen() -> None:
    tried = {setting.name for settings in CURES for setting in settings}
    assert {race.mitigation for race in RACES} == tried <= set(MITIGATIONS)
