"""What runs in environments under test keeps to the grammar of Python 3.8, and to what it may import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments.interpreters import find_pythons, verified_python
from harness.core.errors import EnvironmentUnavailable

ROOT = Path(__file__).parents[2]
WORKER = sorted((ROOT / "harness" / "worker").glob("*.py"))
FOREIGN = [
    *WORKER,
    *sorted((ROOT / "fixtures").rglob("*.py")),
    *sorted((ROOT / "tests" / "programs" / "stub_env").rglob("*.py")),
    *sorted((ROOT / "tests" / "programs" / "stub_models").rglob("*.py")),
]
COMPILE = """
import sys
for path in sys.argv[1:]:
    compile(open(path, encoding="utf-8").read(), path, "exec", dont_inherit=True)
"""


def test_there_is_something_to_check() -> None:
    assert len(WORKER) > 5
    assert len(FOREIGN) > 20


def test_files_parse_as_python_38() -> None:
    """The syntax error names the file."""
    for path in FOREIGN:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))


@pytest.fixture(scope="module")
def python38() -> str:
    try:
        return verified_python("3.8", find_pythons())
    except EnvironmentUnavailable as error:
        pytest.skip(f"no Python 3.8 here: {error}")


def test_files_compile_under_a_real_python_38(python38: str) -> None:
    """``ast`` refuses less than the old parser does."""
    done = subprocess.run(
        [python38, "-I", "-c", COMPILE, *map(str, FOREIGN)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""


def test_worker_imports_the_standard_library_torch_and_itself_only() -> None:
    for path in WORKER:
        imported = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
        assert imported - set(sys.stdlib_module_names) <= {"torch", "gate_worker"}, path


def test_wire_module_needs_no_torch() -> None:
    text = (ROOT / "harness" / "worker" / "wire.py").read_text(encoding="utf-8")
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
