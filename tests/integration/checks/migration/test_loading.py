"""Which release loads what another has written is predicted without torch, and comes true: five releases, all in all."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.core.archive import OperatorRegistry
from harness.core.environment import Environment, EnvSpec
from harness.core.prediction import Prediction
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.undeclared import compiling
from harness.environments.installer import find_uv
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registries_of
from tests.integration.gate import PROJECT

pytestmark = [pytest.mark.integration, pytest.mark.slow]
RELEASES = ("2.6.0", "2.8.0", "2.11.0", "2.13.0", "2.15.0")
SCRIPT = PROJECT / "tests" / "integration" / "checks" / "migration" / "across" / "released.py"
DEADLINE_S = 1800
LEAST = 15
"""Files that every release writes at the least."""


@pytest.fixture(scope="module")
def environments() -> dict[str, Environment]:
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda *_: None, uv=find_uv())
    specs = [compiling(EnvSpec(name=release, release=release, python="3.11")) for release in RELEASES]
    return dict(zip(RELEASES, builder.build_all(specs), strict=True))


@pytest.fixture(scope="module")
def registries(environments: dict[str, Environment]) -> dict[str, OperatorRegistry]:
    return registries_of(environments, default_environment_root())


def run(environment: Environment, *arguments: str) -> list[list[str]]:
    done = subprocess.run(
        [environment.interpreter, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def test_programs_and_packages_of_five_releases_load_where_it_is_predicted_and_nowhere_else(
    environments: dict[str, Environment], registries: dict[str, OperatorRegistry], tmp_path: Path
) -> None:
    for release, environment in environments.items():
        (tmp_path / release).mkdir()
        run(environment, "write", str(tmp_path / release))
        assert len(list((tmp_path / release).glob("*.pt2"))) >= LEAST
        assert (tmp_path / release / "plain.package.pt2").exists()
    files = sorted(str(path) for path in tmp_path.glob("*/*.pt2"))
    met: set[str] = set()
    for release, environment in environments.items():
        said = dict(run(environment, "load", *files))
        assert sorted(said) == files
        for path, failure in said.items():
            verdict = inspect_file(path, {"new": registries[release]}).verdicts["new"]
            expected = Prediction.FAILS if failure else Prediction.LOADS
            assert verdict.prediction is expected, (release, path, failure, verdict.findings)
            met.update(finding.kind for finding in verdict.findings)
    assert {"container_unknown", "function_missing", "result_of_before_2_8", "value_unknown"} <= met
