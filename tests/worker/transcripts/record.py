"""Writes into every transcript what its first worker answers: ``python -m tests.worker.transcripts.record ENV_PYTHON``.

Look at the difference before you commit it: from then on both workers are held to it.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.worker.transcripts import replay


def record(interpreter: str) -> None:
    with tempfile.TemporaryDirectory() as folder, replay.both_workers(interpreter, Path(folder)) as runner:
        artifacts = replay.export(runner, replay.models())
        for transcript in replay.transcripts():
            result = runner(transcript.request(artifacts, transcript.workers[0]))
            data = {**transcript.data, "recorded": replay.answer(result)}
            transcript.path.write_text(laid_out(data) + "\n")
            print(transcript.path.name, result.outcome)


def laid_out(value: Any, depth: int = 3) -> str:
    """Return JSON with a line for every member of an object down to ``depth``, so that differences can be read."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False)
    members = [f"{json.dumps(key)}: {laid_out(item, depth - 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(members) + "\n}"


if __name__ == "__main__":
    record(sys.argv[1])
