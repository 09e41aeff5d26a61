"""A migration as markdown: what one cure unlocks, owners, causes, how long artifacts load, and each of them."""

from harness.report.markdown.migration import MOST_NAMED, render_migration_markdown
from tests.unit.builders.migrations import MIXED, OWNED, hostile, of_teams
from tests.unit.builders.snapshots import check_snapshot


def test_it_is_as_accepted() -> None:
    check_snapshot("migration_owned.md", render_migration_markdown(OWNED))
    check_snapshot("migration_hostile.md", render_migration_markdown(hostile()))


def test_without_a_manifest_nobody_is_named() -> None:
    assert "## Owners" in render_migration_markdown(OWNED)
    assert "## Owners" not in render_migration_markdown(MIXED)


def test_of_a_large_fleet_the_rest_is_counted() -> None:
    text = render_migration_markdown(of_teams(MOST_NAMED + 7))
    assert "and 7 more: migration.json has all" in text
    assert text.count("| `model_") == MOST_NAMED
