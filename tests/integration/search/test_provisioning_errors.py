"""What an environment that cannot be provisioned looks like: one line, exit code 3, no traceback."""

from pathlib import Path

import pytest

from tests.integration.gate import harness

pytestmark = pytest.mark.integration


def test_a_release_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = harness("compat", "--old", "2.1.2", "--new", "2.99.0", "-k", "din", "--out", str(tmp_path))
    assert done.returncode == 3
    assert "2.99.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    import venv

    venv.create(empty, with_pip=False)
    python = empty / "bin" / "python"
    done = harness("compat", "--env", f"old={python}", "--env", "new=/nowhere/python", "--out", str(tmp_path))
    assert done.returncode == 3
    assert str(python) in done.stderr and "torch" in done.stderr
    assert "/nowhere/python" in done.stderr
    assert "Traceback" not in done.stderr
