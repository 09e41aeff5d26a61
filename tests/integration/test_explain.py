"""Red cells of a real run say what a search found, at once with ``--explain`` and afterwards by ``bisect --cell``."""

import json
from pathlib import Path

import pytest

from tests.integration.gate import compat, harness

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("old_python", "new_python")
def test_each_red_cell_says_whose_doing_it_is_and_a_passing_model_nothing(tmp_path: Path) -> None:
    chosen = ("--fixtures", "fixtures/breaks", "-k", "enlarge_thumbnail or half_on_accelerator or encode_ragged")
    run = compat(tmp_path, *chosen, "--latency", "off", "--scenario", "alone", "--explain")
    assert run.code == 1, run.err
    told = {item.model: item for item in run.report.explained}
    assert list(told) == ["half_on_accelerator", "enlarge_thumbnail"]  # the gravest first
    assert told["enlarge_thumbnail"].answer == "operator aten::upsample_bicubic2d.vec"
    assert "culprit   aten::upsample_bicubic2d.vec, torch/nn/functional.py:" in run.out
    for text in ((run.folder / "report.md").read_text(), (run.folder / "junit.xml").read_text()):
        assert "aten::upsample" in text.replace("\\", "") and "torch._C._nn.upsample_bicubic2d(" in text.replace(
            "\\", ""
        )
    assert told["half_on_accelerator"].answer == "loading"
    assert all((run.folder / path).is_file() for item in told.values() for path in item.paths)

    cell = told["half_on_accelerator"].cell
    later = harness("bisect", "--cell", cell, "--out", str(tmp_path))
    assert later.returncode == 1, later.stderr
    shown = harness("report", run.folder.name, "--out", str(tmp_path), "--format", "json")
    (again,) = [item for item in json.loads(shown.stdout)["explained"] if item["cell"] == cell]
    assert again["paths"][-1].startswith("../") and again["paths"][-1].endswith(
        "-half_on_accelerator-bisect/bisect.json"
    )
