"""What is known of environments: built or not, and what index and cache have, in the words of uv and pip."""

import sys
from dataclasses import replace
from pathlib import Path
import pytest
from harness.environments import candidates
from harness.environments.candidates import examine
from harness.environments.wheel_requirements import SOURCE
from harness.core.environment import EnvSpec, Environment
from harness.environments.candidate_facts import IndexAnswer
from harness.environments.builder import EnvironmentBuilder, EnvironmentSlot
from harness.environments.interpreters import find_pythons
from tests.unit.environments.test_wheel_requirements import NEW_VERSION, site
import time
from harness.environments.candidates import ask_index

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
SPEC = EnvSpec(name="torch 2.15.0", release="2.15.0", python=OWN)


@pytest.fixture
def builder(tmp_path: Path) -> EnvironmentBuilder:
    return EnvironmentBuilder(tmp_path, progress=lambda name, text: None, uv=None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The interpreters with which an index was asked; it has everything."""
    found: list[str] = []

    def ask(spec: EnvSpec, *, uv: str | None, interpreter: str) -> IndexAnswer:
        found.append(interpreter)
        return IndexAnswer(found=True)

    monkeypatch.setattr(candidates, "ask_index", ask)
    return found


def test_what_is_not_built_is_known_from_the_table_and_the_index(builder: EnvironmentBuilder, asked: list[str]) -> None:
    found = examine(SPEC, builder, uv=None, pythons=find_pythons())
    assert (found.built, found.python, found.index) == (False, OWN, IndexAnswer(found=True))
    assert found.wheel is not None
    assert (found.wheel.cuda, found.wheel.source) == ("13.2", SOURCE)
    assert len(asked) == 1


def test_what_is_built_is_known_from_its_files_and_no_index_is_asked(
    builder: EnvironmentBuilder, asked: list[str], tmp_path: Path
) -> None:
    slot = EnvironmentSlot(root=tmp_path, release="2.15.0", python=OWN, extras=(), index_args=())
    inside = site(slot.folder / "lib" / f"python{OWN}" / "site-packages", NEW_VERSION, "cp311-cp311-linux_x86_64")
    (inside / "torch-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.15.0\n")
    slot.interpreter.parent.mkdir()
    slot.interpreter.touch()
    slot.mark_built()
    found = examine(SPEC, builder, uv=None, pythons=find_pythons())
    assert (found.built, found.index, asked) == (True, None, [])
    assert found.wheel is not None
    assert (found.wheel.cuda, found.wheel.source) == ("13.2", "the installed wheel")
    assert found.wheel.architectures == ("sm_75", "sm_80", "sm_90", "compute_90")
    assert found.wheel.glibc == "2.28"  # its tag tells nothing, so the table does


@pytest.mark.parametrize(("release", "unsuited"), [("2.6.0", False), ("1.7.0", True)])
def test_a_python_for_which_the_release_has_no_wheel_is_reported(
    builder: EnvironmentBuilder, asked: list[str], release: str, *, unsuited: bool
) -> None:
    found = examine(replace(SPEC, release=release), builder, uv=None, pythons=find_pythons())
    assert (found.unsuited, found.trouble) == (unsuited, "")
    assert len(asked) == 1


def test_a_python_that_does_not_run_is_trouble(builder: EnvironmentBuilder, asked: list[str], tmp_path: Path) -> None:
    found = examine(SPEC, builder, uv=None, pythons={OWN: (str(tmp_path / "python"),)})
    assert found.trouble.startswith(f"no working CPython {OWN} was found")
    assert found.hint
    assert asked == []


def test_a_ready_made_interpreter_is_asked_and_its_torch_is_read(
    builder: EnvironmentBuilder, stub_environment: Environment
) -> None:
    spec = EnvSpec(name="prod", interpreter=stub_environment.interpreter)
    found = examine(spec, builder, uv=None, pythons={})
    assert (found.built, found.trouble, found.index) == (True, "", None)
    assert found.python.endswith("with torch 2.1.2")


def test_an_interpreter_that_is_not_there_is_trouble(builder: EnvironmentBuilder) -> None:
    found = examine(EnvSpec(name="prod", interpreter="/nowhere/python"), builder, uv=None, pythons={})
    assert (found.name, found.trouble) == ("prod", "/nowhere/python does not exist")


def test_an_interpreter_that_cannot_tell_its_folders_has_none() -> None:
    assert candidates._sites("/nowhere/python") == []


LISTED = EnvSpec(name="torch 2.6.0", release="2.6.0", python="3.11")
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
    return ask_index(LISTED, uv=program, interpreter="/usr/bin/python3", limit_s=limit_s)


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
    assert ask_index(LISTED, uv=None, interpreter=str(python), limit_s=5.0).found is found
