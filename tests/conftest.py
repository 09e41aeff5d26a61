"""Environments that tests share: stubs of torch for process handling."""

from pathlib import Path

import pytest

from harness.domain.environment import Environment
from tests.programs import stub


@pytest.fixture(scope="session")
def stub_environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A real interpreter whose torch is the stub, as release 2.1.2."""
    return stub.make_environment(tmp_path_factory.mktemp("stub") / "old", version="2.1.2")


@pytest.fixture(scope="session")
def other_stub_environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The same as release 2.6.0."""
    return stub.make_environment(tmp_path_factory.mktemp("stub") / "new", version="2.6.0")


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """Where a test writes its artifacts."""
    return tmp_path / "artifacts"
