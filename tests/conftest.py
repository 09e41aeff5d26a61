"""What tests share: signals as in a terminal, and environments with stubs of torch for process handling."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.domain.environment import Environment
from tests.programs import stub


@pytest.fixture(scope="session", autouse=True)
def _signals_as_in_a_terminal() -> Iterator[None]:
    """Behind ``nohup``, ``&`` or a supervisor some are ignored or blocked, here and in all that tests start."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in numbers]
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before:
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


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
