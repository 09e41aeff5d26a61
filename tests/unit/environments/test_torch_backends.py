"""Which build of torch is taken: the real installers ask indexes of ours, under the addresses of the real ones."""

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from harness.core.environment import AUTO_BACKEND, EnvSpec
from harness.core.machine import Gpus
from harness.environments.builder import EnvironmentBuilder
from harness.environments.installer import find_uv
from harness.environments.pythons import OWN_PYTHON
from harness.environments.torch_backends import common_build, with_common_build
from harness.machine import gpu
from tests.programs.package_indexes import MIRROR, PYPI, PYTORCH, Indexes, serving

CPU_PAGE, REGISTRY_PAGE = "/whl/cpu/torch/", "/simple/torch/"
PAIR = ("2.1.2", "2.6.0")
PAGES: Mapping[str, Mapping[str, Sequence[str]]] = {
    PYTORCH: {CPU_PAGE: [f"{release}+cpu" for release in PAIR], "/whl/cu124/torch/": ["2.6.0+cu124"]},
    PYPI: {REGISTRY_PAGE: PAIR},
    MIRROR: {REGISTRY_PAGE: PAIR},
}


class Machine:
    """A machine without a GPU, its indexes, and an empty root of environments."""

    def __init__(self, folder: Path, indexes: Indexes, uv: str | None) -> None:
        self.indexes, self.notes = indexes, list[str]()
        self.builder = EnvironmentBuilder(
            folder / "envs", progress=lambda *_: None, note=self.notes.append, uv=uv, free_disk_bytes=0
        )

    def built(self, *releases: str, backend: str = AUTO_BACKEND, index_args: tuple[str, ...] = ()) -> list[str]:
        """Return which torch is installed in each environment of a run."""
        specs = [spec(release, backend, index_args) for release in releases]
        environments = self.builder.build_all(with_common_build(specs, self.builder))
        folders = [Path(environment.interpreter).parents[1] for environment in environments]
        (names,) = zip(
            *[[path.name for path in folder.glob("lib/*/*/torch-*.dist-info")] for folder in folders], strict=True
        )
        return [name.removeprefix("torch-").removesuffix(".dist-info") for name in names]

    def asked(self, host: str) -> list[str]:
        return [text for text in self.indexes.asked if text.startswith(host)]


def spec(release: str, backend: str = AUTO_BACKEND, index_args: tuple[str, ...] = ()) -> EnvSpec:
    return EnvSpec(
        name=f"torch {release}", release=release, python=OWN_PYTHON, torch_backend=backend, index_args=index_args
    )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    yield from _machine(tmp_path, monkeypatch, find_uv())


@pytest.fixture
def machine_without_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    yield from _machine(tmp_path, monkeypatch, None)


def _machine(folder: Path, monkeypatch: pytest.MonkeyPatch, uv: str | None) -> Iterator[Machine]:
    monkeypatch.setattr(gpu, "without_asking", Gpus)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with serving(folder, PAGES) as indexes:
        for name in ("UV_TORCH_BACKEND", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_FIND_LINKS", "PIP_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in indexes.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)  # of the checkout's configuration of uv nothing counts
        yield Machine(folder, indexes, uv)


def test_without_a_gpu_both_sides_are_builds_for_cpus_and_a_second_run_asks_nobody(machine: Machine) -> None:
    assert machine.built(*PAIR) == ["2.1.2+cpu", "2.6.0+cpu"]
    assert machine.notes == [
        "torch 2.1.2 and torch 2.6.0: builds for CPUs, from https://download.pytorch.org/whl/cpu; "
        "this machine shows no NVIDIA GPU"
    ]
    assert not machine.asked(PYPI)
    asked = len(machine.indexes.asked)
    assert machine.built(*PAIR) == machine.built("2.1.2+cpu", "2.6.0+cpu") == ["2.1.2+cpu", "2.6.0+cpu"]
    assert (len(machine.indexes.asked), len(machine.notes)) == (asked, 1)


def test_an_index_that_cannot_be_reached_is_named_and_the_registry_taken(machine: Machine) -> None:
    del machine.indexes.pages[PYTORCH]
    assert machine.built(*PAIR) == ["2.1.2", "2.6.0"]
    (note,) = machine.notes
    assert "https://download.pytorch.org/whl/cpu: the package index could not be reached; " in note
    assert "CUDA" in note


def test_an_index_that_says_nothing_is_not_waited_for_longer_than_the_limit(machine: Machine) -> None:
    machine.indexes.silent.add(PYTORCH)
    begin = time.monotonic()
    assert common_build([spec(release) for release in PAIR], machine.builder, limit_s=0.5) == "default"
    assert time.monotonic() - begin < 4
    assert "whl/cpu: no answer in 0.5 s; " in machine.notes[0]


def test_one_release_without_a_build_for_cpus_leaves_none_to_the_other(machine: Machine) -> None:
    machine.indexes.pages[PYTORCH][CPU_PAGE] = ["2.6.0+cpu"]
    assert machine.built(*PAIR) == ["2.1.2", "2.6.0"]
    assert "the index has no torch 2.1.2+cpu; " in machine.notes[0]


@pytest.mark.parametrize(
    "how", ["variable", pytest.param("argument", marks=pytest.mark.slow), pytest.param("file", marks=pytest.mark.slow)]
)
def test_a_configured_index_is_kept_to_and_pytorchs_is_not_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    mirror = f"https://{MIRROR}/simple"
    if how == "variable":
        monkeypatch.setenv("UV_INDEX_URL", mirror)
    elif how == "file":
        Path("uv.toml").write_text(f'[[index]]\nurl = "{mirror}"\ndefault = true\n')
    index_args = ("--index-url", mirror) if how == "argument" else ()
    assert machine.built("2.6.0", index_args=index_args) == ["2.6.0"]
    assert machine.asked(MIRROR)
    assert not machine.asked(PYTORCH)
    assert 'set torch_backend = "cpu"' in machine.notes[0]


def test_a_build_that_is_asked_for_comes_from_pytorchs_index_beside_a_configured_one(machine: Machine) -> None:
    index_args = ("--index-url", f"https://{MIRROR}/simple")
    assert machine.built("2.6.0", backend="cpu", index_args=index_args) == ["2.6.0+cpu"]
    assert machine.built("2.6.0+cu124", index_args=index_args) == ["2.6.0+cu124"]
    assert not machine.notes


def test_environments_that_are_there_stay_and_uvs_own_variable_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.built(*PAIR, backend="default") == ["2.1.2", "2.6.0"]
    assert machine.built(*PAIR) == ["2.1.2", "2.6.0"]
    assert not machine.asked(PYTORCH)
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    assert machine.built("2.6.0") == ["2.6.0+cpu"]
    assert machine.built("2.6.0", backend="default") == ["2.6.0"]


def test_a_gpu_or_a_side_with_cuda_means_the_registrys_builds(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = [spec("2.1.2"), spec("2.6.0", "cu124")]
    assert common_build(other, machine.builder) == "default"
    assert common_build([spec("2.1.2"), spec("2.6.0+cpu")], machine.builder) == "cpu"
    monkeypatch.setattr(gpu, "without_asking", lambda: Gpus(nodes=("/dev/nvidia0",)))
    assert common_build([spec("2.1.2"), spec("2.6.0")], machine.builder) == "default"


@pytest.mark.slow
def test_pip_takes_the_same_builds_and_keeps_to_its_configuration(
    machine_without_uv: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine_without_uv.built(*PAIR) == ["2.1.2+cpu", "2.6.0+cpu"]
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{MIRROR}/simple")
    assert machine_without_uv.built("2.1.2", "2.6.0", backend="default") == ["2.1.2", "2.6.0"]
    machine_without_uv.indexes.asked.clear()
    monkeypatch.setattr(machine_without_uv.builder, "is_ready", lambda _: False)
    assert common_build([spec("2.6.0")], machine_without_uv.builder) == "default"
    assert not machine_without_uv.asked(PYTORCH)
