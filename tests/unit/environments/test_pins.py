"""What a project asks of torch beside the gate: the pin that is judged, and a pin that is not."""

from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from harness.environments.pins import pin_notes, pinned_release
from harness.project import Project

PROJECT = """\
[project]
dependencies = ["numpy", "torch=={0}", "torchvision==0.1"]
[project.optional-dependencies]
gpu = ["torch=={0}; sys_platform == 'no-such'"]
[dependency-groups]
dev = ["pytest", {{ include-group = "x" }}]
[tool.compat]
new = "pinned"
"""


def project(folder: Path, release: str = "2.8.0", **files: str) -> Path:
    (folder / "pyproject.toml").write_text(PROJECT.format(release))
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("pin", "pair", "told"),
    [
        ("2.8.0", ("2.1.2", "2.6.0"), True),
        ("2.6.0", ("2.1.2", "2.6.0"), False),
        ("2.6.0+cpu", ("2.1.2", "2.6.0"), False),
        ("2.6.*", ("2.1.2", "2.6.0+cu124"), False),
        ("2.1.2", ("2.1.2", "2.6.0"), False),  # not moved yet
        ("2.8.0", ("", ""), False),  # interpreters: nobody knows their releases yet
    ],
)
def test_a_pin_of_neither_release_is_told(tmp_path: Path, pin: str, pair: tuple[str, str], told: bool) -> None:
    notes = pin_notes(project(tmp_path, pin), *pair)
    words = f"pyproject.toml asks for torch=={pin}, and this run judges {pair[1]}: --new pinned judges what is pinned"
    assert notes == (words,) * told


def test_requirement_files_count_and_a_project_without_any_pin_is_silent(tmp_path: Path) -> None:
    assert pin_notes(tmp_path, "2.1.2", "2.6.0") == ()
    (tmp_path / "requirements-gpu.txt").write_text(
        "-r base.txt\ntorch==2.8.0 --hash=sha256:0 \\\n# torch==1.0\ntorch\n"
    )
    (note,) = pin_notes(tmp_path, "2.1.2", "2.6.0")
    assert note.startswith("requirements-gpu.txt asks for torch==2.8.0, ")


def test_the_pinned_release_is_judged(tmp_path: Path) -> None:
    assert Project(folder=project(tmp_path)).settings.new == "2.8.0"
    assert Project(folder=tmp_path, overrides={"new": "2.6.0"}).settings.new == "2.6.0"
    assert pinned_release(project(tmp_path, requirements="torch==2.8.0\n")) == "2.8.0"
    with pytest.raises(
        ConfigError, match="several releases of torch: 2.8.0 in pyproject.toml, 2.7.1 in requirements.txt"
    ):
        pinned_release(project(tmp_path, requirements="torch==2.7.1\n"))
    with pytest.raises(ConfigError, match="pins none; name the release, or write torch==RELEASE into pyproject.toml"):
        Project(folder=project(tmp_path, "2.*", requirements="torch>=2.1\n")).settings  # noqa: B018
