"""One advice counts over all causes that it is for, says what is known of the next obstacle, and whose artifacts stop."""

from dataclasses import replace

from harness.core.migration import Migrated, Migration
from harness.checks.migration.readiness import by_owner, unlocked
from tests.unit.builders.migrations import FIXED, MIXED, OWNED, TUPLES, blocked, migration, ready


def test_causes_with_one_fix_count_together_and_the_greatest_comes_first() -> None:
    loop = replace(blocked("looped"), kind="prim::Loop")
    found = unlocked(migration(FIXED, blocked(), loop, ready()))
    assert [one.models for one in found] == [("tagger", "looped"), ("encoder",)]
    assert found[0].causes == ("not-convertible-prim::If", "not-convertible-prim::Loop")
    assert found[0].then_ready == ()


def test_only_of_what_is_looked_at_last_it_is_known_that_nothing_else_stops_it() -> None:
    (tuples, *_) = [one for one in unlocked(migration(TUPLES, blocked())) if one.then_ready]
    assert (tuples.models, tuples.then_ready) == (("pair",), ("pair",))


def test_what_has_no_known_fix_unlocks_nothing() -> None:
    assert unlocked(migration(replace(blocked(), advice=""), ready())) == ()


def test_owners_are_counted_by_outcome_and_only_where_somebody_names_one() -> None:
    assert by_owner(OWNED) == {
        "ads": {Migrated.NOT_CONVERTIBLE: 1, Migrated.DIFFERS: 1, Migrated.READY: 1},
        "nobody": {Migrated.FIXED: 1},
        "search": {Migrated.NOT_CONVERTIBLE: 1},
    }
    assert by_owner(MIXED) == {}
    assert owners_of_fixes(OWNED) == [{"ads": 1, "search": 1}, {"nobody": 1}, {"ads": 1}]
    assert owners_of_fixes(MIXED) == [{}] * 4


def owners_of_fixes(found: Migration) -> list[dict[str, int]]:
    return [dict(one.owners) for one in unlocked(found)]
