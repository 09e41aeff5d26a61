"""What tests share: their order, signals as in a terminal, and environments with stubs of torch."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.environment import Environment
from tests.programs import stub

LONG = (
    "integration/startup/test_initialization.py",
    "integration/static/test_corpus.py",
    "integration/report/test_page.py",
    "integration/run/test_compat.py",
    "integration/static/test_inspect.py",
    "integration/diagnosis/test_bisect.py",
    "integration/run/test_documented_commands.py",
    "integration/models/test_hostile_files.py",
    "integration/startup/test_planted_startup_defects.py",
    "integration/run/test_breaks.py",
    "integration/static/test_genuine.py",
    "integration/models/test_requests.py",
    "integration/models/test_programs.py",
    "integration/worker/test_native_worker.py",
    "integration/fleet/test_fleet.py",
    "integration/successor/test_migrate.py",
    "integration/models/test_seeded_corpus.py",
    "integration/models/test_libraries.py",
    "integration/report/test_fleet_page.py",
    "integration/models/test_adopting.py",
    "integration/run/test_kill_storm.py",
    "integration/models/test_own_models.py",
    "integration/run/test_interruption.py",
    "integration/run/test_resume.py",
    "integration/releases/test_first_bad.py",
    "integration/diagnosis/test_reduction.py",
    "integration/golden/test_golden_bundles.py",
    "unit/probing/test_runner.py",
    "unit/diagnosis/reproduce/test_files.py",
    "unit/hang/test_watchdog.py",
    "unit/latency/test_round.py",
    "unit/run/test_execute.py",
    "unit/environments/test_builder.py",
)
"""Files that take longest, and those longest first: what begins late keeps one core alone at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what makes the tests of real torch shorter."""
    parser.addoption(
        "--keep-zygotes",
        action="store_true",
        help="tests on real torch: runs that need the same import of torch share one process that has it",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of ``LONG``, then those with the most tests; a file stays together."""
    places = {f"tests/{name}": place for place, name in enumerate(LONG)}
    files = {item: item.nodeid.partition("::")[0] for item in items}
    tests = Counter(files.values())
    items.sort(key=lambda item: (places.get(files[item], len(LONG)), -tests[files[item]], files[item]))


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
