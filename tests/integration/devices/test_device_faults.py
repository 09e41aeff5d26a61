"""Each fault of a device is found in twenty of twenty models in each release, and in none of the healthy ones.

The device is the fake accelerator; the models were made on the CPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Status
from harness.core.errors import ExitCode
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.devices.test_device_outside_torch import CONFIGURATION
from tests.integration.devices.test_fake_accelerator import RELEASES, interpreter
from tests.programs import cli, stub

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("accelerator") / "models.py"
COPIES = 20  # of each model that the program writes; each is a process of its own, with a fault of its own
# Profile of the new side -> (what makes the fault, the kind of finding that each of the models must end in). Kernels are
# slow, so that who does not wait is always too early; the first ones, and the first allocations, belong to the load. What
# ends no process is met again and again: models that share one must meet it, too.
SLOW = "FAKEDEV_LATENCY_US=20000"
FAULTS = {
    "missing_synchronization": (f"FAKEDEV_FAULT=unsynchronized_copy:2+ {SLOW}", "nan_placement"),
    "wrong_device": ("load=no_map_location", "call_error"),  # the files were made on the CPU
    "late_error_of_a_load": ("FAKEDEV_FAULT=late_error:1", "load_error"),
    "late_error_of_a_call": ("FAKEDEV_FAULT=late_error:8", "call_error"),
    "hang": ("FAKEDEV_FAULT=hang:8", "hang"),
    "lost": ("FAKEDEV_FAULT=lost:8", "call_error"),
    "out_of_memory": ("FAKEDEV_FAULT=out_of_memory:2", "out_of_memory"),
}
# The device as torch.cuda is where the driver is older than what a release was built for.
TOO_OLD = """
import importlib.util, sys

spec = importlib.util.spec_from_file_location("fakedev", "{module}")
fakedev = sys.modules["fakedev"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fakedev)


def refuse(*_):
    raise RuntimeError("The driver on your system is too old (found version 11040)")


fakedev.get_device_name = fakedev.init = refuse
fakedev.is_available = lambda: False
"""
LOST = "lost"  # once the project has such a file, the device of the profile vanishing is gone


@pytest.fixture(scope="module", params=["shared", "apart"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose environments bring the device, with a profile for each fault; models share processes, or do not."""
    contexts = str(request.param == "shared").lower()
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION.replace("contexts = true", f"contexts = {contexts}")
    for release in RELEASES:
        library = build(interpreter(release), default_environment_root() / "native") / "fakedev.py"
        text += f'\n[tool.compat.environments."{release}"]\nlibraries = ["{library}"]\n'
    folder = tmp_path_factory.mktemp("project")
    text += f'\n[tool.compat.serving.profiles.vanishing]\nenv = {{ FAKEDEV_LOST_FILE = "{folder / LOST}" }}\n'
    for name, (fault, _) in FAULTS.items():
        words = dict(word.split("=") for word in fault.split())
        load = f'load = "{words.pop("load")}"' if "load" in words else ""
        env = ", ".join(f'{key} = "{value}"' for key, value in words.items())
        text += f"\n[tool.compat.serving.profiles.{name}]\n{load}\nenv = {{ {env} }}\n"
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.fixture(scope="module", params=RELEASES)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a release, and a folder of models that it has made on the CPU."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([interpreter(request.param), "-s", str(PROGRAM), str(folder)], check=True, timeout=120)
    return request.param, folder


def given(project: Path, reports: Path, old: str, new: str, *words: str) -> tuple[str, ...]:
    """Return the words of a run there; ``words``: which models, and further options."""
    sides = ("--project", str(project), "compat", "--old", old, "--new", new, "--device", "fakedev")
    return (*sides, "--allow-same-torch", "--latency", "off", "--deadline", "3", "--out", str(reports), *words)


def on_the_device(project: Path, reports: Path, old: str, new: str, *words: str) -> Run:
    """Run models there to the end; arguments as ``given``."""
    return finished(harness(*given(project, reports, old, new, *words), timeout_s=900), reports)


def kinds(run: Run, models: str) -> list[set[str]]:
    """Return what was found of each of the models of a kind."""
    return [run.kinds(row.model) for row in run.report.judgement.rows if row.model.startswith(models)]


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_the_device_on_the_new_side_blocks_every_time_and_is_named(
    project: Path, models: tuple[str, Path], tmp_path: Path, name: str
) -> None:
    release, folder = models
    jobs = ("--jobs", "4") if name == "hang" else ()  # who hangs computes nothing
    words = ("--artifacts", str(folder), "-k", "mixing", "--scenario", "alone", "--new-profile", name, *jobs)
    run = on_the_device(project, tmp_path, release, release, *words)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    found = kinds(run, "mixing")  # what reads answers back too early reads inputs back too early, too
    assert (len(found), sum(FAULTS[name][1] in one for one in found)) == (COPIES, COPIES), run.out


def test_dead_captures_are_found_every_time_and_nothing_is_found_of_healthy_models(
    project: Path, models: tuple[str, Path], tmp_path: Path
) -> None:
    release, folder = models
    words = ("--artifacts", str(folder), "-k", "not placing", "--scenario", "alone", "--scenario", "cuda_graphs")
    run = on_the_device(project, tmp_path, release, release, *words)
    assert kinds(run, "selecting") == [{"capture_error"}] * COPIES, run.out
    assert [*kinds(run, "mixing"), *kinds(run, "weighting")] == [set()] * (2 * COPIES), run.out


def test_model_that_runs_on_the_cpu_alone_is_named_and_never_passes(
    project: Path, models: tuple[str, Path], tmp_path: Path
) -> None:
    release, folder = models
    words = ("--artifacts", str(folder), "-k", "placing", "--scenario", "alone")
    run = on_the_device(project, tmp_path, release, release, *words)
    (row,) = run.report.judgement.rows
    assert row.status is not Status.PASS
    assert run.report.judgement.decision is not Decision.UPGRADE_OK
    assert "Expected all tensors to be on the same device" in row.reason


def test_device_that_vanishes_in_the_midst_of_a_run_is_named_and_never_green(
    project: Path, models: tuple[str, Path], tmp_path: Path
) -> None:
    release, folder = models
    words = ("--artifacts", str(folder), "-k", "mixing", "--scenario", "alone", "--profile", "vanishing")
    line = given(project, tmp_path, release, release, *words)
    env = {**os.environ, ROOT_VARIABLE: str(default_environment_root())}
    process = cli.started([sys.executable, "-m", "harness", *line], env)
    try:
        assert stub.eventually(lambda: len(list(tmp_path.glob("*/probes/*"))) > COPIES, within_s=120)
    finally:
        (project / LOST).touch()
    try:
        run = finished(cli.finish(process), tmp_path)
    finally:
        (project / LOST).unlink()
    assert run.report.judgement.decision is not Decision.UPGRADE_OK, run.out
    red = [row for row in run.report.judgement.rows if row.status is not Status.PASS]
    assert red
    assert all("the device is lost" in row.reason for row in red), run.out


def test_driver_that_is_too_old_for_one_side_alone_ends_the_run_and_names_the_side(tmp_path: Path) -> None:
    old, new = RELEASES[1:]
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION
    for release in (old, new):
        library = build(interpreter(release), default_environment_root() / "native") / "fakedev.py"
        if release == new:
            (tmp_path / "too_old.py").write_text(TOO_OLD.format(module=library))
            library = tmp_path / "too_old.py"
        text += f'\n[tool.compat.environments."{release}"]\nlibraries = ["{library}"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    models = ("--fixtures", str(PROJECT / "fixtures" / "zoo"), "-k", "two_tower and not served")
    done = harness(*given(tmp_path, tmp_path / "reports", old, new, *models))
    assert done.returncode == ExitCode.ENVIRONMENT, done.stdout + done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert said.startswith(f"error: torch {new} sees no fakedev; ")
    assert not list((tmp_path / "reports").glob("*/report.json"))
