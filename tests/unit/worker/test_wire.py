"""The wire contract: names that both sides rely on."""

import ast
import re
from pathlib import Path

import pytest

from harness.serving.scenarios import INITIALIZATIONS
from harness.artifacts.tensors.decode import STORED
from harness.worker import wire

WORKER = Path(wire.__file__).parent
CONTRACT = (WORKER.parents[1] / "docs" / "formats" / "wire.md").read_text()
FILES = ("REQUEST", "EVENTS", "STACKS", "STDOUT", "STDERR", "TENSORS_INDEX", "TENSORS_BIN")


def test_every_dtype_on_the_wire_has_the_size_that_the_controller_reads() -> None:
    assert {name: stored.itemsize for name, stored in STORED.items()} == wire.DTYPE_BYTES


def test_files_of_a_probe_have_names_of_their_own() -> None:
    names = [getattr(wire, name) for name in FILES]
    assert len(set(names)) == len(names)
    assert not any("/" in name for name in names)
    assert all(name in CONTRACT for name in names)


def test_every_step_that_a_scenario_writes_is_described_in_the_contract_and_done_by_the_worker() -> None:
    written = {
        str(step[0])
        for scenario in INITIALIZATIONS.values()
        for steps in scenario.write(["a", "b", "c"], 3).threads
        for step in steps
    }
    told = set(re.findall(r'^    \["(\w+)"', CONTRACT, re.MULTILINE))
    tree = ast.parse((WORKER / "run" / "script.py").read_text())
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    done = {name.removeprefix("step_") for name in names if name.startswith("step_")}
    assert written <= told == done


@pytest.mark.parametrize("mark", ["intra_op_otherwise:", "served_otherwise:", "graph:"])
def test_marks_of_the_contract_are_written_by_both_workers(mark: str) -> None:
    """The words are written in two languages; their tests see each of them fire in one run or another."""
    assert f"    {mark}" in CONTRACT
    for folder in (WORKER, WORKER.parent / "native"):
        assert any(f'"{mark}' in path.read_text() for path in (*folder.rglob("*.py"), *folder.rglob("*.hpp")))


def test_verbs_are_sorted_and_unique() -> None:
    assert list(wire.VERBS) == sorted(set(wire.VERBS))


def test_every_verb_is_a_function_of_its_module() -> None:
    for verb, module in wire.VERBS.items():
        tree = ast.parse((WORKER / f"{module.replace('.', '/')}.py").read_text())
        assert verb in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
