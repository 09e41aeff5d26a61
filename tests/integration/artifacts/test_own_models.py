"""A team's own files: requests beside them, described, inferred or missing; and files that do not load."""

import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Outcome, Status
from harness.core.prediction import Prediction, RollbackAnswer
from harness.artifacts.golden_records import GoldenStore
from tests.integration.gate import PROJECT, Run, compat, finished, harness

pytestmark = pytest.mark.integration

PROGRAM = PROJECT / "tests" / "integration" / "artifacts" / "given" / "program.py"


@pytest.fixture(scope="module")
def folder(old_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that torch 2.1.2 has written."""
    out = tmp_path_factory.mktemp("given")
    subprocess.run([old_python, "-s", "-W", "ignore", str(PROGRAM), str(out)], timeout=120, check=True)
    return out


@pytest.fixture(scope="module")
def run(folder: Path, old_python: str, new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    del old_python, new_python
    asked_wrongly = tmp_path_factory.mktemp("wrong") / "models.toml"
    asked_wrongly.write_text(
        f'[[models]]\nname = "asked_wrongly"\npath = "{folder}/listed/codec.pt"\nmethods = ["encrypt"]\n'
        "requests = [{ name = 'example', arguments = [{ shape = [2, 6] }] }]\n"
    )
    places = (folder / "files", folder / "listed", asked_wrongly)
    chosen = [word for place in places for word in ("--artifacts", str(place))]
    runs, words = tmp_path_factory.mktemp("runs"), ("--latency", "off", "--scenario", "concurrent")
    return compat(runs, *chosen, *words, all_planted=False)


def test_files_with_requests_are_called_with_them_and_pass(run: Run) -> None:
    for name in ("ranker", "codec"):
        assert run.row(name).status is Status.PASS, run.row(name)
        assert not run.kinds(name) - {"untested_method"}
    assert "untested_method" in run.kinds("codec") and not run.kinds("ranker")
    answered = {
        call.input_set: call.call for model in run.report.models for item in model.comparisons for call in item.calls
    }
    assert answered.keys() >= {"example", "with_bias", "narrow", "widen"}


def test_inferred_inputs_are_called_guessed(run: Run) -> None:
    assert run.row("guessed").status is Status.PASS
    assert run.kinds("guessed") == {"guessed_inputs"}
    (finding,) = [finding for cell in run.row("guessed").cells for finding in cell.findings]
    assert "16]" in finding.message  # the width of its first layer
    assert finding.evidence.endswith("/inputs") and (run.folder / finding.evidence).is_dir()
    (note,) = [note for note in run.report.notes if "were guessed" in note]
    assert note.startswith("inputs of 2 of 8 models were guessed: guessed (forward(")
    assert note.partition("guessed: ")[2] in (run.folder / "report.md").read_text().replace("\\", "")


def test_model_that_nobody_can_call_is_loaded_and_not_green(run: Run) -> None:
    assert run.row("licensed").status is Status.INCONCLUSIVE
    assert run.kinds("licensed") == {"not_called"}
    assert "licensed.inputs.pt" in run.row("licensed").reason


def test_operator_that_left_torch_blocks_and_is_named(run: Run) -> None:
    assert run.row("old_only").status is Status.FAIL
    assert run.kinds("old_only") >= {"load_error"}
    assert run.report.judgement.decision is Decision.BLOCKED and run.code == 1
    assert "is_ort" in run.report.judgement.reason


def test_a_healthy_file_that_loads_nowhere_fails_in_both_and_a_damaged_one_is_not_judged(run: Run) -> None:
    assert run.row("optimized").status is Status.SAME_FAIL
    assert run.row("torn").status is Status.INCONCLUSIVE
    assert run.row("torn").reason.startswith("not judged: the file is damaged: ")


def test_predictions_are_right(run: Run) -> None:
    said = {model.model: model.static.sides for model in run.report.models if model.static is not None}
    assert not [(name, side) for name, sides in said.items() for side in sides.values() if side.agreed is False]
    in_new = {name: sides["new"].verdict for name, sides in said.items()}
    refused = {name for name, verdict in in_new.items() if verdict and verdict.prediction is Prediction.FAILS}
    assert refused == {"old_only", "optimized"}


def test_what_is_no_torchscript_is_left_out_and_named(run: Run) -> None:
    assert {row.model for row in run.report.judgement.rows} == {
        *("ranker", "codec", "guessed", "licensed", "old_only", "torn", "optimized", "asked_wrongly")
    }
    assert any("weights.pt" in note and "state dict" in note for note in run.report.notes)


def test_what_the_new_release_takes_it_saves_again_and_that_is_read_for_the_old_one(run: Run) -> None:
    assert run.report.rollback is not None
    ways = {item.model: item for item in run.report.rollback.models}
    back = {name for name, item in ways.items() if item.answer is RollbackAnswer.YES}
    assert back == {"ranker", "codec", "guessed", "licensed"}
    assert all((run.folder / ways[name].artifact).is_file() for name in back)
    assert ways["old_only"].answer is RollbackAnswer.UNKNOWN and "is_ort" in ways["old_only"].reason
    assert set(run.report.rollback.left_out) == {"torn", "optimized"}  # they load in neither release
    assert any(
        note.startswith("left out of the rollback, torn: does not load in torch 2.1.2") for note in run.report.notes
    )


@pytest.mark.slow
def test_what_was_saved_again_is_asked_in_another_run_what_it_was_asked_in_this_one(run: Run, tmp_path: Path) -> None:
    assert run.report.rollback is not None
    saved = {item.model: run.folder / item.artifact for item in run.report.rollback.models if item.artifact}
    files = [word for name in ("guessed", "codec") for word in ("--artifacts", str(saved[name].parent / "models.toml"))]
    sides = ("--old", "2.6.0", "--new", "2.1.2", "--scenario", "alone", "--latency", "off")
    back = compat(tmp_path, *sides, *files)
    for name in ("guessed", "codec"):
        assert back.row(name).status is Status.PASS, back.out
        assert not back.kinds(name) - {"untested_method"}  # its inputs are not guessed anew
        assert input_sets(back, name) == input_sets(run, name)


def input_sets(run: Run, model: str) -> set[str]:
    """Return which input sets a model was compared by, alone."""
    return {
        call.input_set
        for found in run.report.models
        if found.model == model
        for item in found.comparisons
        if item.scenario == "alone"
        for call in item.calls
    }


def test_one_cell_can_be_repeated_when_the_file_is_gone(run: Run, folder: Path) -> None:
    kept = folder / "files" / "ranker.pt"
    away = kept.rename(kept.with_suffix(".away"))
    try:
        cell = next(cell.cell for cell in run.row("ranker").cells if cell.scenario == "alone")
        done = harness("rerun", str(run.folder), cell)
    finally:
        away.rename(kept)
    assert done.returncode in (0, 4), done.stderr
    assert "ranker" in done.stdout


def test_bad_requests_are_a_row_that_says_what_was_expected(run: Run, folder: Path) -> None:
    assert run.row("asked_wrongly").status is Status.INCONCLUSIVE
    reason = run.row("asked_wrongly").reason
    assert "encrypt" in reason and "encode" in reason and f"{folder}/listed/codec.pt" in reason
    assert {model.model: model.export for model in run.report.models}["asked_wrongly"] is Outcome.EXPORT_ERROR


@pytest.fixture(scope="module")
def accepted(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose golden records are those of the run of given files."""
    project = tmp_path_factory.mktemp("project")
    for words in (("propose", str(run.folder), "-k", "ranker or codec or guessed"), ("accept", "all", "--reason", "x")):
        done = harness("--project", str(project), "golden", *words)
        assert done.returncode == 0, done.stderr
    return project


def test_answers_to_given_files_become_golden_records(accepted: Path) -> None:
    assert set(GoldenStore(accepted / "golden").names()) == {"codec", "guessed", "ranker"}


@pytest.mark.slow
def test_given_files_are_judged_by_their_golden_records(
    accepted: Path, folder: Path, new_python: str, tmp_path: Path
) -> None:
    chosen = ("--artifacts", str(folder / "files"), "--artifacts", str(folder / "listed"), "--golden")
    words = ("--project", str(accepted), "compat", "--out", str(tmp_path), *chosen, "--env", f"new={new_python}")
    found = finished(harness(*words, "--scenario", "alone"), tmp_path)
    recorded = {"codec", "guessed", "ranker"}
    assert {row.model for row in found.report.judgement.rows if row.status is Status.PASS} == recorded
    others = {row.model: row.reason for row in found.report.judgement.rows if row.model not in recorded}
    assert found.code == 4 and "torn" in others and all("it has no golden record" in why for why in others.values())
    only = ("--out", str(tmp_path / "only"), "-k", "ranker or codec or guessed")
    green = finished(harness(*words, "--scenario", "alone", *only), tmp_path / "only")
    assert (green.code, {row.status for row in green.report.judgement.rows}) == (0, {Status.PASS})


@pytest.mark.slow
def test_files_that_are_swapped_during_a_run_are_not_judged(
    folder: Path, old_python: str, new_python: str, tmp_path: Path
) -> None:
    files, runs = tmp_path / "files", tmp_path / "runs"
    shutil.copytree(folder / "files", files)
    other = shutil.copy(files / "guessed.pt", tmp_path / "other.pt")

    def swap() -> None:
        wait_for(runs, "*/plan.json")
        (files / "ranker.pt").unlink()
        (files / "ranker.pt").symlink_to(other)
        wait_for(runs, "*/baselines.json")
        (kept,) = runs.glob("*/given/guessed-*.pt")
        kept.chmod(0o644)
        kept.write_bytes(kept.read_bytes() + b"x")

    swapping = threading.Thread(target=swap, daemon=True)
    swapping.start()
    sides = ("--env", f"old={old_python}", "--env", f"new={new_python}")
    found = compat(runs, "--artifacts", str(files), *sides, "-k", "ranker or guessed", "--scenario", "alone")
    swapping.join(timeout=1)
    assert found.code == 4
    assert [found.row(name).status for name in ("ranker", "guessed")] == [Status.INCONCLUSIVE] * 2
    assert "leads out of" in found.row("ranker").reason and "written to" in found.row("guessed").reason


def wait_for(runs: Path, pattern: str) -> None:
    """Wait until a run has written a file; the process that is waited for has a deadline of its own."""
    while not any(runs.glob(pattern)):
        time.sleep(0.01)
