"""Reads JSON of a file that nobody vouches for: what it costs is bounded before it is read."""

import json
from typing import Any

from harness.artifacts.archive.limits import CannotRead

MOST_VALUES = 4_000_000
"""Of a program: a million nodes."""


def read_json(name: str, data: bytes) -> Any:
    """Return the value that a member holds. Raises ``CannotRead``: it is no JSON, or holds too many values."""
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:  # there is one before each value but the first
        raise CannotRead("too_large", f"{name!r} holds more than {MOST_VALUES} values")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CannotRead("damaged", f"{name!r} is no JSON: {error}") from None
