"""What the machine, the store or the gate did is no verdict; what torch did is."""

from dataclasses import replace

import pytest

from harness.verdict.decide import judge_row
from harness.core.findings import DISTURBANCE
from harness.core.outcome import Disturbance, Status
from harness.core.verdict import Finding, PlantedDefectResult
from harness.apps.fleet.faults import LABELS, blind, label_of
from tests.unit.builders.reports import upgrade_ok, verdict


def labelled(kind: str, message: str = "", *, derived: bool = True, disturbance: str = "") -> str:
    detail = {DISTURBANCE: disturbance} if disturbance else {}
    cell = verdict("net", "alone", Status.FAIL, Finding(kind=kind, message=message, detail=detail))
    return label_of(judge_row("net", [cell]), memory_is_derived=derived)[0]


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("out_of_memory", "spurious-memory"),
        ("protocol_error", "spurious-gate"),
        ("starved", "spurious-starved"),
    ],
)
def test_what_is_not_of_the_release_is_labelled(kind: str, label: str) -> None:
    assert labelled(kind) == label
    assert label in LABELS


@pytest.mark.parametrize("disturbance", Disturbance)
def test_what_disturbed_a_run_is_labelled_whatever_it_is_called(disturbance: Disturbance) -> None:
    assert labelled("export_error", disturbance=disturbance.value) in LABELS


@pytest.mark.parametrize("kind", ["load_error", "hang", "crash", "values", "call_error", "latency_undecided"])
def test_what_the_release_did_is_judged(kind: str) -> None:
    assert labelled(kind, "signal SIGSEGV in aten::add") == ""


def test_memory_beyond_a_limit_that_somebody_set_is_a_verdict() -> None:
    assert labelled("out_of_memory", "beyond 4 GB", derived=False) == ""
    assert labelled("out_of_memory", derived=False, disturbance="killed") == "spurious-memory"


def test_a_run_that_missed_a_planted_defect_says_nothing() -> None:
    judgement = upgrade_ok().judgement
    assert blind(judgement) == ""
    missed = PlantedDefectResult(name="planted_nan", expected="nan_placement", reported=(), caught=False)
    assert "planted_nan" in blind(replace(judgement, planted_defects=(missed,)))
    assert blind(replace(judgement, planted_defects=())) != ""
