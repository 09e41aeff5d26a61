"""Runs a program of ``programs/`` with an environment's own interpreter: one question, one answer."""

import json
import subprocess
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("programs")
DEADLINE_S = 600.0


def answer_of(program: str, *words: str, job: Any, interpreter: str, folder: Path) -> dict[str, Any]:
    """Return the JSON that ``PROGRAM.py WORDS JOB_FILE`` prints.

    Args:
        job: written as JSON into a file in ``folder``.

    Raises:
        RuntimeError: the program failed; the end of what it said.
    """
    asked = folder / f"{'-'.join((program, *words))}.json"
    folder.mkdir(parents=True, exist_ok=True)
    asked.write_text(json.dumps(job))
    command = [interpreter, "-s", "-W", "ignore", str(PROGRAMS / f"{program}.py"), *words, str(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
