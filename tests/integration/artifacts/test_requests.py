"""Requests of one artifact that fare otherwise than each other, hooks of its root, and a library that nobody gave."""

import subprocess
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Status
from tests.integration.gate import PROJECT, Run, compat

pytestmark = pytest.mark.integration

GIVEN = PROJECT / "tests" / "integration" / "artifacts" / "given"


@pytest.fixture(scope="module")
def run(old_python: str, new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    del new_python
    files = tmp_path_factory.mktemp("files")
    program = [old_python, "-s", "-W", "ignore", str(GIVEN / "requests.py"), str(files)]
    subprocess.run(program, timeout=120, check=True)
    words = ("--latency", "off", "--scenario", "concurrent", "--library", str(GIVEN / "ending.py"))
    return compat(tmp_path_factory.mktemp("runs"), "--artifacts", str(files), *words, all_planted=False)


def compared(run: Run, model: str) -> set[str]:
    """Return the requests whose answers were compared, alone."""
    (found,) = [item for item in run.report.models if item.model == model]
    return {call.input_set for item in found.comparisons if item.scenario == "alone" for call in item.calls}


@pytest.mark.parametrize("model", ["shrink_first", "shrink_last", "ends_first", "ends_last"])
def test_request_that_fails_before_does_not_hide_another_answer(run: Run, model: str) -> None:
    assert run.row(model).status is Status.FAIL
    assert "nan_placement" in run.kinds(model)
    assert compared(run, model) == {"nan"}


@pytest.mark.parametrize("model", ["shrink_well", "ends_well"])
def test_only_the_request_that_failed_before_is_called_so(run: Run, model: str) -> None:
    (alone, *others) = run.row(model).cells
    assert run.row(model).status is Status.SAME_FAIL
    assert alone.status is Status.SAME_FAIL
    assert compared(run, model) == {"plain"}
    assert [cell.status for cell in others] == [Status.PASS]  # it is served with the request that both answer


@pytest.mark.parametrize(("model", "status"), [("warms", Status.FAIL), ("warms_well", Status.SAME_FAIL)])
def test_call_that_fails_before_hides_no_later_call_of_its_request(run: Run, model: str, status: Status) -> None:
    assert run.row(model).status is status
    assert ("nan_placement" in run.kinds(model)) is (status is Status.FAIL)
    (found,) = [item for item in run.report.models if item.model == model]
    assert [call.call for item in found.comparisons if item.scenario == "alone" for call in item.calls] == [1, 2, 3]


def test_library_that_was_not_given_is_asked_for(run: Run) -> None:
    assert run.row("needs").status is Status.INCONCLUSIVE
    assert "library_missing" in run.kinds("needs")
    assert "mine::twice" in run.out
    assert "--library NAME, the module or shared object that registers mine::" in " ".join(run.out.split())


def test_hook_of_the_root_is_part_of_what_python_calls(run: Run) -> None:
    assert run.row("hooked").status is Status.FAIL
    (finding,) = [item for cell in run.row("hooked").cells for item in cell.findings if item.kind == "nan_placement"]
    assert finding.where.startswith("nan_with_hooks call 0")


@pytest.mark.parametrize("model", ["hooked_well", "hooked_before"])
def test_healthy_hooks_are_called_and_pass(run: Run, model: str) -> None:
    assert run.row(model).status is Status.PASS
    assert compared(run, model) == {"plain", "plain_with_hooks"}


def test_nothing_of_this_is_green(run: Run) -> None:
    assert (run.report.judgement.decision, run.code) == (Decision.BLOCKED, 1)
