"""Planted defects gate the gate."""

import pytest

from harness.core.hang import HangKind
from harness.core.models import PlantedDefectMark, ModelDeclaration
from harness.core.outcome import Status
from harness.run.planted_defects import judge_planted_defect, judge_initialized_planted_defect, judge_twin
from tests.unit.builders.requests import declaration
from tests.unit.builders.verdicts import finding, verdict


def declared(expect: str | None) -> ModelDeclaration:
    mark = None if expect is None else PlantedDefectMark(twin="healthy", expect=expect)
    return declaration(name="bird", planted_defect=mark)


def test_planted_defect_that_fails_with_its_kind_is_caught() -> None:
    result = judge_planted_defect(
        declared("values"), verdict(Status.FAIL, finding("values"), finding("dtype"), finding("values"))
    )
    assert (result.name, result.expected, result.reported) == ("bird", "values", ("values", "dtype"))
    assert (result.caught, result.note) == (True, "")


def test_planted_defect_of_another_kind_is_missed() -> None:
    result = judge_planted_defect(declared("hang"), verdict(Status.FAIL, finding("crash", "crashes in load")))
    assert not result.caught
    assert result.note == "came out FAIL (crashes in load)"


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.FAIL])
def test_planted_defect_that_does_not_fail_is_missed(status: Status) -> None:
    result = judge_planted_defect(declared("values"), verdict(status, finding("values")))
    assert not result.caught
    assert result.note == f"came out {status} (about values)"


def test_planted_defect_without_a_finding_is_missed() -> None:
    result = judge_planted_defect(declared("values"), verdict(Status.PASS))
    assert (result.caught, result.reported, result.note) == (False, (), "came out PASS")


@pytest.mark.parametrize("proven", [None, *HangKind])
def test_hang_in_initialization_is_caught_only_if_it_is_proven_to_be_blocked(proven: HangKind | None) -> None:
    result = judge_initialized_planted_defect(declared("hang"), verdict(Status.FAIL, finding("hang")), proven)
    assert result.caught is (proven is HangKind.BLOCKED)
    assert result.caught or (proven.value if proven is not None else "without a proof") in result.note


def test_other_defects_of_initialization_need_no_proof() -> None:
    assert judge_initialized_planted_defect(declared("race"), verdict(Status.FAIL, finding("race")), None).caught
    assert not judge_initialized_planted_defect(declared("race"), verdict(Status.PASS), HangKind.BLOCKED).caught


def test_healthy_twin_that_passes_is_left_alone() -> None:
    result = judge_twin(declared(None), verdict(Status.PASS, finding("stride")))
    assert (result.caught, result.expected, result.reported, result.note) == (True, "", ("stride",), "")


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASS])
def test_healthy_twin_with_any_other_status_is_a_false_alarm(status: Status) -> None:
    result = judge_twin(declared(None), verdict(status, finding("values", "off")))
    assert (result.caught, result.note) == (False, f"came out {status} (off)")


def test_healthy_twin_may_be_undecided_in_time_and_must_not_be_called_slow() -> None:
    assert judge_twin(declared(None), verdict(Status.INCONCLUSIVE, scenario="latency")).caught
    assert not judge_twin(declared(None), verdict(Status.FAIL, finding("latency"), scenario="latency")).caught
