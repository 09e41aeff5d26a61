"""How callers load archives: alike in both workers and releases where it works, and known where it does not."""

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.core.models import Artifact
from harness.core.outcome import Status
from harness.core.probe import LOADERS, TORCH_LOAD, ModelRun, ProbeResult, ServingProfile
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from tests.integration.gate import compat
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
MODEL = "market_ranker"


@dataclass(frozen=True)
class Stand:
    runner: ZygoteRunner
    artifact: Artifact

    def run(self, worker: str, profile: ServingProfile) -> ProbeResult:
        run = ModelRun(artifact=self.artifact, schedule=(("example", 2),))
        return self.runner(replay.asked("run", worker, profile=profile, runs=(run,)))

    def loaders(self) -> dict[str, dict[str, object]]:
        run = ModelRun(artifact=self.artifact, schedule=())
        found: dict[str, dict[str, object]] = self.runner(replay.asked("loaders", runs=(run,))).data["loaders"]
        return found


@pytest.fixture(scope="module", params=["old_workers", "new_workers"])
def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stand:
    runner: ZygoteRunner = request.getfixturevalue(request.param)
    declared = tuple(model for model in read_fixtures(PROJECT / "fixtures" / "zoo") if model.name == MODEL)
    artifact = replay.export(runner, declared)[MODEL]
    path = tmp_path_factory.mktemp("loading") / "with_extra_files.pt"
    path.write_bytes(Path(artifact.path).read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{root}/extra/labels.json", "{}")
    return Stand(runner, replace(artifact, path=str(path), digest="with extra files"))


@pytest.mark.parametrize("worker", replay.WORKERS)
def test_archive_answers_alike_however_it_is_loaded(stand: Stand, worker: str) -> None:
    results = {how: stand.run(worker, ServingProfile(load=how)) for how in LOADERS if how != TORCH_LOAD}
    assert {how: result.models[0].outcome for how, result in results.items()} == dict.fromkeys(results, "completed")
    answers = [replay.outputs(Path(result.directory)) for result in results.values()]
    assert all(answer == answers[0] for answer in answers)


def test_torch_load_is_refused_where_it_loads_weights_only(stand: Stand) -> None:
    found = stand.loaders()
    assert set(found) == set(LOADERS)
    assert {how for how, tried in found.items() if tried["error"]} <= {TORCH_LOAD}
    (result,) = stand.run("python", ServingProfile(load=TORCH_LOAD)).models
    if not found[TORCH_LOAD]["error"]:
        assert result.outcome == "completed"
        return
    assert result.outcome == "load_error"
    assert result.failure is not None and "weights_only" in result.failure.message


def test_both_kinds_of_release_are_among_those_tested(old_python: str, new_python: str) -> None:
    releases = [
        next(Path(python).parent.parent.glob("lib/python3*/site-packages/torch-*"))
        for python in (old_python, new_python)
    ]
    assert [tuple(map(int, path.name.split("-")[1].split(".")[:2])) >= (2, 6) for path in releases] == [False, True]


@pytest.mark.slow
def test_caller_of_torch_load_is_a_regression_and_its_archive_is_not_mispredicted(tmp_path: Path) -> None:
    sides = ("-k", MODEL, "--scenario", "alone", "--latency", "off")
    plain = compat(tmp_path / "plain", *sides)
    assert plain.row(MODEL).status is Status.PASS
    assert any("refuses TorchScript archives in torch.load" in note for note in plain.report.notes)
    run = compat(tmp_path / "loaded", *sides, "--profile", "torch_load")
    assert (run.row(MODEL).status, run.kinds(MODEL)) == (Status.FAIL, {"load_error"})
    assert "WRONG" not in run.out
    assert all(defect.caught for defect in run.report.judgement.planted_defects)


@pytest.mark.slow
def test_warnings_that_a_server_makes_errors_are_its_own_and_blind_no_planted_defect(tmp_path: Path) -> None:
    sides = ("--old", "2.6.0", "--new", "2.15.0", "-k", MODEL, "--scenario", "alone", "--latency", "off")
    run = compat(tmp_path, *sides, "--profile", "warnings_as_errors")
    assert (run.row(MODEL).status, run.kinds(MODEL)) == (Status.FAIL, {"load_error"})
    assert "WRONG" not in run.out
    assert all(defect.caught for defect in run.report.judgement.planted_defects)
