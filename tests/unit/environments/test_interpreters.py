"""Finding Pythons by name, verifying one by a run, and looking into ready-made interpreters."""

import os
import sys
import time
from pathlib import Path

import pytest

from harness.environments import interpreters
from harness.environments.interpreters import find_pythons, inspect_interpreter, verified_python
from harness.environments.pythons import OWN_PYTHON
from harness.core.errors import EnvironmentUnavailable
from tests.programs import stub


def program(path: Path, body: str = "exit 1") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def environ_of(home: Path, *folders: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.pathsep.join(map(str, folders))}


def test_path_pyenv_and_uv_are_searched_in_this_order(tmp_path: Path) -> None:
    on_path = program(tmp_path / "bin" / "python3.9")
    pyenv = program(tmp_path / ".pyenv/versions/3.9.18/bin/python3.9")
    managed = program(tmp_path / ".local/share/uv/python/cpython-3.9.20-linux-x86_64-gnu/bin/python3.9")
    assert find_pythons(environ_of(tmp_path, tmp_path / "bin"))["3.9"] == (on_path, pyenv, managed)


def test_newest_patch_release_comes_first(tmp_path: Path) -> None:
    old = program(tmp_path / ".pyenv/versions/3.8.9/bin/python3.8")
    new = program(tmp_path / ".pyenv/versions/3.8.18/bin/python3.8")
    assert find_pythons(environ_of(tmp_path))["3.8"] == (new, old)


def test_overriding_variables_are_followed(tmp_path: Path) -> None:
    pyenv = program(tmp_path / "p/versions/3.8.1/bin/python3.8")
    managed = program(tmp_path / "u/cpython-3.9.1-linux-x86_64-gnu/bin/python3.9")
    environ = environ_of(tmp_path) | {"PYENV_ROOT": str(tmp_path / "p"), "UV_PYTHON_INSTALL_DIR": str(tmp_path / "u")}
    found = find_pythons(environ)
    assert (found["3.8"], found["3.9"]) == ((pyenv,), (managed,))


@pytest.mark.parametrize(
    "path",
    [
        ".pyenv/shims/python3.6",
        "bin/python3.6-config",
        "bin/python3.6t",
        ".pyenv/versions/pypy3.6-7.3.3/bin/python3.6",
        ".local/share/uv/python/cpython-3.6.0+freethreaded-linux-x86_64-gnu/bin/python3.6",
        "missing/python3.7",
    ],
)
def test_what_only_looks_like_a_cpython_is_left_out(tmp_path: Path, path: str) -> None:
    program(tmp_path / path)
    folders = (tmp_path / ".pyenv/shims", tmp_path / "bin", tmp_path / "nowhere")
    assert "3.6" not in find_pythons(environ_of(tmp_path, *folders))


def test_file_that_may_not_be_executed_is_left_out(tmp_path: Path) -> None:
    Path(program(tmp_path / "bin" / "python3.6")).chmod(0o644)
    assert "3.6" not in find_pythons(environ_of(tmp_path, tmp_path / "bin"))


def test_own_interpreter_comes_first_and_once(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / f"python{OWN_PYTHON}").symlink_to(sys.executable)
    found = find_pythons(environ_of(tmp_path, tmp_path / "bin"), own=sys.executable)
    assert found == {OWN_PYTHON: (sys.executable,)}


def test_minors_are_in_numeric_order(tmp_path: Path) -> None:
    for minor in ("3.9", "3.10", "3.8"):
        program(tmp_path / "bin" / f"python{minor}")
    found = [minor for minor in find_pythons(environ_of(tmp_path, tmp_path / "bin")) if minor != OWN_PYTHON]
    assert found == [minor for minor in ("3.8", "3.9", "3.10") if minor != OWN_PYTHON]


def test_finding_starts_nothing(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "python3.9", f"touch '{tmp_path}/started'")
    find_pythons(environ_of(tmp_path, tmp_path / "bin"))
    assert not (tmp_path / "started").exists()


def test_verification_skips_a_shim_that_fails_and_one_of_another_version(tmp_path: Path) -> None:
    shim = program(tmp_path / "shim", "echo 'pyenv: python3.9: command not found' >&2; exit 127")
    other = program(tmp_path / "other", "echo cpython 2.7")
    good = {OWN_PYTHON: (shim, other, sys.executable)}
    assert verified_python(OWN_PYTHON, good) == sys.executable


def test_no_working_python_names_what_was_tried(tmp_path: Path) -> None:
    shim = program(tmp_path / "shim", "echo 'pyenv: python3.9: command not found' >&2; exit 127")
    with pytest.raises(EnvironmentUnavailable) as caught:
        verified_python("3.9", {"3.9": (shim, str(tmp_path / "gone"))})
    assert "command not found" in caught.value.message
    assert "No such file" in caught.value.message
    assert "install Python 3.9" in caught.value.hint


def test_python_that_is_not_installed_names_the_installed_ones() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"installed: 3\.11, 3\.12"):
        verified_python("3.9", {"3.11": (), "3.12": ()})


def test_interpreter_that_never_answers_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "VERIFY_TIMEOUT_S", 0.3)
    stuck = program(tmp_path / "stuck", "(sleep 60; true) & sleep 60")
    started = time.monotonic()
    with pytest.raises(EnvironmentUnavailable, match="no answer"):
        verified_python("3.9", {"3.9": (stuck,)})
    assert time.monotonic() - started < 30
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)


@pytest.mark.parametrize("answer", ["[[[", "{}", '{"python": 3}'])
def test_an_interpreter_that_answers_something_else_is_named(tmp_path: Path, answer: str) -> None:
    other = program(tmp_path / "other", f"echo 'facts:{answer}'")
    with pytest.raises(EnvironmentUnavailable, match=f"{other} answers with something else"):
        interpreters.inspect_interpreter(other)


def fake_environment(folder: Path, *, version_file: str | None, metadata: str | None = None) -> str:
    """Return the interpreter of a virtual environment of this very Python with a torch made of two files."""
    site = folder / "lib" / f"python{OWN_PYTHON}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    if version_file is not None:
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text("raise RuntimeError('must not be imported')\n")
        (site / "torch" / "version.py").write_text(version_file)
    if metadata is not None:
        (site / f"torch-{metadata}.dist-info").mkdir()
        (site / f"torch-{metadata}.dist-info" / "METADATA").write_text(f"Name: torch\nVersion: {metadata}\n")
    return str(folder / "bin" / "python")


def test_ready_made_torch_is_read_without_importing_it(tmp_path: Path) -> None:
    text = "from typing import Optional\n__all__ = ['__version__']\n__version__ = '2.6.0+cu124'\n"
    facts = inspect_interpreter(fake_environment(tmp_path / "e", version_file=text))
    assert facts.torch == "2.6.0+cu124"
    assert facts.python.startswith(OWN_PYTHON)
    again = fake_environment(tmp_path / "f", version_file=text + "git_version = 'abc'\n")
    assert inspect_interpreter(again).build != facts.build


def test_torch_without_a_version_file_is_known_by_its_metadata(tmp_path: Path) -> None:
    assert inspect_interpreter(fake_environment(tmp_path / "e", version_file="", metadata="2.5.1")).torch == "2.5.1"


def test_torch_of_unknown_version_is_still_a_torch(tmp_path: Path) -> None:
    assert inspect_interpreter(fake_environment(tmp_path / "e", version_file="")).torch == "unknown"


def test_interpreter_without_torch_says_what_to_do(tmp_path: Path) -> None:
    python = fake_environment(tmp_path / "e", version_file=None)
    with pytest.raises(EnvironmentUnavailable) as caught:
        inspect_interpreter(python)
    assert str(caught.value) == f"{python} has no torch; pip install torch there, or give another --env"


def test_folder_named_torch_beside_the_user_is_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = fake_environment(tmp_path / "e", version_file=None)
    (tmp_path / "torch").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EnvironmentUnavailable, match="has no torch"):
        inspect_interpreter(python)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo broken >&2; exit 1", "does not run as a Python"),
        ('echo \'facts:{"implementation": "pypy", "python": "3.10.1", "torch": null}\'', "is pypy 3.10.1"),
        ('echo \'facts:{"implementation": "cpython", "python": "3.7.16", "torch": null}\'', "is cpython 3.7.16"),
    ],
)
def test_unusable_interpreter_is_described(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(EnvironmentUnavailable, match=said):
        inspect_interpreter(program(tmp_path / "python", body))


def test_missing_interpreter_and_folder_are_distinguished(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match="does not exist"):
        inspect_interpreter(str(tmp_path / "python"))
    with pytest.raises(EnvironmentUnavailable, match="bin/python"):
        inspect_interpreter(str(tmp_path))


def test_an_interpreter_in_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)  # for root every folder is open
        with pytest.raises(EnvironmentUnavailable, match=r"closed/python cannot be reached: Permission denied"):
            inspect_interpreter(str(tmp_path / "closed" / "python"))
    finally:
        os.seteuid(user)
