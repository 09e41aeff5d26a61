"""Who decides: as git signs commits, else by the login name."""

import getpass
import subprocess
from pathlib import Path

import pytest

from harness.machine import person


def test_git_says_who(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ann@example.com")
    assert person.who(tmp_path) == "Ann <ann@example.com>"


def test_the_repository_of_the_project_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    for words in (["init", "-q"], ["config", "user.name", "Bob"], ["config", "user.email", "bob@example.com"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert person.who(tmp_path) == "Bob <bob@example.com>"


def test_without_git_it_is_the_login_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(getpass, "getuser", lambda: "carol")
    assert person.who(tmp_path) == "carol"


def test_a_user_without_a_name_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert person.who(tmp_path) == "unknown"
