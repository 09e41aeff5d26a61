"""An inspection as JSON: everything that was read and said. ``docs/formats/inspect.md`` documents it."""

import json
import re

import msgspec

from harness import __version__
from harness.domain.inspection import Inspection
from harness.policy.static_gate import exit_code

SCHEMA_VERSION = 1
BEYOND_ASCII = re.compile("[\\x7f-\\U0010ffff]")
"""What JSON need not escape, and a terminal may obey all the same."""


def dump_inspection(inspection: Inspection) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(inspection)),
        **_writable(msgspec.to_builtins(inspection)),
    }
    text = msgspec.json.format(msgspec.json.encode(told, order="deterministic"), indent=2).decode() + "\n"
    return BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def _writable(value: object) -> dict[str, object]:
    found = _without_surrogates(value)
    assert isinstance(found, dict)
    return found


def _without_surrogates(value: object) -> object:
    r"""Undecodable bytes of a path have no UTF-8; they become ``\udcff`` as plain text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value
