"""The wire contract: names that both sides rely on."""

import ast
import re
import sys
from pathlib import Path

import pytest

from harness.serving.scenarios import INITIALIZATIONS
from harness.artifacts.tensors.decode import STORED
from harness.worker import wire

WORKER = Path(wire.__file__).parent
TREE = ast.parse(Path(wire.__file__).read_text(), feature_version=(3, 8))
PHASES = [
    name for name, value in vars(wire).items() if isinstance(value, str) and value == name.lower() and name.isupper()
]
FILES = ("REQUEST", "EVENTS", "STACKS", "STDOUT", "STDERR", "TENSORS_INDEX", "TENSORS_BIN")


def test_every_dtype_on_the_wire_has_the_size_that_the_controller_reads() -> None:
    assert {name: stored.itemsize for name, stored in STORED.items()} == wire.DTYPE_BYTES


def test_quantized_dtypes_are_on_the_wire() -> None:
    assert set(wire.QUANTIZED) < set(wire.DTYPE_BYTES)
    assert len(set(wire.QUANTIZED)) == 3


def test_files_of_a_probe_have_names_of_their_own() -> None:
    names = [getattr(wire, name) for name in FILES]
    assert len(set(names)) == len(names)
    assert not any("/" in name for name in names)
    # The two that are files in the probe's folder are told in the docstring, which is the protocol's reference.
    assert all(name in (wire.__doc__ or "") for name in names)


def test_phases_are_told_apart() -> None:
    values = [getattr(wire, name) for name in ("IMPORT", "CONSTRUCT", "CONVERT", "SAVE", "INPUTS", "BARRIER")]
    values += [getattr(wire, name) for name in ("LOAD", "PREPARE", "CALL", "RECORD", "BLOCK")]
    values += [getattr(wire, name) for name in ("SERVE", "DROP", "CAPTURE", "REPLAY")]
    assert len(set(values)) == len(values) == 15


def test_every_step_that_a_scenario_writes_is_described_in_the_contract_and_done_by_the_worker() -> None:
    written = {
        str(step[0])
        for scenario in INITIALIZATIONS.values()
        for steps in scenario.write(["a", "b", "c"], 3).threads
        for step in steps
    }
    told = set(re.findall(r'^    \["(\w+)"', wire.__doc__ or "", re.MULTILINE))
    tree = ast.parse((WORKER / "run" / "script.py").read_text())
    done = {node.name[1:] for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name[0] == "_"}
    assert written <= told <= done


def test_steps_are_those_that_the_contract_tells() -> None:
    assert sorted(re.findall(r'^    \["(\w+)"', wire.__doc__ or "", re.MULTILINE)) == list(wire.STEPS)


@pytest.mark.parametrize("mark", ["intra_op_otherwise:", "served_otherwise:", "graph:"])
def test_marks_of_the_contract_are_written_by_both_workers(mark: str) -> None:
    """The words are written in two languages; their tests see each of them fire in one run or another."""
    assert f"    {mark}" in (wire.__doc__ or "")
    for folder in (WORKER, WORKER.parent / "native"):
        assert any(f'"{mark}' in path.read_text() for path in (*folder.rglob("*.py"), *folder.rglob("*.hpp")))


def test_module_imports_nothing_but_the_standard_library() -> None:
    imported = [
        name
        for node in ast.walk(TREE)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    ]
    assert all(name.partition(".")[0] in sys.stdlib_module_names for name in imported)


def test_verbs_are_sorted_and_unique() -> None:
    assert list(wire.VERBS) == sorted(set(wire.VERBS))


def test_every_verb_is_served_by_the_worker() -> None:
    constants = {
        node.value
        for path in WORKER.rglob("*.py")
        if path.name != "wire.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(wire.VERBS) <= constants
