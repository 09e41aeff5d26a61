"""Writes the traceback of a bug of the gate to a file that can be sent, rather than to the terminal."""

import tempfile
from pathlib import Path


def keep(text: str) -> Path:
    """Write ``text`` to a new file in the temporary folder and return its path."""
    with tempfile.NamedTemporaryFile("w", prefix="harness-bug-", suffix=".txt", delete=False) as stream:
        stream.write(text)
    return Path(stream.name)
