"""pip, where there is no uv: what it is asked before anything is downloaded, by real runs of it over a folder of wheels."""

import zipfile
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder
from harness.environments.installer import listed, why_unresolved
from harness.environments.pythons import OWN_PYTHON
from harness.core.errors import EnvironmentUnavailable

PIP = """torch (2.15.0)
Available versions: 2.15.0, 2.14.0, 2.13.0+cpu, 2.13.0, 2.6.0, 2.5.1, 2.5.0
  INSTALLED: 2.6.0
"""


def test_what_pip_printed_without_builds_that_differ_by_their_suffix_only() -> None:
    assert listed(PIP) == ("2.15.0", "2.14.0", "2.13.0", "2.6.0", "2.5.1", "2.5.0")
    assert listed("nothing") == ()


@pytest.mark.parametrize(
    ("said", "status", "says"),
    [
        (PIP, 0, None),
        ('ERROR: unknown command "index"\n', 1, None),
        (PIP.replace("2.6.0, ", ""), 0, "new: the index has no torch 2.6.0 for Python 3.11"),
        ("WARNING: Failed to establish a new connection\n", 1, "new: the package index could not be reached"),
    ],
    ids=["it is there", "pip before 21.2", "it is not", "no network"],
)
def test_an_installation_is_given_up_for_what_pip_is_sure_of(
    tmp_path: Path, said: str, status: int, says: str | None
) -> None:
    log = tmp_path / "log"
    log.write_text(f"$ pip install torch==2.6.0\nERROR: an earlier one\n$ pip index versions torch\n{said}")
    found = why_unresolved("new", log, uv=None, status=status, release="2.6.0", python="3.11")
    assert (found.message.partition(" (the installer")[0] if found else None) == says


def wheels(folder: Path, *releases: str) -> Path:
    folder.mkdir()
    for release in releases:
        info = f"torch-{release}.dist-info"
        with zipfile.ZipFile(folder / f"torch-{release}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {release}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param(("2.1.99", "2.6.0"), "torch 2.1.99: the index has no torch 2.1.99 for Python", id="one does not"),
        pytest.param(("2.1.2", "2.6.0"), None, id="both do", marks=pytest.mark.slow),  # it installs
    ],
)
@pytest.mark.slow
def test_pip_installs_nothing_before_it_knows_that_every_release_exists(
    tmp_path: Path, asked: tuple[str, ...], says: str | None
) -> None:
    index_args = ("--no-index", "--find-links", str(wheels(tmp_path / "wheels", "2.1.0", "2.1.2", "2.6.0")))
    said: list[str] = []
    builder = EnvironmentBuilder(
        tmp_path / "envs", progress=lambda _, text: said.append(text.split()[0]), uv=None, free_disk_bytes=0
    )
    specs = [EnvSpec(name=f"torch {one}", release=one, python=OWN_PYTHON, index_args=index_args) for one in asked]
    if says is None:
        assert all(Path(built.interpreter).exists() for built in builder.build_all(specs))
        assert said[:2] == ["resolving"] * 2
        return
    with pytest.raises(EnvironmentUnavailable, match=says) as caught:
        builder.build_all(specs)
    assert caught.value.hint.startswith("it has 2.1.0, 2.1.2; full log: ")
    assert set(said) == {"resolving"}
    assert not list((tmp_path / "envs").glob("*/bin"))
