"""A hang that only one inter-op thread makes is taken to the fork that starves; its twin has nothing to find."""

from pathlib import Path

import pytest

from harness.domain.bisection import Answer, Bisection
from harness.domain.reduction import Symptom
from harness.runtime import codec
from tests.integration.gate import compat, harness

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("old_python", "new_python")]


def hunted(cell: str, reports: Path) -> tuple[Bisection, str]:
    """Bisect one cell of the only other run under ``reports``; return what was found, and what was printed."""
    done = harness("bisect", "--cell", cell, "--out", str(reports))
    (path,) = reports.glob("*-bisect/bisect.json")
    found = codec.read_json(path, Bisection)
    path.unlink()
    assert done.returncode == (0 if found.answer is Answer.NOTHING else 1), done.stdout + done.stderr
    return found, done.stdout


def test_a_fork_that_starves_one_inter_op_thread_is_named_and_its_twin_is_left_alone(tmp_path: Path) -> None:
    models = ("--fixtures", "tests/integration/concurrency", "-k", "fork_join or straight")
    sides = ("--profile", "wide_inter_op", "--new-profile", "inference_mode", "--latency", "off")
    run = compat(tmp_path, *models, *sides, "--scenario", "inter_op")
    (sick,) = (cell.cell for cell in run.row("fork_join").cells if cell.scenario == "inter_op")
    (well,) = (cell.cell for cell in run.row("straight").cells if cell.scenario == "inter_op")

    found, said = hunted(sick, tmp_path)
    reduction = found.reduction
    assert found.answer is Answer.NODES and reduction is not None and reduction.symptom is Symptom.HANG
    assert {node.operator for culprit in reduction.culprits for node in culprit.nodes} == {"prim::fork"}
    assert all(culprit.minimal for culprit in reduction.culprits)
    for culprit in reduction.culprits:
        assert culprit.old.startswith("comes up, inter-op warm-up")
        assert culprit.new.startswith("hangs in call 0 of example, inter-op warm-up")
    assert any("fork_join fails alone" in note for note in found.notes)
    assert "a part of its program" in said

    twin, _ = hunted(well, tmp_path)
    assert twin.answer is Answer.NOTHING
