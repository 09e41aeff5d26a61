"""What the index and the cache have, from uv's and pip's own words; the programs are scripts that say them."""

import time
from pathlib import Path

import pytest

from harness.doctor.index import ask_index
from harness.domain.environment import EnvSpec
from harness.domain.machine import IndexAnswer

SPEC = EnvSpec(name="torch 2.6.0", release="2.6.0", python="3.11")
FOUND = "echo torch==2.6.0"
REFUSED = (
    "echo 'error: Request failed after 1 retry' >&2; "
    "echo '  cause: tcp connect error: Connection refused (os error 111)' >&2; exit 2"
)
NONE = (
    "echo '  No solution found when resolving dependencies:' >&2; "
    "echo 'Because there is no version of torch==2.6.0 and you require torch==2.6.0' >&2; exit 1"
)
CACHED = "echo 'Would install 23 packages' >&2"
HALF = "echo 'Would download 17 packages' >&2; echo 'Would install 23 packages' >&2"


def uv(folder: Path, online: str, offline: str) -> str:
    program = folder / "uv"
    program.write_text(f'#!/bin/sh\ncase "$*" in *--offline*) {offline};; *) {online};; esac\n')
    program.chmod(0o755)
    return str(program)


def ask(program: str, limit_s: float = 5.0) -> IndexAnswer:
    return ask_index(SPEC, uv=program, interpreter="/usr/bin/python3", limit_s=limit_s)


def test_the_index_has_it_and_the_cache_does_not(tmp_path: Path) -> None:
    assert ask(uv(tmp_path, FOUND, HALF)) == IndexAnswer(found=True, cached=False)


def test_a_cache_that_needs_no_download_has_it(tmp_path: Path) -> None:
    assert ask(uv(tmp_path, FOUND, CACHED)) == IndexAnswer(found=True, cached=True)


def test_an_index_that_cannot_be_reached_did_not_say_no(tmp_path: Path) -> None:
    found = ask(uv(tmp_path, REFUSED, CACHED))
    assert (found.found, found.reached, found.cached) == (None, False, True)
    assert found.said == "the package index could not be reached"
    assert found.hint


def test_a_release_that_the_index_does_not_have(tmp_path: Path) -> None:
    found = ask(uv(tmp_path, NONE, "exit 1"))
    assert (found.found, found.reached, found.cached) == (False, True, False)
    assert found.said == "the index has no torch 2.6.0"


def test_a_silent_index_takes_no_longer_than_its_limit(tmp_path: Path) -> None:
    begin = time.monotonic()
    found = ask(uv(tmp_path, "exec sleep 20", CACHED), limit_s=0.5)
    assert time.monotonic() - begin < 15
    assert found == IndexAnswer(found=None, reached=False, cached=True, said="no answer in 0.5 s")


@pytest.mark.parametrize(("offline", "found"), [(CACHED, True), (HALF, False)])
def test_where_uv_is_told_to_stay_offline_only_the_cache_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: str, found: bool
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    answer = ask(uv(tmp_path, FOUND, offline))
    assert (answer.found, answer.reached, answer.cached) == (found, False, found)


def test_an_installer_that_is_not_there(tmp_path: Path) -> None:
    found = ask(str(tmp_path / "uv"))
    assert (found.found, found.reached) == (None, False)
    assert "cannot be started" in found.said


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("echo 'torch (2.15.0)'; echo 'Available versions: 2.15.0, 2.6.0, 2.1.2'", True),
        ("echo 'torch (2.15.0)'; echo 'Available versions: 2.15.0'", False),
        ("echo 'NewConnectionError: Failed to establish a new connection' >&2; exit 1", None),
    ],
)
def test_pip_is_asked_where_there_is_no_uv(tmp_path: Path, said: str, found: bool | None) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{said}\n")
    python.chmod(0o755)
    assert ask_index(SPEC, uv=None, interpreter=str(python), limit_s=5.0).found is found
