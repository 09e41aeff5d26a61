"""Tables over seeded faults: what counts as planted, as found and as a false alarm."""

from typing import Any

import pytest

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.core.models import PlantedDefectMark, ModelDeclaration
from harness.core.verdict import PlantedDefectResult
from benchmarks.calibrate import tables
from benchmarks.calibrate.corpus import Case, rendered

PLACE: dict[str, Any] = {"package_root": "/p", "module": "m", "source": "m.py", "line": 1, "source_digest": "0"}
OBJECTION = "AssertionError: Tensor-likes are not close!"


def case(name: str, off: float, *, tolerance: float = 1.0, caught: bool = True, note: str = "", **given: Any) -> Case:
    """A drift (or what ``factory`` says) that came out ``off`` of a ``tolerance``."""
    factory, tags = given.pop("factory", "seeded_drift"), given.pop("tags", ("seeded",))
    mark = None if "control" in tags else PlantedDefectMark(twin="control", expect="values")
    arguments = tuple(sorted({"where": "one", "size": 0.1, "seed": 1, **given}.items()))
    tensor = TensorMetrics(
        path="output", dtype="float32", elements=4, bit_equal=not off, max_abs=off, tolerance_abs=tolerance
    )
    call = CallComparison(input_set="example", call=0, tensors=(tensor,))
    reported = ("values",) if mark is not None and caught else ()
    return Case(
        declaration=ModelDeclaration(
            name=name, factory=factory, tags=tags, arguments=arguments, planted_defect=mark, **PLACE
        ),
        result=PlantedDefectResult(
            name=name, expected="values" if mark else "", reported=reported, caught=caught, note=note
        ),
        twin="control",
        old_directory="",
        probe=None,
        comparison=OutputComparison(model=name, scenario="alone", calls=(call,)),
    )


def report(*cases: Case, said: dict[str, str] | None = None) -> dict[str, Any]:
    return tables.report(cases, {"said": said or {}, "torch": "2.6.0"}, {"date": "today"})


@pytest.mark.parametrize(
    ("off", "tolerance", "name"),
    [
        (0.0, 1.0, "none"),
        (0.0, 0.0, "none"),
        (0.05, 1.0, "up to 0.1"),
        (0.1, 1.0, "up to 0.1"),
        (1.0, 1.0, "0.1 to 1"),
        (1.01, 1.0, "1 to 10"),
        (101.0, 1.0, "above 100"),
        (1.0, 0.0, "exact"),
    ],
)
def test_a_drift_is_sized_in_tolerances(off: float, tolerance: float, name: str) -> None:
    assert tables.decade(case("a", off, tolerance=tolerance)) == name


def test_only_far_drifts_that_came_out_must_be_found() -> None:
    missed = case("missed", 11.0, caught=False, note="came out PASS")
    found = report(
        case("far", 11.0),
        missed,
        case("exact", 1.0, tolerance=0.0),
        case("near", 2.0, caught=False, note="came out PASS"),
        case("rounded", 0.0, caught=False, note="came out PASS"),
    )
    assert (found["far_drifts"]["n"], found["far_drifts"]["count"]) == (3, 2)
    assert found["far_drifts"]["missed"] == ["missed"]
    assert found["drifts"]["within_tolerance_flagged"]["n"] == 0
    assert (found["summary"]["missed"], found["summary"]["rounded_away"]) == (1, 1)


def test_drift_within_tolerance_that_is_flagged_is_counted() -> None:
    found = report(case("a", 0.5), case("b", 1.0, caught=False, note="came out PASS"))
    assert (found["drifts"]["within_tolerance_flagged"]["n"], found["drifts"]["within_tolerance_flagged"]["count"]) == (
        2,
        1,
    )


def test_fault_found_as_another_kind_is_found_and_not_as_expected() -> None:
    other = case("a", 0.0, caught=False, note="came out FAIL (x)", factory="seeded_nan")
    row = report(other)["faults"]["nan 0.1 one"]
    assert (row["planted"], row["found"], row["as_expected"]) == (1, 1, 0)


def test_healthy_pair_that_is_undecided_is_a_false_alarm_and_a_limit_is_none() -> None:
    sound, limit, twin = ("seeded", "sound"), ("seeded", "limit"), ("seeded", "control")
    found = report(
        case("fine", 0.1, caught=False, note="came out PASS", factory="seeded_rewritten", tags=sound),
        case("undecided", 0.1, caught=False, note="came out INCONCLUSIVE", factory="seeded_rewritten", tags=sound),
        case("flagged", 2.0, factory="seeded_rewritten", tags=sound),
        case("control", 0.0, factory="seeded_twin", tags=twin),
        case("cancelled", 40.0, factory="seeded_cancelled_not", tags=limit),
    )
    assert found["summary"]["false_alarm_names"] == ["undecided", "flagged"]
    assert found["summary"]["healthy"] == 4
    assert found["limits"]["cancelled_not 0.1 one"]["flagged"] == 1
    assert found["summary"]["missed"] == 0


def test_assert_close_finds_what_it_objects_to_and_not_what_it_cannot_compare() -> None:
    said = {"a": OBJECTION, "b": "", "c": "TypeError: no comparison"}
    found = report(*(case(name, 11.0) for name in said), said=said)
    assert found["assert_close"]["far_drifts"]["count"] == 1
    assert found["assert_close"]["cannot_compare"] == ["c"]
    assert [row[-1] for row in found["drifts"]["rows"]] == [1, 0, 0]


def test_result_file_has_sorted_keys_and_a_line_per_row() -> None:
    assert rendered({"b": {"y": [1, 2], "x": 0.5}, "a": [[1, "z"], [2, "y"]]}) == (
        '{\n "a": [\n  [1, "z"],\n  [2, "y"]\n ],\n "b": {"x": 0.5, "y": [1, 2]}\n}'
    )
