"""Whose artifacts these are: a pattern means the path of a file below the folder that was named, or a fixture's name."""

from pathlib import Path
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cli import main
from harness.cli.parser import parser
from harness.core.migration import Migrated, MigratedModel, Migration
from harness.core.models import GivenArtifact, ModelDeclaration
from harness.artifacts.owners import read_fleet_manifest
from harness.project import Project
from harness.apps.migration import migrate as migrate_command
from harness.apps.migration.migrate import _owners, _unshown_changes
from tests.unit.builders.migrations import blocked, migration, ready
from harness.report.formats import MIGRATION, Shown
from tests.unit.builders.stages import artifact

GUESS = "guessed from the graph: forward(x=uint8[2, 3])"
ONE = 'from fixtures.declare import model\n@model("declared")\ndef build():\n    pass\n'

MANIFEST = """
[[artifacts]]
match = "*"
owner = "platform"
[[artifacts]]
match = "ads/*"
owner = "ads"
[[artifacts]]
match = "gone/*"
owner = "nobody"
"""


def file(folder: Path, path: str, within: str = "") -> ModelDeclaration:
    given = GivenArtifact(path=str(folder / path), within=within)
    return ModelDeclaration(name=path, package_root=str((folder / path).parent), source=path, given=given)


def test_files_of_a_folder_have_their_path_in_it_and_others_their_name(tmp_path: Path) -> None:
    folder = str(tmp_path.resolve())
    fixture = ModelDeclaration(name="ads/not_a_file", package_root="/", source="zoo.py")
    models = [file(tmp_path, "ads/ranker.pt", folder), file(tmp_path, "search/ranker.pt", folder), fixture]
    owners, notes = _owners([*models, file(tmp_path, "ads/alone.pt")], read_fleet_manifest(MANIFEST, file="fleet.toml"))
    assert owners == {
        "ads/ranker.pt": "ads",
        "search/ranker.pt": "platform",
        "ads/not_a_file": "ads",
        "ads/alone.pt": "platform",
    }
    assert notes == ("fleet.toml: match = 'gone/*' means none of 4 artifacts",)


def test_without_a_manifest_nobody_is_named(tmp_path: Path) -> None:
    owners, notes = _owners([file(tmp_path, "a.pt")], read_fleet_manifest("", file="fleet.toml"))
    assert (owners, notes) == ({"a.pt": ""}, ())


@pytest.mark.parametrize(
    ("environments", "given"),
    [
        ((), set()),
        (("old=/a/python",), {"old"}),
        (("new=/b/python",), {"new"}),
        (("old=/a/python", "new=/b/python"), {"old", "new"}),
        (("prod=/a/python",), set()),
        (("old", "newer=/b/python"), {"old"}),
    ],
)
def test_an_interpreter_for_a_side_is_that_side(environments: tuple[str, ...], given: set[str]) -> None:
    assert Project(folder=Path("/p"), environments=environments).sides_given == given


@pytest.mark.parametrize("sides", [{"old"}, {"new"}, {"old", "new"}])
def test_migrate_takes_the_interpreters_that_its_help_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: set[str]
) -> None:
    """What compat takes as --env old= and --env new=, this takes too: the sides are these interpreters."""
    asked = []

    def run(found: Any, *_: object) -> Migration:
        asked.append(found)
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate_command, "_run", run)
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "models.py").write_text(ONE)
    python = str(tmp_path / "python")
    options = Project(
        folder=tmp_path,
        overrides={"fixtures": "zoo", "old": "2.1.2", "new": "2.6.0", "device": "cpu"},
        environments=tuple(f"{side}={python}" for side in sorted(sides)),
    )
    with pytest.raises(KeyboardInterrupt):
        migrate_command.migrate(options, ())
    (found,) = asked
    named = {"old": found.old, "new": found.loaders[0]}
    for side in ("old", "new"):
        spec = found.specs[named[side]]
        assert (named[side] == side, spec.interpreter == python) == (side in sides, side in sides)


@pytest.mark.parametrize(
    "typed", [["a", "b", "--new", "2.6.0"], ["--new", "2.6.0", "a", "b"], ["a", "--new", "2.6.0", "--artifacts", "b"]]
)
def test_models_are_named_with_and_without_the_option(typed: list[str]) -> None:
    words = ["migrate", *typed]
    assert parser("gate", typed=words).parse_args(words).artifacts == ["a", "b"]
    assert parser("gate", typed=["migrate"]).parse_args(["migrate"]).artifacts == []


def test_a_ready_model_of_guessed_requests_is_warned_of_operators_that_answer_otherwise() -> None:
    old, new = (cast(Any, SimpleNamespace(fingerprint=SimpleNamespace(torch=torch))) for torch in ("2.1.2", "2.6.0"))
    resizing = artifact("resizes", operators=("aten::upsample_bicubic2d",), inputs_note=GUESS)
    known = artifact("given", operators=("aten::upsample_bicubic2d",))
    exports = {item.model: SimpleNamespace(artifact=item) for item in (resizing, known)}
    models = [MigratedModel(model=name, outcome=Migrated.READY) for name in exports]
    (note,) = _unshown_changes(models, cast(Any, SimpleNamespace(exports=exports)), old, new)
    assert note.startswith("resizes: aten::upsample_bicubic2d: ") and "its inputs are guesses" in note
    blocked = [MigratedModel(model="resizes", outcome=Migrated.NOT_CONVERTIBLE)]
    assert not [*_unshown_changes(blocked, cast(Any, SimpleNamespace(exports=exports)), old, new)]


def console(found: Migration) -> str:
    return MIGRATION.render("console", found, Shown(width=200))


def test_what_is_ready_comes_with_the_lines_that_load_it() -> None:
    whole = migration(ready())
    told = console(replace(whole, package_command="gate migrate --package"))
    assert "module = torch.export.load('" in told and "gate migrate --package" in told
    packaged = replace(whole, models=(replace(ready(), package="probes/1/ranker.package.pt2"),))
    told = console(packaged)
    assert 'AOTIModelPackageLoader loader("' in told and "probes/1/ranker.package.pt2" in told
    assert "torch.export.load" not in console(migration(blocked()))


def test_explain_is_for_the_converter_of_torch_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--explain"]) == 2
    error = capsys.readouterr().err
    assert error.splitlines() == [
        "error: --explain finds the smallest part for torch's own converter; add --converter torch"
    ]
