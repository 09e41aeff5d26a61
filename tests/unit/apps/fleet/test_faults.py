"""What the machine, the store or the gate did is no verdict; what torch did is."""

from dataclasses import replace

import pytest

from harness.verdict.decide import judge_row
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Finding, PlantedDefectResult
from harness.apps.fleet.faults import LABELS, blind, label_of
from tests.unit.builders.reports import upgrade_ok, verdict


def labelled(kind: str, message: str, *, status: Status = Status.FAIL, derived: bool = True) -> str:
    cell: CellVerdict = verdict("net", "alone", status, Finding(kind=kind, message=message))
    return label_of(judge_row("net", [cell]), memory_is_derived=derived)[0]


@pytest.mark.parametrize(
    ("kind", "message", "label"),
    [
        ("out_of_memory", "out of memory in call", "spurious-memory"),
        ("protocol_error", "the worker ended without a word", "spurious-gate"),
        ("starved", "waited for the CPU", "spurious-starved"),
        ("export_error", "x.pt is another file than when this run was planned (...)", "spurious-changed"),
        ("export_error", "cannot be kept: the disk is full (df shows its space)", "spurious-disk"),
    ],
)
def test_what_is_not_of_the_release_is_labelled(kind: str, message: str, label: str) -> None:
    assert labelled(kind, message, status=Status.INCONCLUSIVE) == label
    assert label in LABELS


@pytest.mark.parametrize("kind", ["load_error", "hang", "crash", "values", "call_error", "latency_undecided"])
def test_what_the_release_did_is_judged(kind: str) -> None:
    assert labelled(kind, "signal SIGSEGV in aten::add") == ""


def test_memory_beyond_a_limit_that_somebody_set_is_a_verdict() -> None:
    assert labelled("out_of_memory", "beyond 4 GB", derived=False) == ""
    assert labelled("out_of_memory", "signal SIGKILL", derived=False) == "spurious-memory"


def test_a_run_that_missed_a_planted_defect_says_nothing() -> None:
    judgement = upgrade_ok().judgement
    assert blind(judgement) == ""
    missed = PlantedDefectResult(name="planted_nan", expected="nan_placement", reported=(), caught=False)
    assert "planted_nan" in blind(replace(judgement, planted_defects=(missed,)))
    assert blind(replace(judgement, planted_defects=())) != ""
