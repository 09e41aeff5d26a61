"""The benchmarks that are planned are as many as the bars ask for, of artifacts that exist."""

from collections import Counter
from pathlib import Path

import pytest

from harness.core.quantities import QUANTITIES
from harness.artifacts.declarations import EXPECTABLE
from harness.artifacts.fixture_folders import read_fixtures
from benchmarks.calibrate.bars import (
    FOUND_OF_A_LENGTH,
    LEAST_BENCHMARKS,
    LEAST_MODELS,
    LEAST_SAME,
    LEAST_SAME_OF_A_LENGTH,
)
from benchmarks.calibrate.batches import DEFECTS, LENGTHS, SAME, SLOW, length_batches, planned_batches
from benchmarks.calibrate.tallies import SEEDED

ZOO = [f"model_{index}" for index in range(50)]
SEEDED_MODELS = {
    item.name: item for item in read_fixtures(Path(__file__).parents[3] / "fixtures" / "planted" / "seeded")
}
BATCHES = planned_batches(ZOO)
ENTRIES = [(batch, entry) for batch in BATCHES for entry in batch.entries]


def test_there_are_enough_benchmarks_of_each_size() -> None:
    count = Counter((batch.budget, entry.what, entry.size) for batch, entry in ENTRIES)
    assert count["quick", SAME, 0] >= LEAST_SAME
    assert all(count["quick", SLOW, size] >= LEAST_BENCHMARKS for size in (3, 10, 20))
    assert count["thorough", SLOW, 5] >= LEAST_BENCHMARKS


def test_every_other_defect_has_twelve_benchmarks_and_its_twin_as_many() -> None:
    planted = Counter(entry.what for _, entry in ENTRIES)
    twins = Counter(entry.base for _, entry in ENTRIES if entry.what == SAME)
    for what in DEFECTS:
        assert planted[what] >= 12
        assert twins[what] >= 12


def test_enough_ordinary_models_fight_themselves() -> None:
    ordinary = {entry.base for _, entry in ENTRIES if entry.what == SAME} - SEEDED
    assert len(ordinary) >= LEAST_MODELS
    assert ordinary <= set(ZOO)


def test_every_kind_of_work_is_slowed_equally_often() -> None:
    count = Counter((entry.size, entry.base) for _, entry in ENTRIES if entry.what == SLOW)
    assert len(set(count.values())) == 1


def test_other_tools_are_asked_about_as_many_pairs_of_each_size() -> None:
    count = Counter(entry.size for batch in BATCHES for entry in batch.rivals)
    assert count == {0: 60, 5: 60, 10: 60, 20: 60}


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: str(batch.number))
def test_names_of_a_batch_are_distinct_and_its_artifacts_exist(batch: object) -> None:
    entries = [entry for one, entry in ENTRIES if one is batch]
    assert len({entry.name for entry in entries}) == len(entries)
    assert {name for entry in entries for name in (entry.old, entry.new)} <= {*SEEDED_MODELS, *ZOO}


def test_a_slowed_model_is_the_planted_of_the_one_that_it_fights() -> None:
    for _, entry in ENTRIES:
        if entry.what == SLOW:
            mark = SEEDED_MODELS[entry.new].planted_defect
            assert mark is not None
            assert mark.twin == entry.old
            assert mark.expect in EXPECTABLE


def test_what_must_be_told_of_a_defect_is_a_kind_of_the_benchmark() -> None:
    assert {kind for kind, _, _ in DEFECTS.values()} <= {quantity.kind for quantity in QUANTITIES.values()} | {
        "memory_growth"
    }


def test_each_length_of_a_call_has_as_many_benchmarks_of_artifacts_that_exist() -> None:
    entries = [(batch.budget, entry) for batch in length_batches() for entry in batch.entries]
    count = Counter((budget, entry.size, entry.base) for budget, entry in entries)
    cases = {(budget, size) for budget, size, _ in count}
    assert cases == {("quick", 0), ("quick", 10), ("thorough", 0), ("thorough", 5)}
    assert all(len({count[budget, size, length] for length in LENGTHS}) == 1 for budget, size in cases)
    assert {name for _, entry in entries for name in (entry.old, entry.new)} <= {*SEEDED_MODELS}
    assert count["quick", 0, "1ms"] >= LEAST_SAME_OF_A_LENGTH
    assert all(count[budget, size, "1ms"] >= least for (budget, size), (_, least) in FOUND_OF_A_LENGTH.items())
    beside = [entry for batch in length_batches() for entry in batch.rivals]
    assert Counter((entry.size, entry.base) for entry in beside) == {
        (size, length): 10 for size in (0, 5, 10) for length in LENGTHS
    }
    assert {name for entry in beside for name in (entry.old, entry.new)} <= {*SEEDED_MODELS}
