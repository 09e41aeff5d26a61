"""What is known of environments before they are built, and of those that are there."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.doctor import candidates
from harness.doctor.candidates import examine
from harness.doctor.wheels import SOURCE
from harness.domain.environment import EnvSpec, Environment
from harness.domain.machine import IndexAnswer
from harness.environments.builder import EnvironmentBuilder, EnvironmentSlot
from harness.environments.interpreters import find_pythons
from tests.unit.doctor.test_wheel_look import NEW_VERSION, site

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
def test_a_python_for_which_the_release_has_no_wheel_is_told(
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
