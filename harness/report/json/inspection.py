"""An inspection as JSON: everything that was read and said. ``docs/formats/inspect.md`` documents it."""

import msgspec

from harness import __version__
from harness.domain.prediction import Inspection
from harness.report.json.text import json_text
from harness.static.predict import exit_code

SCHEMA_VERSION = 1


def dump_inspection(inspection: Inspection) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(inspection)),
        **_writable(msgspec.to_builtins(inspection)),
    }
    return json_text(told)


def _writable(value: object) -> dict[str, object]:
    found = without_surrogates(value)
    assert isinstance(found, dict)
    return found


def without_surrogates(value: object) -> object:
    r"""Undecodable bytes of a path have no UTF-8; they become ``\udcff`` as plain text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_surrogates(item) for item in value]
    return value
