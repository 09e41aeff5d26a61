"""A graph that another thread's allocation ends, on the fake accelerator: seen in mode ``global``, and cured by ``mitigate``."""

import json
from pathlib import Path

import pytest

from harness.environments.builder import default_environment_root
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.test_device_outside_torch import CONFIGURATION
from tests.integration.test_fake_accelerator import interpreter

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RELEASE = "2.6.0"
CURE = "thread-local capture"
FIXTURES = PROJECT / "fixtures" / "planted" / "cuda"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one release whose new side has a profile in which the planted model takes memory."""
    library = build(interpreter(RELEASE), default_environment_root(PROJECT) / "native") / "fakedev.py"
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION
    text += f'\n[tool.compat.environments."{RELEASE}"]\nlibraries = ["{library}"]\n'
    text += "\n[tool.compat.serving.profiles.growing]\nnumerics = { flush_denormal = true }\n"
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(text)
    return folder


def words(project: Path, reports: Path, mode: str) -> tuple[str, ...]:
    sides = ("--old", RELEASE, "--new", RELEASE, "--allow-same-torch", "--new-profile", "growing")
    where = ("--device", "fakedev", "--scenario", "cuda_graphs", "--capture-mode", mode, "--out", str(reports))
    return ("--project", str(project), "compat", *sides, *where, "--fixtures", str(FIXTURES), "--latency", "off")


@pytest.mark.parametrize(("mode", "kinds"), [("global", {"capture_error"}), ("thread_local", set())])
def test_memory_that_another_model_takes_ends_captures_of_mode_global_alone(
    project: Path, tmp_path: Path, mode: str, kinds: set[str]
) -> None:
    run: Run = finished(harness(*words(project, tmp_path, mode), timeout_s=900), tmp_path)
    assert run.kinds("graph_steady") == kinds, run.out + run.err
    if mode != "global":
        return
    (failed,) = (cell.cell for cell in run.row("graph_steady").cells if cell.findings)
    sought = (str(run.folder), failed, "--latency", "off", "--out", str(tmp_path))
    done = harness("--project", str(project), "mitigate", *sought, timeout_s=900)
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = tmp_path.glob("*/mitigate.json")
    cures = [cure for cure in json.loads(found.read_text())["cures"] if cure["cures"]]
    assert [CURE] in [cure["names"] for cure in cures], done.stdout + done.stderr
