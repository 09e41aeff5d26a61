"""Real servers on real releases: with torch alone, with FastAPI, TorchServe, and in C++."""

import json
import shutil
from pathlib import Path

import pytest

from harness.apps.shadow.shadow import shadow
from harness.core.outcome import Decision
from harness.core.shadow import Quantity, Shadow
from harness.project import Project
from tests.integration.conftest import NEW, OLD

pytestmark = pytest.mark.integration
PROJECT = Path(__file__).resolve().parents[4]
EXAMPLES = PROJECT / "examples"
V2 = EXAMPLES / "fastapi-server" / "requests.jsonl"


def run(folder: Path, server: Path, requests: Path, **sides: str) -> Shadow:
    pair = {} if sides else {"old": OLD, "new": NEW}
    project = Project(
        folder=folder,
        overrides=pair,
        environments=[f"{side}={python}" for side, python in sides.items()],
        out=str(folder / "out"),
    )
    return shadow(project, server, requests=requests)


def not_green(result: Shadow) -> list[Quantity]:
    return [row.quantity for row in result.rows if row.status != "PASS"]


def only(requests: Path, folder: Path, *models: str) -> Path:
    """Return the requests of these models, 4 at most each."""
    head, *lines = requests.read_text().splitlines(keepends=True)
    kept = [
        line for model in models for line in [each for each in lines if f"/{model}/" in json.loads(each)["path"]][:4]
    ]
    file = folder / "requests.jsonl"
    file.write_text(head + "".join(kept))
    return file


def test_two_models_of_a_python_server_answer_alike(old_python: str, new_python: str, tmp_path: Path) -> None:
    models = EXAMPLES / "models"
    program = PROJECT / "tests" / "programs" / "torch_v2_server.py"
    server = tmp_path / "server.toml"
    server.write_text(
        f'command = "{{python}} {program} {{port}} {models}/ranker.pt {models}/two_tower.pt"\nprotocol = "v2"\n'
    )
    result = run(tmp_path, server, only(V2, tmp_path, "ranker", "two_tower"), old=old_python, new=new_python)
    assert (result.decision, not_green(result)) == (Decision.UPGRADE_OK, [])
    assert (result.answers.requests, result.answers.not_ok, result.answers.differences) == (8, 0, ())
    assert all(life.ready_s and life.peak_bytes > 50 << 20 for life in (*result.old.lives, *result.new.lives))


@pytest.mark.slow
def test_fastapi_answers_otherwise_where_torch_was_mended(tmp_path: Path) -> None:
    """``thumbnails.pt`` was wrong in 2.1: https://github.com/pytorch/pytorch/pull/118389."""
    result = run(tmp_path, EXAMPLES / "fastapi-server" / "server.toml", V2)
    assert (result.decision, not_green(result)) == (Decision.BLOCKED, [Quantity.ANSWERS])
    assert [(each.kind, each.endpoint) for each in result.answers.differences] == [
        ("values", "POST /v2/models/thumbnails/infer")
    ]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs a Java runtime")
def test_torchserve_does_the_same(tmp_path: Path) -> None:
    folder = EXAMPLES / "torchserve"
    result = run(tmp_path, folder / "server.toml", folder / "requests.jsonl")
    assert (result.decision, not_green(result)) == (Decision.UPGRADE_OK, [])
    assert (result.answers.requests, result.answers.not_ok) == (24, 0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_server_in_cpp_is_built_for_each_release(tmp_path: Path) -> None:
    requests = only(V2, tmp_path, "ranker", "two_tower")
    result = run(tmp_path, EXAMPLES / "cpp-server" / "server.toml", requests)
    assert (result.decision, not_green(result)) == (Decision.UPGRADE_OK, [])
    assert result.new.build is not None
    assert result.answers.not_ok == 0
