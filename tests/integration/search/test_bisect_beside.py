"""What fails only as a server brings it up: the fork that starves, the program in threads; twins have nothing to find."""

import json
from pathlib import Path

import pytest

from harness.core.diagnosis import BisectAnswer, Bisection, Symptom
from harness.store import codec
from tests.integration.gate import compat, harness

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("old_python", "new_python")]

EXITS = {BisectAnswer.NOTHING: 0, BisectAnswer.UNDECIDED: 4}


def searched(cell: str, reports: Path) -> tuple[Bisection, str]:
    """Bisect one cell of the only other run under ``reports``; return what was found, and what was printed."""
    done = harness("bisect", "--cell", cell, "--out", str(reports))
    (path,) = reports.glob("*-bisect/bisect.json")
    found = codec.read_json(path, Bisection)
    path.unlink()
    assert done.returncode == EXITS.get(found.answer, 1), done.stdout + done.stderr
    return found, done.stdout


def test_a_fork_that_starves_one_inter_op_thread_is_named_and_its_twin_is_left_alone(tmp_path: Path) -> None:
    models = ("--fixtures", "tests/integration/checks/startup/concurrency", "-k", "fork_join or straight")
    sides = ("--profile", "wide_inter_op", "--new-profile", "inference_mode", "--latency", "off")
    run = compat(tmp_path, *models, *sides, "--scenario", "inter_op")
    (sick,) = (cell.cell for cell in run.row("fork_join").cells if cell.scenario == "inter_op")
    (well,) = (cell.cell for cell in run.row("straight").cells if cell.scenario == "inter_op")

    found, said = searched(sick, tmp_path)
    reduction = found.reduction
    assert found.answer is BisectAnswer.NODES and reduction is not None and reduction.symptom is Symptom.HANG
    assert {node.operator for culprit in reduction.culprits for node in culprit.nodes} == {"prim::fork"}
    assert all(culprit.minimal for culprit in reduction.culprits)
    for culprit in reduction.culprits:
        assert culprit.old.startswith("comes up, inter-op warm-up")
        assert culprit.new.startswith("hangs in call 0 of example, inter-op warm-up")
    assert any("fork_join fails alone" in note for note in found.notes)
    assert "a part of its program" in said
    assert found.notes[-1] == "no reproducer: only C++ can make calls in the inter-op pool" and not found.reproducers

    twin, _ = searched(well, tmp_path)
    assert twin.answer is BisectAnswer.NOTHING


def test_what_two_threads_of_one_module_make_is_shown_by_a_python_program_in_two_threads(tmp_path: Path) -> None:
    models = ("--fixtures", "tests/integration/checks/startup/concurrency", "-k", "quota")
    sides = ("--profile", "wide_inter_op", "--new-profile", "inference_mode", "--latency", "off")
    run = compat(tmp_path, *models, *sides, "--scenario", "shared")
    (sick,) = (cell.cell for cell in run.row("quota").cells if cell.scenario == "shared")
    (well,) = (cell.cell for cell in run.row("quota_unlimited").cells if cell.scenario == "shared")

    found, _ = searched(sick, tmp_path)
    (made,) = found.reproducers
    assert made.old == "every load and call in 2 threads comes to its end (exit code 0)"
    assert "called more often than the quota allows" in made.new and made.new.endswith("(exit code 1)")
    (folder,) = tmp_path.glob(f"*-bisect/{made.folder}")
    case = json.loads((folder / "case.json").read_text())
    assert (case["threads"], case["shared"], case["symptom"]["what"]) == (2, True, "error")
    assert not any("no reproducer" in note for note in found.notes)

    twin, _ = searched(well, tmp_path)
    assert twin.answer is BisectAnswer.NOTHING and not twin.reproducers
