"""Keeps the traceback of our own bug out of the user's terminal and where it can be sent from."""

import tempfile
from pathlib import Path


def keep(text: str) -> Path:
    """Write ``text`` to a new file in the temporary folder and return its path."""
    with tempfile.NamedTemporaryFile("w", prefix="harness-bug-", suffix=".txt", delete=False) as stream:
        stream.write(text)
    return Path(stream.name)
