"""Why a model has no bundle, in words; and what is refused before anything starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.commands.options import Options
from harness.commands.pack import _why_not, pack
from harness.domain.fixture import GivenArtifact
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure, ModelResult
from harness.errors import ConfigError
from harness.numerics.outputs import Outputs
from harness.runtime.progress import Progress
from harness.stages.facts import Baseline, Export
from tests.unit.runtime.builders import declaration, float32, golden_outputs, write_artifact
from tests.unit.runtime.bundles import make_bundle

COMPLETED = ModelResult(model="m", outcome=Outcome.COMPLETED)
HEALTHY = Baseline(results=(COMPLETED, COMPLETED), golden=golden_outputs(float32(1)))


def why(export: Export, baseline: Baseline = HEALTHY) -> str:
    return _why_not(export, baseline, "torch 2.1.2")


def exported(folder: Path, **changes: Any) -> Export:
    return Export(declaration=declaration(), outcome=Outcome.COMPLETED, artifact=write_artifact(folder, **changes))


def test_a_model_that_answers_is_packed(tmp_path: Path) -> None:
    assert why(exported(tmp_path)) == ""


@pytest.mark.parametrize(("given", "verb"), [(None, "exported"), (GivenArtifact(path="/x/m.pt"), "taken over")])
def test_a_failed_export_says_what_failed(given: GivenArtifact | None, verb: str) -> None:
    failure = Failure(type="ValueError", message="no such layer", phase="construct")
    export = Export(declaration=declaration(given=given), outcome=Outcome.EXPORT_ERROR, failure=failure)
    assert why(export) == f"could not be {verb}: ValueError: no such layer"
    assert why(replace(export, failure=None, outcome=Outcome.CRASH)) == f"could not be {verb}: crash"


def test_one_failing_repeat_is_enough(tmp_path: Path) -> None:
    hang = ModelResult(model="m", outcome=Outcome.HANG, phase="call")
    text = why(exported(tmp_path), replace(HEALTHY, results=(COMPLETED, hang)))
    assert text == "hangs in call in torch 2.1.2, alone"


def test_a_model_that_was_never_called_has_nothing_to_pack(tmp_path: Path) -> None:
    export = exported(tmp_path, input_sets=(), inputs_note="nothing tells the keys of y")
    nothing = Baseline(results=(COMPLETED,), golden=Outputs(calls={}))
    assert why(export, nothing) == "it was never called: nothing tells the keys of y"


def test_a_bundle_is_not_packed_again(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    options = Options(project=tmp_path, overrides={"old": "2.1.2", "artifacts": (str(path),)}, artifacts=(str(path),))
    with pytest.raises(ConfigError, match=r"m\.gate is a golden bundle already"):
        pack(options, tmp_path / "into", Progress(enabled=False))
    assert not (tmp_path / "into").exists()
