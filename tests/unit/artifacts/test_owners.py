"""``fleet.toml``: later tables win key by key, and every mistake is named with its place."""

from pathlib import Path

import pytest

from harness.core.errors import ConfigError, FixtureError
from harness.artifacts.owners import load_fleet_manifest, read_fleet_manifest

TEXT = """
tiers = ["batch", "online"]
[[artifacts]]
match = "*"
owner = "platform"
tier = "batch"
[[artifacts]]
match = "ads/*"
owner = "ads"
requests = [{ arguments = [{ shape = [2, 6] }] }]
"""


def test_later_tables_win_key_by_key() -> None:
    manifest = read_fleet_manifest(TEXT, file="fleet.toml")
    assert manifest.tiers == ("batch", "online")
    assert manifest.of("search/a.pt") == {"owner": "platform", "tier": "batch"}
    said = manifest.of("ads/1/a.pt")
    assert (said["owner"], said["tier"], said["requests"][0]["method"]) == ("ads", "batch", "forward")


def test_a_pattern_that_matches_nothing_is_named() -> None:
    manifest = read_fleet_manifest(TEXT, file="fleet.toml")
    assert manifest.idle([["search/a.pt"]]) == ("fleet.toml: match = 'ads/*' means none of 1 artifacts",)
    assert manifest.idle([["search/a.pt"], ["search/b.pt", "ads/b.pt"]]) == ()


def test_a_manifest_of_models_says_what_it_can_of_their_paths() -> None:
    text = """
[[models]]
name = "first"
path = "ads/a[1].pt"
owner = "ads"
tolerance = 0.01
timed = false
inputs = "ads/monday.npz"
[[models]]
path = "b.pt"
requests = [{ arguments = [{ shape = [2, 6], dtype = "int64", below = 3 }] }]
[[models]]
path = "../elsewhere.pt"
owner = "them"
"""
    manifest = read_fleet_manifest(text, file="models.toml")
    asked = {"inputs": "ads/monday.npz", "tolerance": 0.01, "timed": False}
    assert manifest.of("ads/a[1].pt") == {**asked, "owner": "ads"}
    assert manifest.of("b.pt")["requests"][0]["arguments"][0]["below"] == 3
    assert manifest.of("elsewhere.pt") == {}
    (note,) = manifest.idle([["ads/a[1].pt"], ["b.pt"], ["elsewhere.pt"]])
    assert note == "models.toml: match = '../elsewhere.pt' means none of 3 artifacts"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[artifacts]]\nowner = 'ads'", "artifacts, number 1: lacks match"),
        ("[[artifacts]]\nmatch = '*'", "number 1: says nothing"),
        ("[[artifacts]]\nmatch = '*'\nowner = 3", "number 1.owner: expected"),
        ("[[artifacts]]\nmatch = '*'\nowners = 'ads'", "owners"),
        ("[[artifacts]]\nmatch = '*'\ninputs = 'a.npz'\nrequests = []", "twice"),
        ("tiers = ['a']\n[[artifacts]]\nmatch = '*'\ntier = 'b'", "tiers does not have 'b'"),
        ("tiers = [", "not valid TOML"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(FixtureError) as error:
        read_fleet_manifest(text, file="fleet.toml")
    assert said in str(error.value) and str(error.value).startswith("fleet.toml")


def test_a_file_that_is_not_there_or_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--manifest nowhere.toml: No such file"):
        load_fleet_manifest(tmp_path / "nowhere.toml", file="nowhere.toml")
    (tmp_path / "fleet.toml").write_bytes(b"\xff")
    with pytest.raises(FixtureError, match="fleet.toml cannot be read"):
        load_fleet_manifest(tmp_path / "fleet.toml", file="fleet.toml")


def test_a_pattern_that_no_path_could_match_is_refused() -> None:
    with pytest.raises(FixtureError, match=r"match has 100,000 characters"):
        read_fleet_manifest(f'[[artifacts]]\nmatch = "{"[" * 100_000}"\nowner = "x"', file="fleet.toml")
