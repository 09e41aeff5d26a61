"""A real torch release, installed once by the real uv into the project's environment root."""

import subprocess
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv

PROJECT = Path(__file__).parents[3]
SPEC = EnvSpec(name="torch 2.6.0", release="2.6.0")

pytestmark = pytest.mark.integration


def build() -> Environment:
    root = default_environment_root()
    return EnvironmentBuilder(root, progress=lambda name, text: None, uv=find_uv()).build(SPEC)


def distributions(environment: Environment) -> dict[str, str]:
    code = "from importlib import metadata\nfor d in metadata.distributions(): print(d.metadata['Name'], d.version)"
    command = [environment.interpreter, "-I", "-c", code]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return dict(line.lower().split() for line in listed.splitlines())


def test_second_build_reinstalls_nothing() -> None:
    marker = Path(build().interpreter).parents[1] / "environment.json"
    before = marker.stat().st_mtime_ns
    again = build()
    assert marker.stat().st_mtime_ns == before
    assert again.built_s == 0.0


def test_environment_holds_torch_and_nothing_it_does_not_need() -> None:
    found = distributions(build())
    assert found["torch"].startswith("2.6.0")
    assert not {"numpy", "pip", "setuptools"} & set(found)
