"""Genuine modules of every kind: what is predicted of their archives is what the releases do, and nothing is in doubt."""

import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from harness.domain.environment import EnvSpec, Environment
from harness.domain.prediction import Prediction
from harness.environments.builder import default_environment_root
from harness.static.check import inspect_file
from harness.static.registries import registry_of
from tests.bench.faults import genuine
from tests.integration.static.answers import torch_answers
from tests.integration.static.genuine_kinds import KINDS
from tests.unit.builders.archives import golden

pytestmark = pytest.mark.integration
PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def environments(old_python: str, new_python: str) -> dict[str, Environment]:
    pythons = {"old": old_python, "new": new_python}
    return {
        side: Environment(name=side, interpreter=path, spec=EnvSpec(name=side, interpreter=path))
        for side, path in pythons.items()
    }


def test_every_kind_of_module_is_judged_as_torch_does(environments: dict[str, Environment], tmp_path: Path) -> None:
    names = list(KINDS)
    wrong = genuine.wrong_predictions(environments, tmp_path, list(KINDS.values()))
    assert not [f"{names[int(line.partition('/')[2][:5])]}: {line}" for line in wrong]
    assert len(list((tmp_path / "new").glob("*.pt"))) > 0.8 * len(KINDS)


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_drawn_modules_are_judged_as_torch_does(
    environments: dict[str, Environment], tmp_path: Path, count: int
) -> None:
    assert not genuine.wrong_predictions(environments, tmp_path, genuine.drawn(count, seed=39))
    assert len(list((tmp_path / "new").glob("*.pt"))) > 0.5 * count


def test_archives_packed_again_are_judged_as_torch_does(environments: dict[str, Environment], tmp_path: Path) -> None:
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    paths = [
        packed_again(tmp_path / f"{index}_{method}.pt", method, stray)
        for index, stray in enumerate(("", "README", "notes/README"))
        for method in methods
    ]
    root = default_environment_root(PROJECT)
    registries = {side: registry_of(environment, root) for side, environment in environments.items()}
    verdicts = {path: inspect_file(path, registries).verdicts for path in paths}
    for side, environment in environments.items():
        said = torch_answers(environment.interpreter, tmp_path / side, [], paths)
        assert [bool(message) for message in said.values()] == [False, False, True, True, *[True] * 8]
        for path, message in said.items():
            assert verdicts[path][side].prediction is (Prediction.FAILS if message else Prediction.LOADS), message


def packed_again(path: Path, method: int, stray: str) -> str:
    """Write a golden record's artifact to ``path`` as Python's zipfile does, behind a ``stray`` member if named."""
    with zipfile.ZipFile(BytesIO(golden("early_exit"))) as plain, zipfile.ZipFile(path, "w", method) as archive:
        if stray:
            archive.writestr(stray, "x")
        for name in plain.namelist():
            archive.writestr(name, plain.read(name), method)
    return str(path)
