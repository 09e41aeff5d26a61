"""Export, and saving again, as a process with a stub of torch; under Python 3.8 too, if there is one."""

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
import pytest
from harness.checks.hang import watchdog
from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest
from harness.environments.interpreters import find_pythons, verified_python
from harness.core.errors import EnvironmentUnavailable
from harness.artifacts.fixture_folders import read_fixtures, read_sources
from harness.probing.runner import ZygoteRunner
from tests.programs import stub
from harness.core.models import GivenArtifact, ModelDeclaration
from harness.core.probe import ProbeRequest, ProbeResult
from harness.artifacts.fixture_folders import read_fixtures

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
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes", watchdog)
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


def test_package_of_the_environment_itself_needs_no_folder_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    environment = stub.make_environment(tmp_path / "env")
    (site,) = (tmp_path / "env" / "lib").glob("*/site-packages")
    for name, more in (("there", ""), ("lacking", "import nowhere_to_be_found\n")):
        (site / f"{name}.py").write_text(
            more + MODELS.replace("plain", name).replace('@model("grid"', '# @model("grid"')
        )
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes", watchdog)
    try:
        results = {}
        for name in ("there", "lacking", "elsewhere"):
            (declaration,) = read_sources([site / "there.py"], site, package_root="")
            declaration = replace(declaration, module=name)
            request = ProbeRequest(
                verb="export", side="old", environment="stub", deadline=stub.PATIENT, declaration=declaration
            )
            results[name] = runner(request).models[0]
    finally:
        runner.close()
    assert results["there"].outcome is Outcome.COMPLETED
    for name, missing in (("lacking", "nowhere_to_be_found"), ("elsewhere", "elsewhere")):
        failure = results[name].failure
        assert failure is not None
        assert (failure.type, failure.phase) == ("ModuleNotFoundError", "construct")
        assert failure.message == (
            f"No module named '{missing}'; if this environment lacks it, name it in "
            "[tool.compat.environments] extras = [...]"
        )


MODEL = """
import torch
from fixtures.declare import Sample, model


@model("plain")
def make():
    return Sample(torch.nn.Module(answer=[7]), example=(1,))
"""


def asked(verb: str, declaration: ModelDeclaration) -> ProbeRequest:
    return ProbeRequest(verb=verb, side="new", environment="stub", deadline=stub.PATIENT, declaration=declaration)


def program(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".json"))
        return archive.read(name)


def test_what_is_saved_again_is_the_same_program_and_what_does_not_load_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.py").write_text(MODEL)
    (declaration,) = read_fixtures(tmp_path / "models")
    runner = ZygoteRunner({"new": stub.make_environment(tmp_path / "env")}, tmp_path / "probes", watchdog)

    def resave(path: Path) -> ProbeResult:
        return runner(asked("resave", replace(declaration, given=GivenArtifact(path=str(path)))))

    try:
        first = Path(runner(asked("export", declaration)).directory, "plain.pt")
        again = resave(first)
        refused = resave(tmp_path / "nowhere.pt")
    finally:
        runner.close()
    saved = Path(again.directory, "plain.pt")
    assert again.models[0].outcome is Outcome.COMPLETED and saved != first
    assert program(saved) == program(first)
    assert refused.models[0].outcome is Outcome.LOAD_ERROR
    assert not Path(refused.directory, "plain.pt").exists()
