"""What tests share: their order, signals as in a terminal, and environments with stubs of torch.

What they build lies in the checkout, not in the cache of who runs them, unless ``TORCHSCRIPT_GATE_ENVS`` says where.
No answer of one test is another's: what is kept of answers is nothing, but where a test says how much.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.environments.builder import ROOT_VARIABLE
from harness.probing.kept_answers import SIZE_VARIABLE
from tests.programs import stub

if not os.environ.get(ROOT_VARIABLE):  # as in noxfile.py
    os.environ[ROOT_VARIABLE] = str(stub.PROJECT / ".nox" / "environments")
os.environ[SIZE_VARIABLE] = "0"
os.environ.pop("CI", None)  # commands are printed as for a checkout there, and a line of progress waits longer

LONG = (
    "integration/checks/startup/test_initialization.py",
    "integration/checks/prediction/test_corpus.py",
    "integration/report/test_page.py",
    "integration/run/test_compat.py",
    "integration/checks/prediction/test_inspect.py",
    "integration/search/test_bisect.py",
    "integration/run/test_documented_commands.py",
    "integration/artifacts/test_hostile_files.py",
    "integration/checks/startup/test_planted_startup_defects.py",
    "integration/run/test_breaks.py",
    "integration/checks/prediction/test_genuine.py",
    "integration/artifacts/test_requests.py",
    "integration/artifacts/test_programs.py",
    "integration/worker/test_native_worker.py",
    "integration/apps/fleet/test_fleet.py",
    "integration/checks/migration/test_migrate.py",
    "integration/artifacts/test_seeded_corpus.py",
    "integration/artifacts/test_libraries.py",
    "integration/report/test_fleet_page.py",
    "integration/artifacts/test_adopting.py",
    "integration/run/test_kill_storm.py",
    "integration/artifacts/test_own_models.py",
    "integration/run/test_interruption.py",
    "integration/run/test_resume.py",
    "integration/search/test_first_bad.py",
    "integration/search/test_reduction.py",
    "integration/apps/golden/test_golden_bundles.py",
    "unit/probing/test_runner.py",
    "unit/search/reproduce/test_files.py",
    "unit/environments/test_builder.py",
    "unit/checks/hang/test_watchdog.py",
    "unit/checks/hang/test_proof.py",
    "unit/serving/test_scenarios.py",
    "unit/apps/golden/test_records.py",
    "unit/apps/doctor/test_gpus.py",
    "unit/worker/test_script.py",
    "unit/checks/startup/test_regression_or_not.py",
    "unit/checks/latency/test_round.py",
    "unit/plugin/test_items.py",
    "unit/apps/upgrade/test_execute.py",
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
    """Begin with the files of ``LONG``, then those with the most tests; a file stays together.

    Raises:
        pytest.UsageError: a file of ``LONG`` is gone: without it the order is silently another one.
    """
    gone = [name for name in LONG if not Path(__file__).parent.joinpath(name).is_file()]
    if gone:
        raise pytest.UsageError(f"LONG in {__file__} names {', '.join(gone)}, which are not there: name where they are")
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
