"""What is installed beside an interpreter is read from its metadata, and nothing is started."""

from pathlib import Path

import pytest

from harness.environments.installed import installed_in, python_of
from harness.errors import ConfigError


def environment(folder: Path, **versions: str) -> tuple[str, Path]:
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    for name, version in versions.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\nRequires-Dist: abc>=1\n")
    return str(folder / "bin" / "python"), site


def test_names_are_normalized_and_versions_are_those_on_disk(tmp_path: Path) -> None:
    python, _ = environment(tmp_path, torch="2.6.0", nvidia_cublas_cu12="12.4.5.8")
    found = installed_in(python, name="new")
    assert {name: item.requirement for name, item in found.items()} == {
        "nvidia-cublas-cu12": "nvidia-cublas-cu12==12.4.5.8",
        "torch": "torch==2.6.0",
    }
    assert found["torch"].needs == ("abc>=1",)
    assert python_of(python) == "3.11"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        ('{"url": "file:///w/ops-1.whl", "archive_info": {}}', "ops @ file:///w/ops-1.whl"),
        ('{"url": "https://g/o", "vcs_info": {"vcs": "git", "commit_id": "ab"}}', "ops @ git+https://g/o@ab"),
        ("damaged", "ops==1"),
    ],
)
def test_what_came_from_elsewhere_is_asked_for_there(tmp_path: Path, origin: str, requirement: str) -> None:
    python, site = environment(tmp_path, torch="2.6.0", ops="1")
    (site / "ops-1.dist-info" / "direct_url.json").write_text(origin)
    assert installed_in(python, name="new")["ops"].requirement == requirement


def test_an_interpreter_without_packages_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="new: no torch is installed beside"):
        installed_in(str(tmp_path / "python"), name="new")
    assert python_of(str(tmp_path / "python")) == ""
