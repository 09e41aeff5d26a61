"""The exporter as a process, with a stub of torch; under Python 3.8 too, if there is one."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeRequest
from harness.errors import EnvironmentUnavailable
from harness.runtime.fixture_files import read_fixtures
from harness.runtime.interpreters import find_pythons, verified_python
from harness.runtime.probe_runner import ZygoteRunner
from tests.programs import stub

MODELS = """
import torch
from fixtures.declare import Sample, model


@model("plain")
@model("grid", grid={"answer": (1e-07, True, "x y"), "times": (2,)})
def make(answer=1, *, times=1):
    return Sample(torch.nn.Module(answer=[answer] * times), example=(1,))
"""


@pytest.mark.parametrize("minor", ["3.8", f"{sys.version_info.major}.{sys.version_info.minor}"])
def test_factory_is_called_with_the_arguments_of_its_combination(tmp_path: Path, minor: str) -> None:
    try:
        python = verified_python(minor, find_pythons())
    except EnvironmentUnavailable as error:
        pytest.skip(f"no Python {minor} here: {error}")
    environment = stub.make_environment(tmp_path / "env", python=python, minor=minor)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "grids.py").write_text(MODELS)
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes")
    answers = {}
    try:
        for declaration in read_fixtures(tmp_path / "models"):
            result = runner(
                ProbeRequest(
                    verb="export", side="old", environment="stub", deadline=stub.PATIENT, declaration=declaration
                )
            )
            assert result.outcome is Outcome.COMPLETED, result
            with zipfile.ZipFile(Path(result.directory, f"{declaration.name}.pt")) as archive:
                (program,) = (name for name in archive.namelist() if name.endswith(".json"))
                answers[declaration.name] = json.loads(archive.read(program))["answer"]
    finally:
        runner.close()
    assert answers == {"plain": [1], "grid_1e_07_2": [1e-07] * 2, "grid_True_2": [True] * 2, "grid_x_y_2": ["x y"] * 2}
