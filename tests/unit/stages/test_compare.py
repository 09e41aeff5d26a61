"""Outputs against the golden, and the old release asked where a model differs beside others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeRequest, ProbeResult
from harness.numerics.compare import Outputs
from harness.stages.compare import compare
from harness.stages.facts import Baseline, Facts, Initialized
from harness.worker import wire
from tests.unit.stages.builders import Runner, effects, known, planned, probed, result

GOLDEN = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")


def record(folder: Path, **answers: int) -> str:
    """Write what models answered in a process; return its folder."""
    (folder / "outputs").mkdir(parents=True)
    (folder / "outputs" / wire.TENSORS_BIN).write_bytes(b"")
    lines = [
        json.dumps({"model": name, "set": "example", "call": 0, "tree": ["int", value]}) + "\n"
        for name, value in answers.items()
    ]
    (folder / "outputs" / wire.TENSORS_INDEX).write_text("".join(lines))
    return str(folder)


def group(tmp_path: Path, **answers: int) -> Facts:
    """Return facts of a group of ``m`` and ``n`` that answered 1 alone, and ``answers`` together."""
    facts = known(planned("m", "n"))
    directory = record(tmp_path / "alone", m=1, n=1)
    together = record(tmp_path / "together", **answers)
    return replace(
        facts,
        baselines={name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()},
        alone={name: probed(result(name), directory=directory) for name in ("m", "n")},
        initialized={name: Initialized(result=result(name), directory=together) for name in ("m", "n")},
    )


def old_release(tmp_path: Path, **answers: int) -> Runner:
    def answer(request: ProbeRequest) -> ProbeResult:
        directory = record(tmp_path / "old", **answers)
        return probed(*(result(run.artifact.model) for run in request.runs), side="old", directory=directory)

    return Runner(answer)


@pytest.mark.parametrize(("before", "differs"), [(1, False), (3, True)])
def test_old_release_is_asked_whether_it_differs_beside_others_too(tmp_path: Path, before: int, differs: bool) -> None:
    runner = old_release(tmp_path, m=before, n=1)
    found = compare(group(tmp_path, m=2, n=1), effects(runner))
    assert runner.models("old") == [["m", "n"]]
    assert {name: item.old_differs for name, item in found.initialized.items()} == {"m": differs, "n": False}


def test_group_that_answers_as_alone_asks_the_old_release_nothing(tmp_path: Path) -> None:
    runner = old_release(tmp_path)
    compare(group(tmp_path, m=1, n=1), effects(runner))
    assert runner.asked == []


def test_golden_records_leave_no_old_release_to_ask_about_a_difference(tmp_path: Path) -> None:
    runner = old_release(tmp_path)
    found = compare(group(tmp_path, m=2, n=1), effects(runner, sides=("new",)))
    assert (runner.asked, found.initialized["m"].old_differs) == ([], False)


@pytest.mark.parametrize(("before", "compared"), [(Outcome.CRASH, ["output"]), (Outcome.COMPLETED, [])])
def test_calls_before_a_failure_are_compared_where_the_old_release_fails_too(
    tmp_path: Path, before: Outcome, compared: list[str]
) -> None:
    facts = group(tmp_path, m=1, n=1)
    failed = probed(result("m", Outcome.CRASH), directory=record(tmp_path / "failed", m=2))
    baseline = Baseline(results=(result("m", before),) * 2, golden=GOLDEN)
    found = compare(
        replace(facts, alone={"m": failed}, baselines={"m": baseline}, initialized={}), effects(old_release(tmp_path))
    ).comparisons
    assert [item.path for comparison in found.values() for call in comparison.calls for item in call.tree] == compared
