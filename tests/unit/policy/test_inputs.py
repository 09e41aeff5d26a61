"""Guessed inputs are told, and a model that nobody could call is never green."""

import pytest

from harness.domain.artifact import InputSet
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict, Finding
from harness.policy.inputs import with_inputs
from tests.unit.stages.builders import artifact

HANG = Finding(kind="hang", message="hangs in load")


def verdict(status: Status = Status.PASS, *findings: Finding) -> CellVerdict:
    return CellVerdict(
        cell="m/backward/alone/cpu/default/all", model="m", scenario="alone", status=status, findings=findings
    )


@pytest.mark.parametrize("status", list(Status))
def test_inputs_that_were_given_change_nothing(status: Status) -> None:
    assert with_inputs(verdict(status, HANG), artifact()) == verdict(status, HANG)


def test_guessed_inputs_are_told_behind_everything_else() -> None:
    found = with_inputs(
        verdict(Status.FAIL, HANG), artifact(inputs_note="guessed from the graph: forward(x=float32[2, 3])")
    )
    assert found.status is Status.FAIL
    assert [finding.kind for finding in found.findings] == ["hang", "guessed_inputs"]
    assert "float32[2, 3]" in found.findings[1].message


def test_model_that_was_only_loaded_is_not_green() -> None:
    found = with_inputs(verdict(), artifact(input_sets=(), inputs_note="forward(Dict[str, Tensor] y): keys unknown"))
    assert found.status is Status.INCONCLUSIVE
    assert found.findings[0].kind == "not_called" and "keys unknown" in found.findings[0].message


@pytest.mark.parametrize("status", [Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE])
def test_failure_at_loading_stays_what_it_is_without_inputs(status: Status) -> None:
    found = with_inputs(verdict(status, HANG), artifact(input_sets=(), inputs_note="no idea"))
    assert (found.status, found.findings) == (status, (HANG,))
    assert "no idea" in found.note


def test_note_stands_for_inputs_of_any_number() -> None:
    sets = (InputSet(name="guessed"), InputSet(name="guessed_other_batch"))
    assert with_inputs(verdict(), artifact(input_sets=sets, inputs_note="guessed")).status is Status.PASS


def test_file_that_does_not_load_needs_no_word_about_calls() -> None:
    refused = verdict(Status.SAME_FAIL, Finding(kind="load_error", message="does not load"))
    assert with_inputs(refused, artifact(input_sets=(), inputs_note="it does not load")) == refused
