"""In-place changes, shared memory and row order, recorded by both workers on a real torch and judged by policy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.outputs.findings import output_findings
from harness.checks.outputs.outputs import compare_outputs
from harness.core.probe import ModelRun
from harness.core.verdict import Finding
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.recorded import read_outputs
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
Answers = Callable[[str, str], Outputs]


@pytest.fixture(scope="module")
def answers(new_workers: ZygoteRunner) -> Answers:
    """Return a function of (model, worker) that gives what two calls answered."""
    artifacts = replay.export(new_workers, read_fixtures(HERE / "beside"))

    def answer(model: str, worker: str) -> Outputs:
        run = ModelRun(artifact=artifacts[model], schedule=(("example", 2),))
        result = new_workers(replay.asked("run", worker, runs=(run,)))
        assert result.outcome == "completed", result.exit_detail
        return read_outputs(result.directory, model)

    return answer


def judged(old: Outputs, new: Outputs, *unordered: str) -> dict[str, Finding]:
    findings = output_findings(compare_outputs("m", "alone", old, new, unordered=unordered))
    return {f"{finding.kind} {finding.where}".strip(): finding for finding in findings}


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_input_that_one_side_writes_into_fails_and_is_named(answers: Answers, worker: str) -> None:
    found = judged(answers("careful", worker), answers("in_place", worker))
    assert list(found) == [
        "input_changed example call 0 input[0]['x'] and 1 more calls",
        "input_changed example call 0 input[1][0] and 1 more calls",
    ]


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_input_that_both_sides_write_into_is_reported(answers: Answers, worker: str) -> None:
    (found,) = judged(answers("in_place", worker), answers("in_place", worker)).values()
    assert found.kind == "changes_inputs"
    assert found.message.endswith("input[0]['x'], input[1][0]")


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_output_that_becomes_a_view_of_an_input_is_reported(answers: Answers, worker: str) -> None:
    (found,) = judged(answers("careful", worker), answers("views", worker)).values()
    assert found.kind == "aliasing"
    assert "now: input[0]['x'] = output[0]" in found.message


def test_both_workers_record_the_same(answers: Answers) -> None:
    for model in ("careful", "views", "in_place"):
        assert judged(answers(model, "python"), answers(model, "libtorch")).keys() <= {"changes_inputs"}


def test_ties_in_another_order_are_reported_where_order_does_not_count(answers: Answers) -> None:
    old, new = answers("detector", "python"), answers("detector_with_ties_swapped", "python")
    assert {key.split()[0] for key in judged(old, new)} == {"values"}
    (found,) = judged(old, new, "output[*]").values()
    assert found.kind == "reordered"


def test_a_row_that_comes_twice_is_wrong_in_any_order(answers: Answers) -> None:
    found = judged(answers("detector", "python"), answers("detector_with_a_row_twice", "python"), "output[*]")
    rules = {finding.rule for finding in found.values() if finding.kind == "values"}
    assert rules == {"scaled tolerance, rows in any order"}
