"""Whose artifacts these are: a pattern means the path of a file below the folder that was named, or a fixture's name."""

from pathlib import Path

from harness.domain.models import GivenArtifact, ModelDeclaration
from harness.models.owners import read_fleet_manifest
from harness.run.releases.migrate import _owners

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
