"""Interpreters with real torch, built once for the whole session, and what every module asks alike.

Under xdist the builder's lock lets one worker build while the others wait. They live in the project's environment
root; ``TORCHSCRIPT_GATE_ENVS`` names another one.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons
from harness.environments.pythons import choose_python
from harness.environments.undeclared import compiling
from harness.probing.runner import ZygoteRunner
from tests.programs import kept_zygotes
from tests.worker.transcripts import replay

PROJECT = Path(__file__).parents[2]
GIVEN = Path(__file__).parent / "artifacts" / "given"
OLD, NEW, LATEST = "2.1.2", "2.6.0", "2.15.0"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def _interpreter(release: str, *, compiles: bool = False) -> str:
    root = default_environment_root()
    builder = EnvironmentBuilder(root, progress=lambda name, text: None, uv=find_uv())
    python = choose_python([OLD, NEW], list(find_pythons()))  # as for a run of the pair, whatever runs the tests
    spec = EnvSpec(name=f"torch {release}", release=release, python=python)
    return builder.build(compiling(spec) if compiles else spec).interpreter


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium without a window, ended with the module: it must not wait beside tests of time."""
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail(f"no {', '.join(CHROMIUM)} here: apt-get install -y --no-install-recommends chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])  # root has no sandbox
        yield browser
        browser.close()


@pytest.fixture(scope="session", autouse=True)
def _zygotes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """With ``--keep-zygotes``, runs that need the same import of torch share it."""
    if not request.config.getoption("--keep-zygotes"):
        yield
        return
    with kept_zygotes.kept(tmp_path_factory.mktemp("zygotes"), default_environment_root()):
        yield


@pytest.fixture(scope="session")
def old_python() -> str:
    """The interpreter of an environment with torch 2.1.2."""
    return _interpreter(OLD)


@pytest.fixture(scope="session")
def new_python() -> str:
    """The interpreter of an environment with torch 2.6.0."""
    return _interpreter(NEW)


@pytest.fixture(scope="session")
def latest_python() -> str:
    """The interpreter of an environment with torch 2.15.0."""
    return _interpreter(LATEST)


@pytest.fixture(scope="session")
def programs(new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that torch 2.6.0 has written."""
    out = tmp_path_factory.mktemp("programs")
    subprocess.run([new_python, "-s", "-W", "ignore", str(GIVEN / "exported.py"), str(out)], timeout=240, check=True)
    return out


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages that torch 2.6.0 has compiled, for about a minute."""
    out = tmp_path_factory.mktemp("packages")
    python = _interpreter(NEW, compiles=True)
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(out / "cache")}
    words = [python, "-s", "-W", "ignore", str(GIVEN / "packaged.py"), str(out)]
    subprocess.run(words, env=environment, timeout=600, check=True)
    return out


@pytest.fixture(scope="session")
def old_workers(old_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZygoteRunner]:
    """Both workers of torch 2.1.2; what two modules ask alike is asked once."""
    with replay.both_workers(old_python, tmp_path_factory.mktemp("probes")) as runner:
        yield runner


@pytest.fixture(scope="session")
def new_workers(new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZygoteRunner]:
    """Both workers of torch 2.6.0; what two modules ask alike is asked once."""
    with replay.both_workers(new_python, tmp_path_factory.mktemp("probes")) as runner:
        yield runner
