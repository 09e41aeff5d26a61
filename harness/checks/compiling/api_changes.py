"""The changes of LibTorch's interface that the gate knows: ``api_changes.toml`` beside this file."""

import functools
import tomllib
from pathlib import Path

from harness.core.compiling import ApiChange

FILE = Path(__file__).with_suffix(".toml")


@functools.cache
def known_changes() -> dict[str, ApiChange]:
    """Return them by the names that compilers name."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["change"]
    changes = [
        (name, ApiChange(api=entry["names"][0], **{key: value for key, value in entry.items() if key != "names"}))
        for entry in entries
        for name in entry["names"]
    ]
    return dict(changes)
