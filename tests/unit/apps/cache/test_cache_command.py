"""``cache`` as it is typed: what it shows, what it removes, and what it refuses."""

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.environments.builder import EnvironmentBuilder
from harness.environments.pythons import OWN_PYTHON
from harness.core.environment import EnvSpec
from tests.programs.installers import fake_uv


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds torch 2.6.0."""
    folder = tmp_path / "envs"
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(folder))
    uv = str(fake_uv(tmp_path / "uv", calls=tmp_path / "calls"))
    builder = EnvironmentBuilder(folder, progress=lambda *_: None, uv=uv, free_disk_bytes=0)
    builder.build(EnvSpec(name="torch 2.6.0", release="2.6.0", python=OWN_PYTHON))
    return folder


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["cache", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_status_shows_what_there_is(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "status")
    assert code == 0
    assert "torch-2.6.0-cp" in out and "environment" in out and "today" in out
    assert f"1 entry in {root}" in " ".join(out.split())


def test_status_as_json_has_every_number(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "status", "--format", "json")
    (entry,) = json.loads(out)["entries"]
    assert (code, entry["release"], entry["state"], entry["kind"]) == (0, "2.6.0", "ready", "environment")
    assert entry["size_bytes"] > 0


def test_clean_says_what_it_freed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "clean", "2.6.0", "--dry-run", "--format", "json")
    would = json.loads(out)
    assert (code, would["dry_run"], len(would["removed"])) == (0, True, 1)
    assert list(root.glob("torch-*/environment.json"))
    code, out, _ = typed(capsys, "clean", "2.6.0", "--format", "json")
    assert json.loads(out)["freed_bytes"] == would["freed_bytes"] > 0
    assert not list(root.glob("torch-*"))


def test_what_was_used_today_is_not_older_than_a_day(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "clean", "--older-than", "1d")
    assert code == 0 and "0 entries removed" in out
    assert list(root.glob("torch-*/environment.json"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--older-than 30d"),
        (("--older-than", "30"), "--older-than: expected a time"),
        (("2.7.0",), "the cache has no 2.7.0; there are 2.6.0"),
    ],
)
def test_clean_refuses_in_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    code, out, err = typed(capsys, "clean", *words)
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert (code, out) == (2, "") and says in line
    assert list(root.glob("torch-*/environment.json"))


def test_an_empty_cache_is_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "none"))
    code, out, _ = typed(capsys, "status")
    assert code == 0 and f"0 entries in {tmp_path / 'none'}" in " ".join(out.split())
