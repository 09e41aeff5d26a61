"""One dependency at a time, for real: an operator library whose new version answers otherwise, as a wheel on disk."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.gate import PROJECT

OPERATORS = """
import torch

library = torch.library.Library("planted", "DEF")
library.define("scaled(Tensor x) -> Tensor")
library.impl("scaled", lambda x: x * {factor}, "CompositeExplicitAutograd")
"""
MODELS = """
import torch

from fixtures.declare import Sample, model


class Scales(torch.nn.Module):
    def forward(self, x):
        return torch.ops.planted.scaled(x) + 1


@model("scales")
def scales():
    return Sample(Scales(), example=(torch.ones(4),))
"""
CONFIG = """
[tool.compat.environments]
libraries = ["plantedops"]
[tool.compat.environments."2.1.2"]
extras = [{old!r}]
[tool.compat.environments."2.6.0"]
extras = [{new!r}]
"""


def wheel(folder: Path, version: str, factor: float) -> str:
    """Return a wheel of the operator library."""
    path = folder / f"plantedops-{version}-py3-none-any.whl"
    info = f"plantedops-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("plantedops.py", OPERATORS.format(factor=factor))
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: plantedops\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


@pytest.mark.integration
@pytest.mark.slow
def test_an_operator_library_is_distinguished_from_torch_and_from_everything_else(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "models.py").write_text(MODELS)
    wheels = {"old": wheel(tmp_path, "1.0", 2.0), "new": wheel(tmp_path, "2.0", 2.5)}
    (tmp_path / "pyproject.toml").write_text(CONFIG.format(**wheels))
    command = [sys.executable, "-m", "harness", "--project", str(tmp_path), "bisect", "--over", "dependencies"]
    ends = ("--old", "2.1.2", "--new", "2.6.0", "--model", "scales", "--fixtures", str(tmp_path / "models"))
    done = subprocess.run(
        [*command, *ends, "--out", str(tmp_path / "store")],
        cwd=PROJECT,
        env={**os.environ, "TORCHSCRIPT_GATE_ENVS": str(tmp_path / "envs")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "store" / "first-bad-scales.json").read_text())
    assert found["conclusion"]["first_bad"] == "plantedops 1.0 -> 2.0"
    answers = [(check["expected"], check["asked"]["answer"]) for check in found["checks"]]
    assert answers == [("good", "good"), ("bad", "bad")]
    assert "first bad: plantedops 1.0 -> 2.0 (values)" in done.stdout
