"""What real releases of torch say when they export declared models and load files."""

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.core.models import ModelDeclaration

PROGRAM = Path(__file__).resolve().parent / "archives" / "program.py"
DEADLINE_S = 600
"""Exporting everything takes half a minute of a core, and cores may be crowded."""


def torch_answers(
    python: str, folder: Path, declarations: Sequence[ModelDeclaration], load: list[str]
) -> dict[str, str]:
    """Return path -> what torch said on loading, of what it exported into ``folder`` and of what ``load`` names."""
    out = folder / "out" if declarations else None
    if out is not None:
        out.mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)
    order = folder / "order.json"
    declared = [dataclasses.asdict(item) for item in declarations]
    order.write_text(json.dumps({"declarations": declared, "out": str(out) if out else "", "load": load}))
    command = [python, "-s", "-W", "ignore", str(PROGRAM), str(order)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=folder)
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer:")]
    assert lines, done.stderr[-2000:]
    answer: dict[str, str] = json.loads(lines[-1].removeprefix("answer:"))
    return answer
