"""A reproducer's folder: what it holds, and what it says where torch is missing, or is another."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.runtime.reproducer_files import run_reproducer, write_reproducer

STUB = """
import contextlib
__version__ = "0"
def set_num_threads(count): pass
def no_grad(): return contextlib.nullcontext()
class Tensor: pass
class Argument:
    kwarg_only = False
    name = "x"
class _C:
    @staticmethod
    def parse_schema(schema):
        import types
        return types.SimpleNamespace(arguments=[Argument()])
def call(x):
    {body}
class ops:
    class aten:
        class op:
            default = staticmethod(call)
"""


def node(**changes: Any) -> dict[str, Any]:
    return {
        "operator": "aten::op",
        "schema": "aten::op(int x) -> int",
        "source": "",
        "inputs": [["int", 3]],
        "outputs": [["int", 6]],
        "generator": None,
        "threads": 1,
        "tolerances": {},
        "strides": False,
        **changes,
    }


def said(folder: Path, body: str | None, **changes: Any) -> str:
    """Return what a reproducer says with a torch whose operator does ``body``; None: without any torch."""
    write_reproducer(folder / "r", node(**changes), b"", {})
    site = folder / "site"
    site.mkdir()
    if body is not None:
        (site / "torch.py").write_text(STUB.replace("{body}", body))
    return run_reproducer(folder / "r", sys.executable, {"PYTHONPATH": str(site)})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 2 * x", "as recorded (exit code 0)"),
        ("return 7", "output[0]: expected 6, got 7 (exit code 1)"),
        ("raise RuntimeError('no')", "raises RuntimeError: no (exit code 1)"),
        ("import os; os.kill(os.getpid(), 11)", "crashes: signal 11 (exit code 1)"),
    ],
)
def test_a_reproducer_tells_good_from_bad(tmp_path: Path, body: str, expected: str) -> None:
    assert said(tmp_path, body) == expected


def test_without_torch_it_is_untestable(tmp_path: Path) -> None:
    assert said(tmp_path, None).endswith("(exit code 125)")


def test_an_operator_that_is_not_there_is_untestable(tmp_path: Path) -> None:
    assert said(tmp_path, "return 6", schema="aten::other(int x) -> int").endswith("(exit code 125)")


def test_an_interpreter_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    write_reproducer(tmp_path / "r", node(), b"", {})
    assert "could not be started" in run_reproducer(tmp_path / "r", "/no/python", {})


def test_only_the_bytes_that_are_pointed_to_are_taken(tmp_path: Path) -> None:
    def tensor(offset: int) -> list[Any]:
        return ["tensor", {"dtype": "uint8", "shape": [2], "stride": [1], "offset": offset, "nbytes": 2}]

    given = node(inputs=[tensor(4)], outputs=[["list", [tensor(0)]]], generator=tensor(2))
    write_reproducer(tmp_path / "r", given, b"aabbcc", {"issue.md": "text"})
    assert (tmp_path / "r" / "tensors.bin").read_bytes() == b"ccaabb"
    kept = json.loads((tmp_path / "r" / "node.json").read_text())
    assert [kept["inputs"][0][1]["offset"], kept["outputs"][0][1][0][1]["offset"]] == [0, 2]
    assert (tmp_path / "r" / "issue.md").read_text() == "text"
