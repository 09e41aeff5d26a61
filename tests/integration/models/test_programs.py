"""A team's own .pt2 files: judged by what the old release answers, and red where the new one does not load them."""

import subprocess
from pathlib import Path

import pytest

from harness.domain.models import ArtifactKind
from harness.domain.outcome import Decision, Status
from harness.domain.prediction import Prediction, RollbackAnswer
from tests.integration.gate import PROJECT, Run, compat, finished, harness

pytestmark = pytest.mark.integration

PROGRAM = PROJECT / "tests" / "integration" / "models" / "given" / "exported.py"
SIDES = {
    "same": ("--old", "2.6.0", "--new", "2.6.0", "--allow-same-torch"),
    "refusing": ("--old", "2.6.0", "--new", "2.1.2"),
}


@pytest.fixture(scope="module")
def folder(new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that torch 2.6.0 has written."""
    out = tmp_path_factory.mktemp("programs")
    subprocess.run([new_python, "-s", "-W", "ignore", str(PROGRAM), str(out)], timeout=120, check=True)
    return out


@pytest.mark.slow
def test_programs_pass_with_requests_and_with_their_own_example_and_bad_ones_are_rows(
    folder: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    content = (folder / "ranker.pt2").read_bytes()
    (others / "encoder.pt2").write_bytes(content)
    (others / "cut.pt2").write_bytes(content[: len(content) // 2])
    (others / "models.toml").write_text(
        '[[models]]\npath = "encoder.pt2"\nmethods = ["encode"]\n[[models]]\npath = "cut.pt2"\n'
    )
    run = compat(
        tmp_path,
        *(*SIDES["same"], "--artifacts", str(folder), "--artifacts", str(others), "--scenario", "alone"),
        *("--until", "correctness", "--migrate"),
        all_planted=False,
    )
    assert run.report.migration is not None
    assert (run.report.migration.models, set(run.report.migration.left)) == ((), {"asked", "cut", "encoder", "ranker"})
    assert "4 models have left TorchScript already" in run.out
    assert {model.kind for model in run.report.models} == {ArtifactKind.PROGRAM}
    assert [run.row(name).status for name in ("asked", "ranker")] == [Status.PASS, Status.PASS], run.out
    assert (run.kinds("asked"), run.kinds("ranker")) == (set(), {"guessed_inputs"})
    asked = {call.input_set for model in run.report.models for item in model.comparisons for call in item.calls}
    assert asked == {"monday", "example"}
    assert "its own example inputs" in run.out
    assert run.row("encoder").status is Status.INCONCLUSIVE
    assert "has no method 'encode': an exported program has forward alone" in run.row("encoder").reason
    assert run.row("cut").status is Status.SAME_FAIL, run.row("cut")


def test_a_release_that_does_not_load_it_blocks_with_the_reason_that_was_predicted(
    folder: Path, old_python: str, tmp_path: Path
) -> None:
    del old_python
    run = compat(
        tmp_path,
        *(*SIDES["refusing"], "--artifacts", str(folder / "ranker.pt2"), "--until", "correctness"),
        *("--scenario", "alone"),
        all_planted=False,
    )
    row = run.row("ranker")
    assert (row.status, run.report.judgement.decision, run.code) == (Status.FAIL, Decision.BLOCKED, 1), run.out
    assert "load_error" in run.kinds("ranker")
    assert row.mitigations == ()
    (model,) = run.report.models
    assert model.static is not None
    assert model.static.sides["new"].prediction is Prediction.FAILS
    assert "bisect" not in run.out
    (cell,) = [cell for cell in row.cells if cell.status is Status.FAIL]
    refused = harness("bisect", str(run.folder), cell.cell)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "ranker is an exported program: bisect is about TorchScript" in refused.stderr


@pytest.fixture(scope="module")
def upgraded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Programs of torch 2.6.0 in 2.15.0, which writes what 2.6.0 does not load."""
    sides = ("--old", "2.6.0", "--new", "2.15.0", "--rollback", "--until", "correctness", "--scenario", "alone")
    return compat(tmp_path_factory.mktemp("upgraded"), *sides, "--artifacts", str(folder), all_planted=False)


@pytest.mark.slow
def test_what_the_new_release_saves_of_a_program_does_not_load_in_the_old_one(upgraded: Run) -> None:
    assert [upgraded.row(name).status for name in ("asked", "ranker")] == [Status.PASS, Status.PASS], upgraded.out
    rollback = upgraded.report.rollback
    assert rollback is not None
    assert (rollback.answer, rollback.method) == (RollbackAnswer.NO, "probed")
    for item in rollback.models:
        assert (item.answer, Path(item.artifact).suffix) == (RollbackAnswer.NO, ".pt2")
        assert "no item named 'version'" in item.reason
        assert item.predicted is not None and item.predicted.prediction is Prediction.FAILS


@pytest.mark.slow
def test_golden_bundles_and_records_of_programs_stand_in_for_the_old_release(
    folder: Path, upgraded: Run, tmp_path: Path
) -> None:
    bundles, project = tmp_path / "bundles", tmp_path / "project"
    packed = harness("pack", "--old", "2.6.0", "--artifacts", str(folder), "--into", str(bundles))
    assert (packed.returncode, "2 of 2 models packed" in packed.stdout) == (0, True), packed.stdout
    given = ("--new", "2.15.0", "--scenario", "alone", "--artifacts")
    by_bundles = compat(tmp_path / "by_bundles", *given, str(bundles), all_planted=False)
    project.mkdir()
    (project / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    golden = ("--project", str(project), "golden")
    assert harness(*golden, "propose", str(upgraded.folder)).returncode == 0
    assert harness(*golden, "accept", "all", "--reason", "the outputs that production serves today").returncode == 0
    by_records = ("--project", str(project), "compat", "--golden", "--out", str(tmp_path / "by_records"))
    done = harness(*by_records, *given, str(folder), all_planted=False)
    for run in (by_bundles, finished(done, tmp_path / "by_records")):
        assert run.report.old.golden, run.out
        assert [run.row(name).status for name in ("asked", "ranker")] == [Status.PASS, Status.PASS], run.out
        assert {model.kind for model in run.report.models} == {ArtifactKind.PROGRAM}
        assert all(call.equal for model in run.report.models for one in model.comparisons for call in one.calls)
