"""What CUDA's rules of captures and of loading kernels end in whole runs, on the fake accelerator, and what ``mitigate`` finds."""

import json
import shutil
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Status
from harness.environments.builder import default_environment_root
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.devices.test_device_outside_torch import CONFIGURATION
from tests.integration.devices.test_fake_accelerator import interpreter

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RELEASE = "2.6.0"
CAPTURES = PROJECT / "fixtures" / "planted" / "cuda"
SPINNING = Path(__file__).with_name("accelerator") / "spinning.py"
# Profiles of the new side, each of which brings out one trap.
PROFILES = {
    "denormals": "numerics = { flush_denormal = true }",
    "handles": 'env = { FAKEDEV_HANDLES = "stream" }',
    "lazy": 'env = { CUDA_MODULE_LOADING = "LAZY" }',
}
# Model -> (its twin, fixtures, scenario, options, kind of finding, mitigation).
TRAPS = {
    "graph_staging": (
        "graph_layers",
        CAPTURES,
        "cuda_graphs",
        ("--capture-mode", "global", "--new-profile", "denormals"),
        "capture_error",
        "thread-local capture",
    ),
    "graph_convolving": (
        "graph_layers",
        CAPTURES,
        "cuda_graphs",
        ("--capture-warm-calls", "0", "--new-profile", "handles"),
        "capture_error",
        "warm-up before capture",
    ),
    "kernels_meet": (
        "kernels_loaded_before",
        SPINNING,
        "alone",
        ("--new-profile", "lazy"),
        "hang",
        "eager CUDA modules",
    ),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one release, with the device and a profile for each trap."""
    library = build(interpreter(RELEASE), default_environment_root(PROJECT) / "native") / "fakedev.py"
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION + "lazy_modules = true\n"
    text += f'\n[tool.compat.environments."{RELEASE}"]\nlibraries = ["{library}"]\n'
    for name, content in PROFILES.items():
        text += f"\n[tool.compat.serving.profiles.{name}]\n{content}\n"
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(text)
    (folder / "spinning").mkdir()
    shutil.copyfile(SPINNING, folder / "spinning" / "__init__.py")
    return folder


def run(project: Path, reports: Path, model: str, *options: str) -> Run:
    """Judge a planted model and its twin there, with one release on both sides."""
    twin, fixtures, scenario, *_ = TRAPS[model]
    sides = ("--project", str(project), "compat", "--old", RELEASE, "--new", RELEASE, "--allow-same-torch")
    where = (
        "--device",
        "fakedev",
        "--scenario",
        scenario,
        "--latency",
        "off",
        "--deadline",
        "3",
        "--out",
        str(reports),
    )
    models = ("--fixtures", str(fixtures if fixtures != SPINNING else project / "spinning"), "-k", f"{model} or {twin}")
    return finished(harness(*sides, *where, *models, *options, timeout_s=900), reports)


@pytest.mark.parametrize("model", TRAPS)
def test_trap_is_found_its_twin_is_well_and_mitigate_finds_the_mitigation(
    project: Path, tmp_path: Path, model: str
) -> None:
    twin, _, scenario, options, kind, mitigation = TRAPS[model]
    found = run(project, tmp_path / "runs", model, *options)
    assert found.report.judgement.decision is Decision.BLOCKED, found.out + found.err
    assert found.kinds(model) == {kind}, found.out
    assert found.row(twin).status is Status.PASS, found.out
    (cell,) = (cell.cell for cell in found.row(model).cells if cell.status is Status.FAIL)
    assert f"/{scenario}/" in cell
    where = ("--project", str(project), "mitigate", str(found.folder), cell)
    done = harness(*where, "--out", str(tmp_path / "mitigates"), timeout_s=1800)
    assert done.returncode == 1, done.stdout + done.stderr
    (written,) = (tmp_path / "mitigates").glob("*/mitigate.json")
    mitigations = [item["settings"] for item in json.loads(written.read_text())["mitigations"] if item["mitigates"]]
    assert [mitigation] in mitigations, done.stdout


@pytest.mark.parametrize("model", [name for name, trap in TRAPS.items() if trap[2] == "cuda_graphs"])
def test_captures_made_as_the_mitigation_says_are_well(project: Path, tmp_path: Path, model: str) -> None:
    profile = TRAPS[model][3][-2:]
    found = run(project, tmp_path, model, *profile)  # thread-local, after calls in the same stream
    assert {row.status for row in found.report.judgement.rows} == {Status.PASS}, found.out + found.err
    assert all(planted.caught for planted in found.report.judgement.planted_defects), found.out
    assert "planted_dead_capture" in {planted.name for planted in found.report.judgement.planted_defects}
