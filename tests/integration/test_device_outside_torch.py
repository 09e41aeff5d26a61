"""Whole runs on a device that torch does not have: the fake accelerator, healthy and with each fault that servers meet."""

from pathlib import Path

import pytest

from harness.domain.outcome import Decision, Outcome
from harness.environments.builder import default_environment_root
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.test_fake_accelerator import interpreter

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OLD, NEW = "2.1.2", "2.6.0"
# Profile of the new side -> (fault, the kind of finding that it must end in): the ninth kernel belongs to the load.
FAULTS = {
    "late_error_of_a_load": ("late_error:9", "load_error"),
    "late_error_of_a_call": ("late_error:40", "call_error"),
    "hang": ("hang:40", "hang"),
    "lost": ("lost:40", "call_error"),
    "out_of_memory": ("out_of_memory:9", "out_of_memory"),
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
    for release in (OLD, NEW):
        library = build(interpreter(release), default_environment_root(PROJECT) / "native") / "fakedev.py"
        text += f'\n[tool.compat.environments."{release}"]\nlibraries = ["{library}"]\n'
    for name, (fault, _) in FAULTS.items():
        text += f'\n[tool.compat.serving.profiles.{name}]\nenv = {{ FAKEDEV_FAULT = "{fault}" }}\n'
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(text)
    return folder


def on_the_device(project: Path, reports: Path, *words: str) -> Run:
    """Run a small model there; ``words``: further options."""
    sides = ("--project", str(project), "compat", "--old", OLD, "--new", NEW, "--device", "fakedev")
    models = ("--fixtures", str(PROJECT / "fixtures" / "zoo"), "-k", "two_tower and not served", "--latency", "off")
    done = harness(*sides, *models, "--deadline", "6", "--out", str(reports), *words, timeout_s=900)
    return finished(done, reports)


def test_healthy_model_passes_there_with_captures_and_no_report_says_gpu(project: Path, tmp_path: Path) -> None:
    scenarios = ("--scenario", "alone", "--scenario", "concurrent", "--scenario", "cuda_graphs")
    run = on_the_device(project, tmp_path, *scenarios)
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
def test_fault_of_the_device_in_the_new_release_alone_blocks_and_is_named(
    project: Path, tmp_path: Path, name: str
) -> None:
    run = on_the_device(project, tmp_path, "--scenario", "alone", "--new-profile", name)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    assert run.kinds("two_tower") == {FAULTS[name][1]}, run.out
