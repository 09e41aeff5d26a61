"""Fixture files after they were read: are they still the same?"""

from pathlib import Path

import pytest

from harness.models.fixture_folders import changed_sources, read_fixtures

PROJECT = Path(__file__).resolve().parents[3]
FIXTURE = """from fixtures.declare import model


@model("one")
def one():
    pass


@model("two")
def two():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of two models each."""
    for name in ("a", "b"):
        text = FIXTURE.replace("one", f"{name}_one").replace("two", f"{name}_two")
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_files_that_nobody_touched_have_not_changed() -> None:
    assert changed_sources(read_fixtures(PROJECT / "fixtures")) == []


def test_changed_and_removed_files_are_named_once(folder: Path) -> None:
    models = read_fixtures(folder)
    assert changed_sources(models) == []
    (folder / "b.py").write_text((folder / "b.py").read_text() + "# x\n")
    assert [Path(source).name for source in changed_sources(models)] == ["b.py"]
    (folder / "a.py").unlink()
    assert [Path(source).name for source in changed_sources(models)] == ["a.py", "b.py"]


def test_folders_below_are_read_unless_they_are_left_out(folder: Path) -> None:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "c.py").write_text(FIXTURE)
    assert [model.name for model in read_fixtures(folder)] == ["a_one", "a_two", "b_one", "b_two", "one", "two"]
    assert [model.name for model in read_fixtures(folder, subfolders=False)] == ["a_one", "a_two", "b_one", "b_two"]
