"""What ``migrate`` says on a terminal: what stands in the way once, in at most 60 lines, and the exit code last."""

from dataclasses import replace

from harness.report.text.migration import render_migration
from tests.unit.builders.migrations import (
    CONVERTED,
    FIXED,
    MIXED,
    OWNED,
    PRICED,
    blocked,
    many,
    migration,
    of_teams,
    ready,
)


def test_each_obstacle_is_told_with_its_line_and_what_to_write() -> None:
    text = render_migration(MIXED, directory="reports/matrix")
    assert "FAIL  tagger: not convertible: prim::If" in text
    assert "models/tagger.py:12: if bool(x.sum() > 0):" in text
    assert "torch.where(condition, a, b)" in text
    assert "reports/matrix/migration.html" in text
    assert "5 models: 1 ready, 1 not convertible, 1 dimensions fixed, 1 not loadable, 1 undecided" in text
    assert text.endswith("exit code 1: incompatible\n")


def test_a_step_shows_its_time_or_its_failure() -> None:
    lines = render_migration(MIXED).splitlines()
    (traced,) = [line for line in lines if line.startswith("ranker_traced")]
    assert traced.split("  ")[-1] == "not loadable"
    assert "1.24 s" in traced and "12.0 ms" in traced and "load error" in traced


def test_however_many_obstacles_there_are_a_terminal_shows_60_lines_and_the_rest_on_request() -> None:
    assert len(render_migration(many()).splitlines()) <= 60
    assert "more causes: the same command with --verbose" in render_migration(many())
    assert "aten::f199" in render_migration(many(), verbose=True)


def test_of_many_models_the_table_has_one_of_each_cause_before_others() -> None:
    text = render_migration(migration(*(blocked(f"tagger_{number}") for number in range(20)), FIXED, ready()))
    rows = [line for line in text.splitlines() if line.endswith(("  not convertible", "  dimensions fixed"))]
    assert [row.split()[0] for row in rows[:3]] == ["tagger_0", "encoder", "tagger_1"]
    assert f"and {22 - len(rows)} more models: --verbose" in text


def test_a_cause_without_room_for_a_block_is_told_once_on_its_line() -> None:
    assert "FAIL  m11: not convertible: aten::f11" in render_migration(many()).splitlines()
    pairs = [replace(blocked(f"{name}{number}"), kind=f"aten::f{number}") for number in range(30) for name in "ab"]
    assert "FAIL  not convertible: aten::f17 (2 models)" in render_migration(migration(*pairs)).splitlines()


def test_all_ready_is_green_and_has_no_cause() -> None:
    text = render_migration(migration(ready(), ready("other")))
    assert "FAIL" not in text
    assert text.endswith("exit code 0: compatible\n")


def test_packages_have_a_column_and_their_size() -> None:
    package = type(CONVERTED)(
        name="package", release="2.15.0", outcome=CONVERTED.outcome, seconds=54.0, size_bytes=2_500_000
    )
    model = type(ready())(model="m", outcome=ready().outcome, steps=(*ready().steps, package))
    text = render_migration(migration(model, packaged=True))
    (head,) = [line for line in text.splitlines() if line.startswith("model ")]
    assert "package" in head
    assert "54.0 s" in text
    assert "2.38 MiB" in text


def test_what_a_cure_costs_stands_beside_what_it_unlocks() -> None:
    text = " ".join(render_migration(PRICED, width=120).split())
    assert "price cured, a warm call takes beside TorchScript: tagger -12.0 % [-17.0, -7.0]; of 1 other no" in text
    assert "(3 of 4 models become ready; 1 becomes convertible, and fails when served)" in text
    assert "then tagger_d, cured: same file N times: crash in load signal SIGABRT in 2 of 5 rounds; verified:" in text
    assert "cured 4 of 4 models not convertible; 3 become ready" in text


def test_nothing_tested_is_said() -> None:
    assert "0 models" in render_migration(migration())
    assert "exit code 4" in render_migration(migration())


def test_one_cure_the_owners_and_the_horizon_are_a_line_each() -> None:
    text = " ".join(render_migration(OWNED, width=200).split())
    assert "one cure 2 artifacts stop here: torch.where(condition, a, b) for values" in text
    assert "one cure 1 artifact stops here; nothing else stops it: unpack it" in text
    assert "owners ads 1 of 3 ready, nobody 0 of 1 ready, search 0 of 1 ready" in text
    assert "horizon archives: 4 of 4 load in 2.6.0, 3 in 2.15.0; .pt2: 0 of 1 load (1 more unknown) in 2.15.0" in text
    assert "1 archive has operators that 2.15.0 deprecates; 2.15.0 prints a FutureWarning at loading" in text


def test_without_a_manifest_there_are_no_owners_and_a_large_fleet_is_still_60_lines() -> None:
    assert "owners" not in render_migration(MIXED)
    assert len(render_migration(of_teams(500), width=80).splitlines()) <= 60
