"""The program of a reproducer is one file: nothing is defined twice, nothing of ours is imported."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.diagnosis.reproduce.script import PARTS, script_of

KINDS = sorted(PARTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_make_one_program_of_the_standard_library(kind: str) -> None:
    tree = ast.parse(script_of(kind), feature_version=(3, 8))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in imported} - {"torch"} <= sys.stdlib_module_names
    assert "torch" not in {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_hides_what_another_defines(kind: str) -> None:
    tree = ast.parse(script_of(kind))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names += [
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name)
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_its_docstring_and_its_entry_are_those_of_the_last_part(kind: str) -> None:
    tree = ast.parse(script_of(kind))
    assert "125: cannot be tested here" in (ast.get_docstring(tree) or "")
    assert sum(isinstance(node, ast.If) for node in tree.body) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_help_is_good_and_names_the_options(kind: str, tmp_path: Path) -> None:
    (tmp_path / "reproduce.py").write_text(script_of(kind))
    done = subprocess.run([sys.executable, "reproduce.py", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--deadline" in done.stdout
    assert "--child" not in done.stdout
