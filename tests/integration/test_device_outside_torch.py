"""Whole runs on a device that torch does not have: the fake accelerator, healthy and with each fault that servers meet.

Each fault is met by twenty processes of the gate in each release, and by none of the healthy twins.
"""

import subprocess
from pathlib import Path

import pytest

from harness.domain.outcome import Decision, Outcome
from harness.environments.builder import default_environment_root
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.test_fake_accelerator import RELEASES, interpreter

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OLD, NEW = "2.1.2", "2.6.0"
PROGRAM = Path(__file__).with_name("accelerator") / "models.py"
COPIES = 20  # of each model that the program writes: each is a process of its own, with a fault of its own
# Profile of the new side -> (what makes the fault, the kind of finding that each of the models must end in). Kernels are
# slow, so that who does not wait is always too early; the first ones, and the first allocations, belong to the load.
SLOW = "FAKEDEV_LATENCY_US=20000"
FAULTS = {
    "missing_synchronization": (f"FAKEDEV_FAULT=unsynchronized_copy:2 {SLOW}", "values"),
    "wrong_device": ("load=no_map_location", "call_error"),  # the files were made on the CPU
    "late_error_of_a_load": ("FAKEDEV_FAULT=late_error:1", "load_error"),
    "late_error_of_a_call": ("FAKEDEV_FAULT=late_error:8", "call_error"),
    "hang": ("FAKEDEV_FAULT=hang:8", "hang"),
    "lost": ("FAKEDEV_FAULT=lost:8", "call_error"),
    "out_of_memory": ("FAKEDEV_FAULT=out_of_memory:2", "out_of_memory"),
}
CONFIGURATION = """
[tool.compat.devices.fakedev]
streams = true
events = true
memory = true
graphs = true
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose environments bring the device, with a profile for each fault."""
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION
    for release in RELEASES:
        library = build(interpreter(release), default_environment_root(PROJECT) / "native") / "fakedev.py"
        text += f'\n[tool.compat.environments."{release}"]\nlibraries = ["{library}"]\n'
    for name, (fault, _) in FAULTS.items():
        words = dict(word.split("=") for word in fault.split())
        load = f'load = "{words.pop("load")}"' if "load" in words else ""
        env = ", ".join(f'{key} = "{value}"' for key, value in words.items())
        text += f"\n[tool.compat.serving.profiles.{name}]\n{load}\nenv = {{ {env} }}\n"
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.fixture(scope="module", params=RELEASES)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a release, and a folder of models that it has made on the CPU."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([interpreter(request.param), "-s", str(PROGRAM), str(folder)], check=True, timeout=120)
    return request.param, folder


def on_the_device(project: Path, reports: Path, old: str, new: str, *words: str) -> Run:
    """Run models there; ``words``: which, and further options."""
    sides = ("--project", str(project), "compat", "--old", old, "--new", new, "--device", "fakedev")
    done = harness(*sides, "--latency", "off", "--deadline", "3", "--out", str(reports), *words, timeout_s=900)
    return finished(done, reports)


def kinds(run: Run, models: str) -> list[set[str]]:
    """Return what was found of each of the models of a kind."""
    return [run.kinds(row.model) for row in run.report.judgement.rows if row.model.startswith(models)]


def test_healthy_model_passes_there_with_captures_and_no_report_says_gpu(project: Path, tmp_path: Path) -> None:
    scenarios = ("--scenario", "alone", "--scenario", "concurrent", "--scenario", "cuda_graphs")
    models = ("--fixtures", str(PROJECT / "fixtures" / "zoo"), "-k", "two_tower and not served")
    run = on_the_device(project, tmp_path, OLD, NEW, *models, *scenarios)
    assert run.code == 0, run.out + run.err
    assert run.report.judgement.decision is Decision.UPGRADE_OK
    assert run.report.device == "fakedev"
    assert all(planted.caught for planted in run.report.judgement.planted_defects)
    assert {model.concurrent for model in run.report.models} == {Outcome.COMPLETED}
    assert {cell.scenario for row in run.report.judgement.rows for cell in row.cells} >= {"alone", "cuda_graphs"}
    fingerprint = run.report.new.fingerprint
    assert fingerprint is not None and not fingerprint.gpu
    assert "GPU" not in run.out


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_the_device_on_the_new_side_blocks_every_time_and_is_named(
    project: Path, models: tuple[str, Path], tmp_path: Path, name: str
) -> None:
    release, folder = models
    given = ("--artifacts", str(folder), "-k", "mixing", "--scenario", "alone", "--allow-same-torch")
    run = on_the_device(project, tmp_path, release, release, *given, "--new-profile", name)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    assert kinds(run, "mixing") == [{FAULTS[name][1]}] * COPIES, run.out


def test_dead_captures_are_found_every_time_and_nothing_is_found_of_healthy_models(
    project: Path, models: tuple[str, Path], tmp_path: Path
) -> None:
    release, folder = models
    given = ("--artifacts", str(folder), "--scenario", "alone", "--scenario", "cuda_graphs", "--allow-same-torch")
    run = on_the_device(project, tmp_path, release, release, *given)
    assert kinds(run, "selecting") == [{"capture_error"}] * COPIES, run.out
    assert [*kinds(run, "mixing"), *kinds(run, "weighting")] == [set()] * (2 * COPIES), run.out
