"""Why a model has no bundle, in words; and what is refused before anything starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.apps.pack import pack
from harness.project import Project
from harness.apps.pack.pack import _why_not, pack as pack_pack
from harness.core.models import GivenArtifact
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.probe import Failure, ModelResult
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.probing.facts import OldAnswers, Export, Decided
from harness.store.run_folder import RunDir
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.archives import torchscript
from tests.unit.builders.requests import declaration, float32, golden_outputs, write_artifact
from tests.unit.builders.bundles import make_bundle

COMPLETED = ModelResult(model="m", outcome=Outcome.COMPLETED)
HEALTHY = OldAnswers(results=(COMPLETED, COMPLETED), golden=golden_outputs(float32(1)))


def why(export: Export, baseline: OldAnswers = HEALTHY) -> str:
    return _why_not(export, baseline, "torch 2.1.2")


def exported(folder: Path, **changes: Any) -> Export:
    return Export(declaration=declaration(), outcome=Outcome.COMPLETED, artifact=write_artifact(folder, **changes))


def test_a_model_that_answers_is_packed(tmp_path: Path) -> None:
    assert why(exported(tmp_path)) == ""


@pytest.mark.parametrize(("given", "verb"), [(None, "exported"), (GivenArtifact(path="/x/m.pt"), "taken over")])
def test_a_failed_export_says_what_failed(given: GivenArtifact | None, verb: str) -> None:
    failure = Failure(type="ValueError", message="no such layer", phase="save")
    export = Export(declaration=declaration(given=given), outcome=Outcome.EXPORT_ERROR, failure=failure)
    assert why(export) == f"could not be {verb}: ValueError: no such layer"
    assert why(replace(export, failure=None, outcome=Outcome.CRASH)) == f"could not be {verb}: crash"


def test_one_failing_repeat_is_enough(tmp_path: Path) -> None:
    hang = ModelResult(model="m", outcome=Outcome.HANG, phase="call")
    text = why(exported(tmp_path), replace(HEALTHY, results=(COMPLETED, hang)))
    assert text == "hangs in call in torch 2.1.2, alone"


def test_a_model_that_was_never_called_has_nothing_to_pack(tmp_path: Path) -> None:
    export = exported(tmp_path, input_sets=(), inputs_note="nothing tells the keys of y")
    nothing = OldAnswers(results=(COMPLETED,), golden=Outputs(calls={}))
    assert why(export, nothing) == "it was never called: nothing tells the keys of y"


class Ended:
    """An old release that ends the packing, with or without a first process."""

    def __init__(self, *, asked: bool) -> None:
        self.asked = asked

    def __call__(self, _plan: Plan, _specs: object, run_dir: RunDir, _project: Project) -> Decided:
        if self.asked:
            (run_dir.probes / "zygote-old-0").mkdir(parents=True)
        raise EnvironmentUnavailable(f"no answer; full output in {run_dir.probes}/zygote-old-0", "look there")


@pytest.mark.parametrize("asked", [True, False])
def test_what_an_error_points_to_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, asked: bool) -> None:
    monkeypatch.setattr(pack, "provisioned", Ended(asked=asked))
    (tmp_path / "m.pt").write_bytes(torchscript())
    files = (str(tmp_path / "m.pt"),)
    options = Project(folder=tmp_path, overrides={"old": "2.1.2", "artifacts": files}, artifacts=files)
    with pytest.raises(EnvironmentUnavailable):
        pack_pack(options, tmp_path / "into")
    runs = list((tmp_path / "reports").glob("2*"))
    assert len(runs) == asked
    assert all((run / "probes" / "zygote-old-0").is_dir() for run in runs)


def test_a_bundle_is_not_packed_again(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    options = Project(folder=tmp_path, overrides={"old": "2.1.2", "artifacts": (str(path),)}, artifacts=(str(path),))
    with pytest.raises(ConfigError, match=r"m\.gate is a golden bundle already"):
        pack_pack(options, tmp_path / "into")
    assert not (tmp_path / "into").exists()
