"""Comparison with the accepted outputs in ``tests/snapshots``; ``UPDATE_SNAPSHOTS=1`` accepts new ones."""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "snapshots"


def check_snapshot(name: str, text: str) -> None:
    """Fail unless ``text`` is byte for byte the accepted output ``name``; write it if the variable asks for it."""
    path = FOLDER / name
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert path.exists(), f"{path} is missing; look at the output, then accept it with UPDATE_SNAPSHOTS=1"
    assert text == path.read_bytes().decode(), f"{name} differs; accept it with UPDATE_SNAPSHOTS=1 if it is better"
