"""How Hypothesis runs here: as in every other test, how long something takes is no failure, and nothing is by chance.

And a machine with GPUs that are not there; and no power that fails, so nobody waits until bytes are on the disk.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.programs.nvml.machine import Machine, build

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _nobody_waits_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with our ``nvidia-smi`` and the library that it asks."""
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler here")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(tmp_path: Path, nvml: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without GPUs, until it ``has`` some."""
    found = Machine(tmp_path / "machine")
    monkeypatch.setenv("PATH", f"{nvml}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NVML_SCENARIO", str(found.scenario))
    return found
