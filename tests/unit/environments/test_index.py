"""The package index asked through a fake uv that knows some releases, or through a pip that cannot reach any."""

import datetime as dt
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import EnvironmentUnavailable
from harness.environments.index import Listing, ReleaseIndex
from harness.store import codec

# What `uv pip compile` prints for the newest of these that the requirement on its input does not exclude.
FAKE_UV = """#!{python}
import re, sys
open({calls!r}, "a").write(" ".join(sys.argv[1:]) + chr(10))
wanted = sys.stdin.read()
left = [release for release in {releases!r} if "!=" + release not in wanted.split(",")]
if {broken!r}:
    sys.exit({broken!r})
if left:
    print("torch==" + left[0])
else:
    sys.exit("error: No solution found when resolving dependencies")
"""
UNREACHABLE = """error: Request failed after 3 retries in 7.1s
  cause: Failed to fetch: http://me:secret@127.0.0.1:9/simple/torch/
  cause: tcp connect error"""


def fake_uv(folder: Path, *releases: str, broken: str = "") -> str:
    path = folder / "uv"
    text = FAKE_UV.format(python=sys.executable, calls=str(folder / "calls"), releases=releases, broken=broken)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def index(folder: Path, uv: str | None, *args: str) -> ReleaseIndex:
    return ReleaseIndex(uv=uv, python="3.11", interpreter=sys.executable, index_args=args, folder=folder / "releases")


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_every_release_between_is_asked_for_with_the_arguments_of_the_environments(tmp_path: Path) -> None:
    uv = fake_uv(tmp_path, "2.6.0", "2.5.1", "2.5.0+cpu", "2.5.0", "2.1.2")
    found = index(tmp_path, uv, "--index-url", "https://example.org/simple").releases("2.1.2", "2.6.0")
    assert found.releases == ("2.1.2", "2.5.0", "2.5.1", "2.6.0")
    assert all(
        "--python-version 3.11" in call and "--index-url https://example.org/simple" in call for call in calls(tmp_path)
    )


def test_an_answer_is_remembered_for_a_day_and_for_both_directions(tmp_path: Path) -> None:
    uv = fake_uv(tmp_path, "2.6.0", "2.5.1", "2.1.2")
    index(tmp_path, uv).releases("2.1.2", "2.6.0")
    asked = len(calls(tmp_path))
    assert index(tmp_path, uv).releases("2.6.0", "2.1.2").releases == ("2.6.0", "2.5.1", "2.1.2")
    assert len(calls(tmp_path)) == asked
    index(tmp_path, uv, "--pre").releases("2.1.2", "2.6.0")
    assert len(calls(tmp_path)) > asked


def test_an_index_that_cannot_be_reached_is_an_error_with_a_way_out_and_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        index(tmp_path, fake_uv(tmp_path, broken=UNREACHABLE)).releases("2.1.2", "2.6.0")
    assert "Failed to fetch: http://***@127.0.0.1:9/simple/torch/" in caught.value.message
    assert "--releases" in caught.value.hint
    assert not (tmp_path / "releases").exists()


def test_an_old_answer_is_better_than_none_and_says_how_old_it_is(tmp_path: Path) -> None:
    index(tmp_path, fake_uv(tmp_path, "2.6.0", "2.5.1")).releases("2.1.2", "2.6.0")
    (path,) = (tmp_path / "releases").glob("*.json")
    known = codec.read_json(path, Listing)
    then = dt.datetime.fromisoformat(known.asked) - dt.timedelta(days=30)
    path.write_bytes(codec.canonical(Listing(releases=known.releases, asked=then.isoformat())))
    found = index(tmp_path, fake_uv(tmp_path, broken=UNREACHABLE)).releases("2.1.2", "2.6.0")
    assert found.releases == ("2.1.2", "2.5.1", "2.6.0")
    assert "Failed to fetch" in found.note and then.isoformat() in found.note
    assert index(tmp_path, fake_uv(tmp_path, "2.6.0", "2.4.0")).releases("2.1.2", "2.6.0").releases[1] == "2.4.0"


@pytest.mark.parametrize(("age", "times"), [(dt.timedelta(hours=1), 1), (dt.timedelta(hours=-1), 2)])
def test_an_answer_of_an_hour_to_come_is_not_relied_on(tmp_path: Path, age: dt.timedelta, times: int) -> None:
    uv = fake_uv(tmp_path, "2.6.0")
    index(tmp_path, uv).releases("2.1.2", "2.6.0")
    asked = len(calls(tmp_path))
    (path,) = (tmp_path / "releases").glob("*.json")
    then = dt.datetime.now(dt.UTC) - age
    path.write_bytes(codec.canonical(Listing(releases=("2.6.0",), asked=then.isoformat())))
    index(tmp_path, uv).releases("2.1.2", "2.6.0")
    assert len(calls(tmp_path)) == times * asked


def test_a_damaged_memory_is_asked_again(tmp_path: Path) -> None:
    uv = fake_uv(tmp_path, "2.6.0")
    index(tmp_path, uv).releases("2.1.2", "2.6.0")
    (path,) = (tmp_path / "releases").glob("*.json")
    path.write_text("{")
    assert index(tmp_path, uv).releases("2.1.2", "2.6.0").releases == ("2.1.2", "2.6.0")


@pytest.mark.slow
def test_pip_without_an_index_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    empty = ("--no-index", "--find-links", str(tmp_path))
    with pytest.raises(EnvironmentUnavailable, match="pip says"):
        index(tmp_path, None, *empty).releases("2.1.2", "2.6.0")
