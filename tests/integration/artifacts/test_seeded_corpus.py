"""A handful of the seeded corpus through the real stages: faults are found as what they are, healthy models are not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from benchmarks.calibrate import numbers, tables
from benchmarks.calibrate.corpus import Case, declared, planted, probed
from benchmarks.calibrate.failures import Trial, brisk, tried

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

SEEN = {
    "seeded_drift_float32_one_0_1_1": "values",
    "seeded_drift_int64_row_1e_05_1": "values",
    "seeded_late_all_0_01_1_1": "late_divergence",
    "seeded_nan_nan_to_zero_1": "nan_placement",
    "seeded_key_renamed_1": "structure",
    "seeded_dtype_int32_1": "dtype",
    "seeded_write_False_1": "input_changed",
}
UNSEEN = {"seeded_drift_float32_all_1e_07_1", "seeded_drift_float16_all_1e_07_1"}
LEFT_ALONE = {"seeded_holes_nan_1", "seeded_rewritten_sum_float32_1000000_0_1", "seeded_unusual_noise_1"}
FAILING = {
    "seeded_gone_never_taken": "load_error",
    "seeded_load_crash_divides": "crash",
    "seeded_call_raises_batch_7_2": "call_error",
    "seeded_call_no_memory_0": "out_of_memory",
    "seeded_call_hang_waits_0": "hang",
}


@dataclass(frozen=True)
class Seen:
    """The cases of numbers and the trials of failures by name, and what ``assert_close`` says of each case."""

    cases: dict[str, Case]
    trials: dict[str, Trial]
    said: dict[str, str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Everything in one pair of environments: starting them costs more than the probes do."""
    folder = tmp_path_factory.mktemp("corpus")
    every = declared(*numbers.FILES, "failures")
    chosen = [item for item in every if item.name in {*SEEN, *UNSEEN, *LEFT_ALONE, *FAILING}]
    twins = {item.planted_defect.twin for item in chosen if item.planted_defect is not None}
    chosen += [item for item in every if item.name in twins and item not in chosen]
    with planted(folder, chosen) as (facts, effects):
        failing = tuple(item for item in chosen if "failures" in item.tags)
        trials = {trial.declaration.name: trial for trial in tried(brisk(facts, effects), effects, failing, 1)}
        others = tuple(item for item in chosen if item not in failing)
        known = replace(facts, plan=replace(facts.plan, planted_defects=others))
        cases = {case.declaration.name: case for case in probed(known, effects)}
        rival = numbers.assert_close(list(cases.values()), effects.environments["new"].interpreter, folder)
        yield Seen(cases, trials, rival["said"])


def test_each_planted_fault_is_found_as_what_it_is(seen: Seen) -> None:
    assert {name: seen.cases[name].result for name in SEEN if not seen.cases[name].result.caught} == {}
    assert {name: seen.cases[name].result.expected for name in SEEN} == SEEN
    assert tables.is_far(seen.cases["seeded_drift_float32_one_0_1_1"])
    assert tables.tolerances(seen.cases["seeded_drift_int64_row_1e_05_1"]) is None


def test_what_rounding_explains_and_what_is_healthy_is_left_alone(seen: Seen) -> None:
    assert {name: seen.cases[name].result for name in LEFT_ALONE | UNSEEN if not seen.cases[name].left_alone} == {}
    assert tables.tolerances(seen.cases["seeded_drift_float16_all_1e_07_1"]) == 0.0  # rounded away
    assert 0.0 < (tables.tolerances(seen.cases["seeded_drift_float32_all_1e_07_1"]) or 0.0) < 1.0


def test_assert_close_sees_drifts_misses_writes_and_objects_to_equal_nans(seen: Seen) -> None:
    flagged = {name for name, case in seen.cases.items() if tables.objects(case, seen.said)}
    assert {"seeded_drift_float32_one_0_1_1", "seeded_dtype_int32_1", "seeded_holes_nan_1"} <= flagged
    assert not {"seeded_write_False_1", "seeded_twin_float32_1"} & flagged


def test_failures_are_reported_as_what_they_are(seen: Seen) -> None:
    assert {name: seen.trials[name].kinds for name in FAILING} == {name: (kind,) for name, kind in FAILING.items()}
    assert seen.trials["seeded_plain_twin"].as_expected
