"""TorchServe's own archiver wrote these: each of its formats is one artifact of a fleet, by the name that it was given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.fleet import Examination, FleetPlan
from harness.environments.installer import find_uv
from harness.store.json import from_json
from tests.corpus.keeping import unpacked
from tests.integration.gate import harness

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ARCHIVER = "torch-model-archiver==0.12.0"
FORMATS = ("default", "no-archive", "tgz")
ARCHIVED = ("torchaudio_Fade_script_2_1_2", "packages_einops_Rearrange_script_2_1_2", "timm_test_vit_script_2_6_0")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archiver")
    uv = find_uv()
    assert uv is not None
    subprocess.run([uv, "pip", "install", "-q", "--target", str(folder / "tool"), ARCHIVER], check=True, timeout=300)
    files = {file.stem: file for file in unpacked(folder / "archives")}
    store = folder / "store"
    store.mkdir()
    for model in ARCHIVED:
        for kind in FORMATS:
            words = [
                "--model-name",
                f"{model}_{kind.replace('-', '_')}",
                "--version",
                "1.0",
                "--handler",
                "base_handler",
            ]
            words += [
                "--serialized-file",
                str(files[model]),
                "--extra-files",
                str(files[model].with_suffix(".inputs.pt")),
            ]
            words += ["--archive-format", kind, "--export-path", str(store)]
            program = "from model_archiver.model_packaging import generate_model_archive; generate_model_archive()"
            environ = {**os.environ, "PYTHONPATH": str(folder / "tool")}
            subprocess.run([sys.executable, "-c", program, *words], check=True, env=environ, timeout=120)
    return store


def test_each_format_of_the_archiver_is_an_artifact(
    store: Path, old_python: str, new_python: str, tmp_path: Path
) -> None:
    given = ("--env", f"old={old_python}", "--env", f"new={new_python}", "--old", "old", "--new", "new")
    done = harness("fleet", "plan", str(store), *given, "--into", str(tmp_path / "fleet"))
    assert done.returncode == 0, done.stderr
    plan = from_json((tmp_path / "fleet" / "plan.json").read_bytes(), FleetPlan)
    judged = [artifact for artifact in plan.artifacts if not artifact.left_out]
    assert len(judged) == len(ARCHIVED) * len(FORMATS), done.stdout
    whole = [artifact for artifact in judged if artifact.examination is Examination.FULL]
    # Each program once, as the folder has it: only there do its requests lie beside it.
    assert {artifact.program for artifact in whole} == {artifact.program for artifact in judged}
    assert [artifact.path.partition("/")[0] for artifact in whole] == [
        f"{model}_no_archive" for model in sorted(ARCHIVED)
    ]
    assert all(artifact.serving.inputs for artifact in whole)
