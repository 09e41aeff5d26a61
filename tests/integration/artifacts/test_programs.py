"""A team's own .pt2 files: judged by what the old release answers, and red where the new one does not load them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.models import Artifact, ArtifactKind, InputSet
from harness.core.outcome import Decision, Outcome, Status
from harness.core.prediction import Prediction, RollbackAnswer
from harness.core.probe import ModelRun
from harness.checks.hang import watchdog
from harness.probing.runner import ZygoteRunner
from harness.worker import wire
from tests.integration.gate import PROJECT, Run, compat, finished, harness
from tests.integration.artifacts.test_adopting import Place
from tests.unit.builders.archives import zipped
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

NAMES = ("asked", "named", "ranker")
SIDES = {
    "same": ("--old", "2.6.0", "--new", "2.6.0", "--allow-same-torch"),
    "refusing": ("--old", "2.6.0", "--new", "2.1.2"),
}


@pytest.fixture(scope="module")
def place(programs: Path, new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A zygote of torch 2.6.0."""
    environment = Environment(name="here", interpreter=new_python, spec=EnvSpec(name="here", interpreter=new_python))
    runner = ZygoteRunner({"old": environment}, tmp_path_factory.mktemp("probes"), watchdog)
    try:
        yield Place(runner, programs, ArtifactKind.PROGRAM)
    finally:
        runner.close()
    assert not runner.unreaped


def test_requests_of_a_program_are_those_beside_it_or_its_own_example_with_its_keywords(place: Place) -> None:
    given = place.adopt("asked", "asked.inputs.pt")
    assert (given.outcome, given.data["adopted"]["input_sets"]) == (Outcome.COMPLETED, [["monday", "forward"]])
    answers = []
    for name, method in {"named": wire.KEYWORDS_METHOD, "ranker": "forward"}.items():
        adopted = place.adopt(name)
        assert adopted.data["adopted"]["input_sets"] == [["example", method]], adopted
        artifact = Artifact(
            model=name,
            path=str(place.folder / f"{name}.pt2"),
            digest=name,
            size_bytes=1,
            operators=(),
            inputs_dir=str(Path(adopted.directory) / "inputs"),
            input_sets=(InputSet(name="example", method=method),),
            kind=ArtifactKind.PROGRAM,
        )
        run = ModelRun(artifact=artifact, schedule=(("example", 1),))
        result = place.runner(replay.asked("run", runs=(run,)))
        assert result.models[0].outcome is Outcome.COMPLETED, result
        answers.append(list(replay.outputs(Path(result.directory)).values()))
    assert answers[0] == answers[1] and len(answers[0]) == 1


def test_a_package_does_not_load_in_a_release_that_has_no_loader_of_packages(
    old_python: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It was not decided: 2.1.2 cannot import what newer releases ask for the CPU's instructions, before anything loads."""
    path = tmp_path / "package.pt2"
    path.write_bytes(zipped({"data/aotinductor/model/a.so": "", "data/aotinductor/model/a_metadata.json": "{}"}))
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        (tmp_path / name).touch()
    artifact = Artifact(
        model="package",
        path=str(path),
        digest="package",
        size_bytes=1,
        operators=(),
        inputs_dir=str(tmp_path),
        input_sets=(),
        kind=ArtifactKind.PACKAGE,
    )
    environment = Environment(name="here", interpreter=old_python, spec=EnvSpec(name="here", interpreter=old_python))
    runner = ZygoteRunner({"old": environment}, tmp_path_factory.mktemp("probes"), watchdog)
    try:
        result = runner(replay.asked("run", runs=(ModelRun(artifact=artifact, schedule=()),)))
    finally:
        runner.close()
    (model,) = result.models
    assert model.outcome is Outcome.LOAD_ERROR and model.failure is not None, result
    assert "cannot import name 'package' from 'torch._inductor'" in model.failure.message


@pytest.mark.slow
def test_programs_pass_with_requests_and_with_their_own_example_and_bad_ones_are_rows(
    programs: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    content = (programs / "ranker.pt2").read_bytes()
    (others / "encoder.pt2").write_bytes(content)
    (others / "cut.pt2").write_bytes(content[: len(content) // 2])
    (others / "models.toml").write_text(
        '[[models]]\npath = "encoder.pt2"\nmethods = ["encode"]\n[[models]]\npath = "cut.pt2"\n'
    )
    run = compat(
        tmp_path,
        *(*SIDES["same"], "--artifacts", str(programs), "--artifacts", str(others), "--scenario", "alone"),
        *("--until", "correctness", "--migrate"),
        all_planted=False,
    )
    assert run.report.migration is not None
    assert (run.report.migration.models, set(run.report.migration.left)) == (
        (),
        {"asked", "cut", "encoder", "named", "ranker"},
    )
    assert "5 models have left TorchScript already" in run.out
    assert {model.kind for model in run.report.models} == {ArtifactKind.PROGRAM}
    assert [run.row(name).status for name in NAMES] == [Status.PASS] * 3, run.out
    assert [run.kinds(name) for name in NAMES] == [set(), {"guessed_inputs"}, {"guessed_inputs"}]
    asked = {call.input_set for model in run.report.models for item in model.comparisons for call in item.calls}
    assert asked == {"monday", "example"}
    assert "its own example inputs" in run.out
    assert run.row("encoder").status is Status.INCONCLUSIVE
    assert "has no method 'encode': an exported program has forward alone" in run.row("encoder").reason
    assert (run.row("cut").status, run.kinds("cut")) == (Status.INCONCLUSIVE, {"damaged_file"}), run.row("cut")


def test_a_release_that_does_not_load_it_blocks_with_the_reason_that_was_predicted(
    programs: Path, old_python: str, tmp_path: Path
) -> None:
    del old_python
    run = compat(
        tmp_path,
        *(*SIDES["refusing"], "--artifacts", str(programs / "ranker.pt2"), "--until", "correctness"),
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
def upgraded(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Programs of torch 2.6.0 in 2.15.0, which writes what 2.6.0 does not load."""
    sides = ("--old", "2.6.0", "--new", "2.15.0", "--rollback", "--until", "correctness", "--scenario", "alone")
    return compat(tmp_path_factory.mktemp("upgraded"), *sides, "--artifacts", str(programs), all_planted=False)


@pytest.mark.slow
def test_what_the_new_release_saves_of_a_program_does_not_load_in_the_old_one(upgraded: Run) -> None:
    assert [upgraded.row(name).status for name in NAMES] == [Status.PASS] * 3, upgraded.out
    rollback = upgraded.report.rollback
    assert rollback is not None
    assert (rollback.answer, rollback.method) == (RollbackAnswer.NO, "probed")
    for item in rollback.models:
        assert (item.answer, Path(item.artifact).suffix) == (RollbackAnswer.NO, ".pt2")
        assert "no item named 'version'" in item.reason
        assert item.predicted is not None and item.predicted.prediction is Prediction.FAILS


@pytest.mark.slow
def test_golden_bundles_and_records_of_programs_stand_in_for_the_old_release(
    programs: Path, upgraded: Run, tmp_path: Path
) -> None:
    bundles, project = tmp_path / "bundles", tmp_path / "project"
    packed = harness("pack", "--old", "2.6.0", "--artifacts", str(programs), "--into", str(bundles))
    assert (packed.returncode, "3 of 3 models packed" in packed.stdout) == (0, True), packed.stdout
    given = ("--new", "2.15.0", "--scenario", "alone", "--artifacts")
    by_bundles = compat(tmp_path / "by_bundles", *given, str(bundles), all_planted=False)
    project.mkdir()
    (project / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    golden = ("--project", str(project), "golden")
    assert harness(*golden, "propose", str(upgraded.folder)).returncode == 0
    assert harness(*golden, "accept", "all", "--reason", "the outputs that production serves today").returncode == 0
    by_records = ("--project", str(project), "compat", "--golden", "--out", str(tmp_path / "by_records"))
    done = harness(*by_records, *given, str(programs), all_planted=False)
    for run in (by_bundles, finished(done, tmp_path / "by_records")):
        assert run.report.old.golden, run.out
        assert [run.row(name).status for name in NAMES] == [Status.PASS] * 3, run.out
        assert {model.kind for model in run.report.models} == {ArtifactKind.PROGRAM}
        assert all(call.equal for model in run.report.models for one in model.comparisons for call in one.calls)
