"""The zoo's models of served size: they are exported in both releases, stay small on disk and answer sanely."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.probe import ModelRun
from harness.checks.hang import watchdog
from harness.artifacts.adopted import uncovered
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.artifacts.tensors.decode import decode
from harness.artifacts.tensors.recorded import read_outputs
from harness.artifacts.tensors.trees import leaves
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

SERVED = read_fixtures(Path(__file__).resolve().parents[3] / "fixtures" / "zoo" / "served")
MB = 1_000_000


def floats(directory: str, model: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return all floating numbers that each input set was answered with."""
    outputs = read_outputs(directory, model)
    decoded = {
        key[0]: [decode(spec, outputs.buffer) for _, spec in leaves(tree)] for key, tree in outputs.calls.items()
    }
    return {
        name: np.concatenate([item.values.ravel() for item in found if item.dtype == "float32"])
        for name, found in decoded.items()
    }


@pytest.fixture(params=["old_python", "new_python"])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ZygoteRunner]:
    spec = EnvSpec(name="here")
    environment = Environment(name="here", interpreter=request.getfixturevalue(request.param), spec=spec)
    runner = ZygoteRunner({"old": environment}, tmp_path, watchdog)
    yield runner
    runner.close()


@pytest.mark.slow
def test_they_are_exported_and_answer_with_numbers_that_a_tolerance_means_something_for(runner: ZygoteRunner) -> None:
    artifacts = replay.export(runner, SERVED)
    sizes = {name: artifact.size_bytes for name, artifact in artifacts.items()}
    assert max(sizes.values()) < 120 * MB and sum(sizes.values()) < 600 * MB, sizes
    for declaration in SERVED:
        artifact = artifacts[declaration.name]
        assert len(artifact.input_sets) >= 2, declaration.name
        assert uncovered(declaration, artifact) == (), declaration.name
        schedule = tuple((input_set.name, 1) for input_set in artifact.input_sets)
        result = runner(replay.asked("run", runs=(ModelRun(artifact=artifact, schedule=schedule),)))
        assert result.models[0].load_ns is not None, result
        assert len(read_outputs(result.directory, declaration.name).buffer) < 2 * MB, declaration.name
        for input_set, values in floats(result.directory, declaration.name).items():
            where = (declaration.name, input_set)
            assert np.isfinite(values).all(), where
            assert 0.05 < np.abs(values).max() < 1e3, where
            assert len(np.unique(values)) > 0.4 * values.size, where
