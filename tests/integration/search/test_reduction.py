"""What only the fused program does, in a branch of a scripted model: taken to pieces; a twin is left alone."""

from functools import partial
from pathlib import Path

import pytest

from harness.search.bisect.cell import bisect
from harness.verdict.exit_codes import exit_code
from harness.search.reduce import program
from harness.core.diagnosis import BisectAnswer, Symptom
from harness.core.outcome import Status
from harness.report.documents.diagnosis import bisection_document
from harness.report.formats import on_terminal
from tests.integration.search.judging import judged
from tests.integration.gate import PROJECT

pytestmark = pytest.mark.integration

fused = partial(judged, Path(__file__).with_name("reduced"), floor_s=3, new_profile="cpu_fusion")
FUSED = {"aten::abs", "aten::neg", "aten::frac", "aten::gt.Scalar"}


@pytest.fixture(autouse=True)
def _a_busy_machine_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIME_S", 600.0)


def test_numbers_that_no_operator_makes_are_reduced_to_the_nodes_that_are_fused(
    old_python: str, new_python: str, tmp_path: Path
) -> None:
    with fused((old_python, new_python), tmp_path, "fractional or calm") as (facts, effects):
        calm = bisect("calm", facts, effects)
        assert (calm.answer, calm.reduction, exit_code(calm)) == (BisectAnswer.NOTHING, None, 0)
        found = bisect("fractional", facts, effects, reproduce=False, mitigations=False, rewrites=False)
    reduction = found.reduction
    assert reduction is not None and reduction.shows and found.answer is BisectAnswer.EXECUTOR
    assert reduction.symptom is Symptom.VALUES
    (culprit,) = reduction.culprits
    assert len(culprit.place) == 2 and culprit.minimal, "in the branch of the If"
    assert {node.operator for node in culprit.nodes} <= {"aten::neg", "aten::frac", "aten::add.Tensor"}
    assert "aten::frac" in {node.operator for node in culprit.nodes}
    assert {node.code for node in culprit.nodes} == {"residue = torch.frac(-h) + h"}
    assert "off by" in culprit.new


@pytest.mark.slow
def test_a_hang_that_no_operator_makes_is_reduced_to_the_nodes_that_are_fused(
    old_python: str, new_python: str, tmp_path: Path
) -> None:
    with fused((old_python, new_python), tmp_path, "guarded") as (facts, effects):
        assert facts.verdicts["guarded"][0].status is Status.FAIL
        found = bisect("guarded", facts, effects)
    divergence, reduction = found.divergence, found.reduction
    assert divergence is not None and reduction is not None
    assert not divergence.shows and found.answer is BisectAnswer.EXECUTOR and exit_code(found) == 1
    assert reduction.symptom is Symptom.HANG and reduction.shows

    (culprit,) = reduction.culprits
    assert len(culprit.place) == 2, "in the branch of the If"
    assert {node.operator for node in culprit.nodes} >= {"aten::frac"}
    assert all(node.source.startswith(str(PROJECT / "fixtures" / "planted" / "fused.py")) for node in culprit.nodes)
    assert "completes" in culprit.old and "hangs in call 1" in culprit.new
    (folder,) = tmp_path.glob("*-reduced")
    assert (folder / culprit.artifact).is_file() and (folder / culprit.inputs / "tensors.jsonl").is_file()

    assert {mitigation.name for mitigation in found.mitigations if mitigation.mitigates} >= {
        "profiling off",
        "fuser off",
    }
    assert all(mitigation.prices for mitigation in found.mitigations if mitigation.mitigates)
    (made,) = found.reproducers
    assert made.old.endswith("(exit code 0)") and made.new.endswith("(exit code 1)")

    said = on_terminal(bisection_document(found, directory="reports/r"), width=80, most_lines=0)
    # The path is one word: that of these nodes comes to 103.
    assert not [line for line in said.splitlines() if len(line) > 100 and made.folder not in line]
    assert "culprit  " in said and "reduced     to " in said and "mitigation  " in said
