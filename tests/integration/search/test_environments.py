"""A real torch release, installed once by the real uv into the project's environment root."""

import subprocess
from pathlib import Path

import pytest

from harness.core.environment import AUTO_BACKEND, EnvSpec, Environment
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.environments.torch_backends import common_build

PROJECT = Path(__file__).parents[3]
SPEC = EnvSpec(name="torch 2.6.0", release="2.6.0")

pytestmark = pytest.mark.integration


def builder(root: Path) -> EnvironmentBuilder:
    return EnvironmentBuilder(root, progress=lambda name, text: None, uv=find_uv())


def build() -> Environment:
    return builder(default_environment_root()).build(SPEC)


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


def test_a_ready_made_interpreter_with_cuda_gets_no_build_for_cpus_beside_it(tmp_path: Path) -> None:
    """The build of the registry, whose version names none."""
    ready = EnvSpec(name="prod", interpreter=build().interpreter)
    beside = EnvSpec(name="torch 2.1.2", release="2.1.2", python="3.11", torch_backend=AUTO_BACKEND)
    empty = EnvironmentBuilder(tmp_path, progress=lambda *_: None, note=notes_of_index, uv=find_uv())
    assert common_build([ready, beside], empty) == "default"


def notes_of_index(text: str) -> None:
    pytest.fail(f"an index was asked: {text}")
