"""Which source an export depends on besides its own file."""

from pathlib import Path

import pytest

from harness.core.models import GivenArtifact, ModelDeclaration
from harness.artifacts import imported_source
from harness.artifacts.fixture_folders import read_fixtures
from harness.artifacts.imported_source import ImportedSource

FILE = """from fixtures.declare import Sample, model


@model("m")
def m():
    return None
"""


def put(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def declared(folder: Path) -> ModelDeclaration:
    (found,) = read_fixtures(folder)
    return found


def digest(declaration: ModelDeclaration) -> str | None:
    return ImportedSource()(declaration)


def test_a_helper_beside_a_fixture_file_counts_and_when_it_was_written_does_not(tmp_path: Path) -> None:
    put(tmp_path, zoo=FILE, helper="LAYERS = 1\n")
    before = digest(declared(tmp_path))
    put(tmp_path, helper="LAYERS = 1\n")
    (tmp_path / "weights.bin").write_bytes(b"1")
    (tmp_path / ".cache").mkdir()
    put(tmp_path / ".cache", x="")
    assert before and digest(declared(tmp_path)) == before
    put(tmp_path, helper="LAYERS = 2\n")
    assert digest(declared(tmp_path)) not in (before, None)


def test_in_a_package_all_of_the_top_level_one_counts_and_what_lies_beside_it_does_not(tmp_path: Path) -> None:
    put(tmp_path / "mylib", __init__="", layers="A = 1\n")
    put(tmp_path / "mylib" / "zoo", __init__="", models=FILE)
    put(tmp_path / "other", __init__="")
    found = declared(tmp_path / "mylib" / "zoo")
    before = digest(found)
    put(tmp_path / "other", __init__="B = 1\n")
    assert digest(found) == before
    put(tmp_path / "mylib", layers="A = 2\n")
    assert digest(found) != before


def test_a_module_that_is_installed_alone_counts_itself(tmp_path: Path) -> None:
    put(tmp_path, zoo=FILE, other="")
    source = str(tmp_path / "zoo.py")
    found = ModelDeclaration(
        name="m", package_root="", module="zoo", factory="m", source=source, line=1, source_digest="0"
    )
    before = digest(found)
    put(tmp_path, other="A = 1\n")
    assert digest(found) == before
    put(tmp_path, zoo=FILE + "\n")
    assert digest(found) != before


def given(folder: Path, inputs: str) -> ModelDeclaration:
    artifact = GivenArtifact(path=str(folder / "m.pt"), inputs=inputs)
    return ModelDeclaration(name="m", package_root="", source="", source_digest="0", how="file", given=artifact)


def test_the_folder_of_a_python_file_of_requests_counts(tmp_path: Path) -> None:
    put(tmp_path / "lib", helper="SIZE = 1\n")
    found = given(tmp_path, str(tmp_path / "m.inputs.py"))
    before = digest(found)
    put(tmp_path / "lib", helper="SIZE = 2\n")
    assert digest(found) != before
    assert digest(given(tmp_path, str(tmp_path / "m.inputs.pt"))) == digest(given(tmp_path, "")) == ""


def test_what_is_too_much_to_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, zoo=FILE, a="", b="")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    put(tmp_path / "env" / "lib", c="", d="")  # an environment that happens to lie there
    found = declared(tmp_path)
    source = ImportedSource()
    monkeypatch.setattr(imported_source, "MOST_FILES", 3)
    assert source(found) is not None and source.too_many == []
    monkeypatch.setattr(imported_source, "MOST_FILES", 2)
    source = ImportedSource()
    assert source(found) is None and source(found) is None
    assert source.too_many == [tmp_path]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    put(tmp_path, zoo=FILE)
    (tmp_path / "again").symlink_to(tmp_path)
    assert digest(declared(tmp_path)) is not None
