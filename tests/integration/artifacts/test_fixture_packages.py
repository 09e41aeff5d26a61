"""Packages of models that are not ours: their own modules and helpers, and torchvision's."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.checks.hang import watchdog
from harness.environments.builder import default_environment_root
from harness.core.environment import EnvSpec, Environment
from harness.core.outcome import Decision, Outcome, Status
from harness.core.probe import ProbeRequest
from harness.artifacts.adopted import artifact_of
from harness.artifacts.fixture_folders import declared_in
from harness.probing.runner import ZygoteRunner
from tests.integration.gate import PROJECT, finished
from tests.programs.stub import PATIENT

pytestmark = pytest.mark.integration

LAYERS = """import torch

class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x
"""
MODELS = """import torch
from fixtures.declare import Sample, model

from ..layers import Doubled

@model("doubled", covers=("aten::add",))
def doubled():
    return Sample(Doubled(), example=(torch.rand(2, 3),))
"""
EXAMPLE = PROJECT / "docs" / "examples" / "torchvision"


def test_a_package_of_ones_own_is_exported_by_its_dotted_name(tmp_path: Path, old_python: str) -> None:
    for path, text in (
        ("mypkg/__init__.py", ""),
        ("mypkg/layers.py", LAYERS),
        ("mypkg/zoo/__init__.py", ""),
        ("mypkg/zoo/models.py", MODELS),
    ):
        file = tmp_path / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (declaration,) = declared_in("mypkg.zoo", tmp_path)
    environment = Environment(name="old", interpreter=old_python, spec=EnvSpec(name="old", interpreter=old_python))
    runner = ZygoteRunner({"old": environment}, tmp_path / "probes", watchdog)
    try:
        request = ProbeRequest(verb="export", side="old", environment="old", deadline=PATIENT, declaration=declaration)
        result = runner(request)
    finally:
        runner.close()
    assert result.outcome is Outcome.COMPLETED, result.models
    assert "aten::add.Tensor" in artifact_of(declaration, result).operators


@pytest.mark.slow
def test_the_example_with_torchvision_runs_as_its_page_says(tmp_path: Path) -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if "--scenario alone" in line]
    python, *words = shlex.split(line, comments=True)
    assert python == "python"
    done = subprocess.run(
        [sys.executable, *words, "--out", str(tmp_path)],
        cwd=PROJECT,
        env={**os.environ, "TORCHSCRIPT_GATE_ENVS": str(default_environment_root())},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    run = finished(done, tmp_path)
    assert run.report.judgement.decision is Decision.UPGRADE_OK, run.out
    assert {row.model: row.status for row in run.report.judgement.rows} == dict.fromkeys(
        ("detector", "resnet18", "segmenter", "suppressed", "vision_transformer"), Status.PASS
    )
