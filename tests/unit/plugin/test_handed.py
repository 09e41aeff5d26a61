"""Objects of a test as files: in the form that the old release's worker reads, and nothing else is taken."""

import math
import sys
import tomllib
import types
from collections import OrderedDict
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.plugin.fixture import artifacts_argument


class Tensor:
    """Stands for torch's."""

    __module__ = "torch"

    def __init__(self, made_of: str) -> None:
        self.made_of = made_of

    def detach(self) -> "Tensor":
        return Tensor(f"{self.made_of}, detached")

    def cpu(self) -> "Tensor":
        return Tensor(f"{self.made_of}, on the CPU")


class ScriptModule:
    """Stands for torch.jit's."""

    __module__ = "torch.jit._script"
    original_name = "Ranker-2"

    def save(self, path: str) -> None:
        Path(path).write_text("saved")


class Module:
    """Stands for an eager one."""

    __module__ = "torch.nn.modules.module"


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a stand-in for torch was told to save."""
    kept: list[Any] = []
    torch = types.ModuleType("torch")
    torch.save = lambda value, path: kept.append(value)  # type: ignore[attr-defined]
    torch.from_numpy = lambda array: Tensor(f"of {array.tolist()}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    return kept


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def model_of(manifest: Path) -> dict[str, Any]:
    (model,) = tomllib.loads(manifest.read_text())["models"]
    return dict(model)


def requests_of(inputs: object, folder: Path) -> Path:
    return Path(model_of(artifacts_argument("ranker.pt", inputs, folder))["inputs"])


def arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name].tolist() for name in found.files}


def test_a_path_alone_is_that_path_with_the_requests_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert artifacts_argument("models/ranker.pt", None, tmp_path) == tmp_path / "models" / "ranker.pt"
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_requests_goes_into_a_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.npz").touch()
    model = model_of(artifacts_argument(Path("ran\"k'er.pt"), "monday.npz", tmp_path))
    assert model == {
        "path": str(tmp_path / "ran\"k'er.pt"),
        "inputs": str(tmp_path / "monday.npz"),
        "name": "ran_k_er",
    }


def test_a_scripted_module_is_saved_under_its_name(tmp_path: Path) -> None:
    path = artifacts_argument(ScriptModule(), None, tmp_path)
    assert path == tmp_path / "Ranker_2.pt" and path.read_text() == "saved"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(Module(), "script or trace it first"), (3, "a path or a scripted"), (Tensor("x"), "got Tensor")],
)
def test_what_is_no_artifact_is_refused(wrong: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        artifacts_argument(wrong, None, tmp_path)


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (np.ones(2), {"0": [1.0, 1.0]}),
        ((np.ones(1), 3), {"0": [1.0], "1": 3}),
        (
            {"monday": (np.ones(1), np.zeros(1)), "small": np.ones(1)},
            {"monday/0": [1.0], "monday/1": [0.0], "small/0": [1.0]},
        ),
    ],
)
def test_flat_arrays_need_no_torch(inputs: object, names: dict[str, object], tmp_path: Path) -> None:
    path = requests_of(inputs, tmp_path)
    assert path.suffix == ".npz"
    assert arrays(path) == names


@pytest.mark.usefixtures("no_torch")
def test_arrays_in_a_list_without_torch_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="import torch in the test, or give a file"):
        requests_of(([np.ones(1)],), tmp_path)


def test_tensors_are_saved_by_torch_on_the_cpu_and_arrays_beside_them_become_tensors(
    saved: list[Any], tmp_path: Path
) -> None:
    assert requests_of((Tensor("x"), [np.ones(1)], {"k": None}), tmp_path).suffix == ".pt"
    ((tensor, (from_array,), rest),) = saved
    assert tensor.made_of == "x, detached, on the CPU"
    assert from_array.made_of == "of [1.0]"
    assert rest == {"k": None}


def test_a_number_in_an_array_keeps_its_shape_and_what_may_not_be_written_is_copied(
    saved: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(sys.modules["torch"], "from_numpy", given.append)
    frozen = np.ones((2, 3)).T
    frozen.flags.writeable = False  # torch warns of it, and a strict suite makes that an error
    requests_of((Tensor("x"), np.array(2.0), frozen), tmp_path)
    number, copied = given
    assert number.shape == () and copied.flags.writeable and copied.flags.c_contiguous


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Pair(NamedTuple):
    x: object
    y: object


@pytest.mark.usefixtures("no_torch")
def test_numbers_and_texts_leave_the_classes_of_the_test_behind(tmp_path: Path) -> None:
    values = (np.float64(1.5), Pair(Size.BIG, Colour.RED), OrderedDict({Colour.RED: np.int8(2)}), np.str_("a"))
    path = requests_of(values, tmp_path)
    module: dict[str, Any] = {}
    exec(path.read_text(), module)
    assert repr(module["inputs"]()) == "(1.5, (3, 'red'), {'red': 2}, 'a')"
    assert arrays(requests_of((np.ones(1), np.float64(2), Size.BIG), tmp_path)) == {"0": [1.0], "1": 2.0, "2": 3}


@pytest.mark.usefixtures("no_torch")
def test_plain_values_are_a_function_that_returns_them(tmp_path: Path) -> None:
    inputs = {"one": (3, "text", None, [1.5, math.inf]), "two": (True, {"k": -math.inf})}
    path = requests_of(inputs, tmp_path)
    assert path.suffix == ".py"
    module: dict[str, Any] = {}
    exec(path.read_text(), module)
    assert module["inputs"]() == inputs


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (object(), "^inputs: expected tensors.* got object"),
        (({"k": [object()]},), r"^inputs\[0\]\['k'\]\[0\]: expected"),
        ((np.array([object()]),), r"^inputs\[0\]: .* got an array of object"),
        (np.array(["a"]), "an array of <U1"),
        (np.datetime64("2026-11-22"), "got datetime64"),
        ({0: np.ones(1)}, r"names of input sets are texts; an argument that is a dict: \(\{...\},\)"),
        ("no such file", "there is no file /.*no such file"),
    ],
    ids=[
        "object",
        "object in a dict",
        "array of objects",
        "array of texts",
        "date",
        "number as a name",
        "missing file",
    ],
)
def test_what_no_request_holds_is_refused_with_its_place(wrong: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        requests_of(wrong, tmp_path)
