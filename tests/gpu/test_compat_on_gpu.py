"""The main job on a real GPU, in ready-made interpreters: no nox, no uv, no network.

    GATE_OLD_PYTHON=/old/bin/python GATE_NEW_PYTHON=/new/bin/python python -m pytest -p no:xdist -m gpu tests/gpu

With one interpreter only (the same for both), the run shows the harness's own noise and is never green.
"""

import os

import pytest

from harness.core.outcome import Outcome, Status
from harness.machine import gpu
from tests.integration.gate import Run, compat

pytestmark = pytest.mark.gpu

SCENARIOS = ("--scenario", "alone", "--scenario", "cuda_graphs")
MODELS = "served_dlrm or served_bert or served_resnet"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    old, new = os.environ["GATE_OLD_PYTHON"], os.environ["GATE_NEW_PYTHON"]
    sides = ("--env", f"old={old}", "--env", f"new={new}", *(["--allow-same-torch"] if old == new else []))
    return compat(tmp_path_factory.mktemp("gpu"), *sides, "--device", "cuda", "-k", MODELS, *SCENARIOS)


def test_models_run_on_the_gpu_that_was_asked_for(run: Run) -> None:
    assert run.report.device == "cuda"
    assert run.report.new.fingerprint is not None and run.report.new.fingerprint.gpu
    assert run.report.new.fingerprint.driver == gpu.without_asking().driver != ""


def test_every_model_is_exported_loaded_and_judged_on_the_gpu(run: Run) -> None:
    for model in run.report.models:
        assert (model.export, model.load, model.concurrent) == (Outcome.COMPLETED,) * 3, model.model
        assert model.latency is not None and model.latency.steady is not None, model.model


def test_outputs_on_the_gpu_pass_or_are_explained(run: Run) -> None:
    for row in run.report.judgement.rows:
        assert row.status in (Status.PASS, Status.INCONCLUSIVE) or row.reason, row.model


def test_every_planted_is_caught_on_the_gpu(run: Run) -> None:
    missed = [planted_defect for planted_defect in run.report.judgement.planted_defects if not planted_defect.caught]
    assert not missed


def test_benchmark_measures_what_only_a_gpu_has(run: Run) -> None:
    quantities = [model.latency.quantities for model in run.report.models if model.latency is not None]
    assert all(found["device_memory"].new >= 0 for found in quantities)
    assert any("replay" in found for found in quantities)  # not every model can be captured


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    old, new = os.environ["GATE_OLD_PYTHON"], os.environ["GATE_NEW_PYTHON"]
    sides = ("--env", f"old={old}", "--env", f"new={new}", *(["--allow-same-torch"] if old == new else []))
    graphs = ("--fixtures", "tests/gpu/graphs", "--scenario", "cuda_graphs", "--latency", "off")
    return compat(tmp_path_factory.mktemp("graphs"), *sides, "--device", "cuda", *graphs)


def test_model_that_cannot_be_captured_is_reported_with_its_operator(captured: Run) -> None:
    (cell,) = [cell for cell in captured.row("selecting").cells if cell.scenario == "cuda_graphs"]
    assert [finding.kind for finding in cell.findings] == ["capture_error"]
    assert "nonzero" in cell.findings[0].message


def test_healthy_twin_is_captured_and_its_replay_answers_alike(captured: Run) -> None:
    (cell,) = [cell for cell in captured.row("weighting").cells if cell.scenario == "cuda_graphs"]
    assert cell.status is Status.PASS
