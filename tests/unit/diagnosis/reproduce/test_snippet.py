"""How a program without a watchdog ended."""

import sys
from pathlib import Path

import pytest

from harness.diagnosis.reproduce.snippet import run_snippet
from harness.domain.probe import WorkerLimits

LIMITS = WorkerLimits()


@pytest.mark.parametrize(
    ("body", "expected", "wait_s"),
    [
        ("print(1.5)", ("end", "1.5\n"), 20),
        ("while True: pass", ("hang", ""), 0.5),
        ("import os; os.kill(os.getpid(), 11)", ("crash", ""), 20),
        ("import os; os._exit(3)", ("error", ""), 20),
    ],
)
def test_endings_are_told_apart(tmp_path: Path, body: str, expected: tuple[str, str], wait_s: float) -> None:
    (tmp_path / "snippet.py").write_text(f"print('torch', flush=True)\n{body}")
    assert run_snippet(tmp_path / "snippet.py", sys.executable, limits=LIMITS, wait_s=wait_s) == expected


def test_an_error_is_told_in_its_words(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text("print('torch')\nraise ValueError('no')")
    how, said = run_snippet(tmp_path / "snippet.py", sys.executable, limits=LIMITS, wait_s=20)
    assert how == "error"
    assert "ValueError: no" in said


def test_what_cannot_be_started_says_nothing(tmp_path: Path) -> None:
    assert run_snippet(tmp_path / "snippet.py", "/no/python", limits=LIMITS, wait_s=1) == ("unknown", "")
