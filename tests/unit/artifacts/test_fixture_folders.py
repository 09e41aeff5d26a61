"""Fixture files after they were read: are they still the same?"""

import sys
from pathlib import Path

import pytest

from harness.core.models import ModelDeclaration
from harness.core.errors import FixtureError
from harness.artifacts.fixture_folders import GROUP, changed_sources, declared_in, read_fixtures

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


BOMB = 'raise RuntimeError("this was imported")\n'
IMPORT_FAILS = BOMB + 'from fixtures.declare import model\n@model("NAME")\ndef build():\n    pass\n'


def package(root: Path, *modules: str, init: bool = True) -> Path:
    """Write modules that blow up when they are imported, each declaring a model of its own name."""
    for dotted in modules:
        path = root.joinpath(*dotted.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(IMPORT_FAILS.replace("NAME", path.stem))
        for folder in path.relative_to(root).parents[:-1] if init else ():
            (root / folder / "__init__.py").write_text(BOMB)
    return root


def declared(name: str, project: Path) -> list[tuple[str, str, str]]:
    return [(model.name, model.module, model.package_root) for model in declared_in(name, project)]


def refusal(name: str, project: Path) -> str:
    with pytest.raises(FixtureError) as caught:
        declared_in(name, project)
    return str(caught.value)


def test_a_folder_means_what_it_always_meant(tmp_path: Path) -> None:
    package(tmp_path, "mypkg.zoo.one")
    assert declared_in("mypkg/zoo", tmp_path) == read_fixtures(tmp_path / "mypkg" / "zoo")
    assert declared(str(tmp_path / "mypkg"), tmp_path) == [("one", "mypkg.zoo.one", str(tmp_path))]


@pytest.mark.parametrize("place", ["", "src"])
def test_a_package_is_found_in_the_project_and_its_src(tmp_path: Path, place: str) -> None:
    root = package(tmp_path / place, "mypkg.zoo.one", "mypkg.zoo.deep.two", "mypkg.other.three")
    assert declared("mypkg.zoo", tmp_path) == [
        ("two", "mypkg.zoo.deep.two", str(root)),
        ("one", "mypkg.zoo.one", str(root)),
    ]
    assert not {"mypkg", "mypkg.zoo"} & sys.modules.keys()


def test_a_single_module_is_found(tmp_path: Path) -> None:
    package(tmp_path, "mypkg.zoo")
    assert declared("mypkg.zoo", tmp_path) == [("zoo", "mypkg.zoo", str(tmp_path))]


def test_packages_without_init_are_found_with_all_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "space.zoo.one", init=False)
    more = package(tmp_path / "more", "space.zoo.two", init=False)
    monkeypatch.setenv("PYTHONPATH", str(more))
    assert declared("space.zoo", tmp_path) == [
        ("one", "space.zoo.one", str(tmp_path)),
        ("two", "space.zoo.two", str(more)),
    ]


def test_the_python_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = package(tmp_path / "lib", "mypkg.one")
    monkeypatch.setenv("PYTHONPATH", f"/nowhere:{root}")
    assert declared("mypkg", tmp_path) == [("one", "mypkg.one", str(root))]


def installed(folder: Path, *points: str) -> Path:
    """Return a folder of installed packages, with a distribution that has these entry points."""
    about = folder / "my_models-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-models\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n" + "\n".join(points) + "\n")
    return package(folder, "mypkg.zoo.one")


@pytest.mark.parametrize("folder", ["site-packages", "vendored"])
def test_an_installed_package_puts_no_folder_before_the_packages_of_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    site = installed(tmp_path / folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    models = declared_in("mypkg.zoo", tmp_path)
    source = str(site / "mypkg" / "zoo" / "one.py")
    assert [(model.package_root, model.module, model.source) for model in models] == [("", "mypkg.zoo.one", source)]
    assert changed_sources(models) == []
    Path(source).write_text(BOMB)
    assert changed_sources(models) == [source]


def test_an_entry_point_names_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = installed(tmp_path / "site-packages", "our-zoo = mypkg.zoo", "gone = nowhere.zoo", "lost = mypkg.zo")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    assert declared_in("our-zoo", tmp_path) == declared_in("mypkg.zoo", tmp_path)
    assert "gone, which is the entry point of nowhere.zoo: there is no such" in refusal("gone", tmp_path)
    assert "lost, which is the entry point of mypkg.zo: mypkg has no zo" in refusal("lost", tmp_path)
    said = refusal("our-zo", tmp_path)
    assert "entry points: gone, lost, our-zoo; did you mean" in said
    assert '"our-zoo"' in said


def test_a_name_that_means_nothing_names_the_nearest_and_where_it_was_looked_for(tmp_path: Path) -> None:
    package(tmp_path, "mypkg.zoo.one")
    said = refusal("mypkg.zo", tmp_path)
    assert f'mypkg has no zo (looked in {tmp_path / "mypkg"}); did you mean "zoo"?' in said
    said = refusal("mypgk.zoo", tmp_path)
    assert f"(looked in {tmp_path}, {tmp_path / 'src'}, " in said
    assert 'did you mean "mypkg"' in said
    assert "mypkg.zoo.one is no package" in refusal("mypkg.zoo.one.two", tmp_path)
    assert "there is no fixture folder" in refusal("mypkg/zo", tmp_path)


def test_zoo_is_the_gates_own_unless_the_project_has_one(tmp_path: Path) -> None:
    own = {model.name for model in declared_in("zoo", tmp_path)}
    assert len(own) > 60 and "dlrm" in own
    (tmp_path / "zoo").mkdir()
    with pytest.raises(FixtureError, match="declares no model"):
        declared_in("zoo", tmp_path)


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    assert "is no Python source" in refusal("math", tmp_path)


def test_a_package_that_declares_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "__init__.py").write_text("")
    (tmp_path / "src" / "void").mkdir(parents=True)
    assert "declares no model" in refusal("empty", tmp_path)
    assert "declares no model" in refusal("void", tmp_path)


def test_declarations_are_unique_across_parts(tmp_path: Path) -> None:
    package(tmp_path, "mypkg.a.one", "mypkg.b.one")
    assert 'model "one" is already declared' in refusal("mypkg", tmp_path)
    assert isinstance(declared_in("mypkg.a", tmp_path)[0], ModelDeclaration)
