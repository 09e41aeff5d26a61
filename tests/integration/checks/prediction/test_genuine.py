"""Genuine modules of every kind: what is predicted of their archives is what the releases do, and nothing is in doubt."""

import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.prediction import Prediction
from harness.environments.builder import default_environment_root
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registry_of
from benchmarks.faults import genuine
from tests.integration.checks.prediction.answers import DEADLINE_S, torch_answers
from tests.integration.checks.prediction.genuine_kinds import KINDS
from tests.unit.builders.archives import golden

pytestmark = pytest.mark.integration
PROJECT = Path(__file__).resolve().parents[4]


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
    root = default_environment_root()
    registries = {side: registry_of(environment, root) for side, environment in environments.items()}
    verdicts = {path: inspect_file(path, registries).verdicts for path in paths}
    for side, environment in environments.items():
        said = torch_answers(environment.interpreter, tmp_path / side, [], paths)
        assert [bool(message) for message in said.values()] == [False, False, True, True, *[True] * 8]
        for path, message in said.items():
            assert verdicts[path][side].prediction is (Prediction.FAILS if message else Prediction.LOADS), message


def test_mobile_flatbuffers_are_judged_as_torch_does(environments: dict[str, Environment], tmp_path: Path) -> None:
    program = Path(__file__).with_name("archives") / "flatbuffers.py"
    root = default_environment_root()
    registries = {side: registry_of(environment, root) for side, environment in environments.items()}
    for side, environment in environments.items():
        (tmp_path / side).mkdir()
        command = [environment.interpreter, "-s", "-W", "ignore", str(program), str(tmp_path / side)]
        subprocess.run(command, timeout=DEADLINE_S, check=True)
    paths = sorted(str(path) for path in tmp_path.glob("*/*.ptl"))
    files = {path: inspect_file(path, registries) for path in paths}
    for side, environment in environments.items():
        for path, message in torch_answers(environment.interpreter, tmp_path / f"in_{side}", [], paths).items():
            found = files[path].verdicts[side].prediction
            assert found is (Prediction.FAILS if message else Prediction.LOADS), (path, side, message)
    plain = files[str(tmp_path / "old" / "Plain.ptl")].facts
    assert plain is not None
    assert plain.methods == ("forward", "other")
    assert {group.dtype: group.nbytes for group in plain.storages}["quint8"] == 4
    assert "aten::softshrink" in {use.name for use in plain.operators}
    assert files[str(tmp_path / "new" / "Recent.ptl")].verdicts["old"].prediction is Prediction.FAILS


def test_a_mobile_flatbuffer_that_is_cut_off_is_damaged(new_python: str, tmp_path: Path) -> None:
    program = Path(__file__).with_name("archives") / "flatbuffers.py"
    subprocess.run([new_python, "-s", "-W", "ignore", str(program), str(tmp_path)], timeout=DEADLINE_S, check=True)
    data = (tmp_path / "Plain.ptl").read_bytes()
    for share in range(1, 20):
        cut = tmp_path / f"{share}.ptl"
        cut.write_bytes(data[: len(data) * share // 20])
        failure = inspect_file(str(cut), {}).failure
        assert failure is not None
        assert failure.kind == "damaged"


def packed_again(path: Path, method: int, stray: str) -> str:
    """Write a golden record's artifact to ``path`` as Python's zipfile does, behind a ``stray`` member if named."""
    with zipfile.ZipFile(BytesIO(golden("early_exit"))) as plain, zipfile.ZipFile(path, "w", method) as archive:
        if stray:
            archive.writestr(stray, "x")
        for name in plain.namelist():
            archive.writestr(name, plain.read(name), method)
    return str(path)
