"""JSON for people and machines: indented, keys in order, nothing in it that a terminal obeys."""

import json
import re

import msgspec

BEYOND_ASCII = re.compile("[\\x7f-\\U0010ffff]")
"""What JSON need not escape: a terminal may obey some of it, and not every one can show the rest."""


def json_text(value: object) -> str:
    """Return ``value`` as ASCII, ending with a newline. Equal values give equal texts."""
    text = msgspec.json.format(
        msgspec.json.encode(_without_surrogates(value), order="deterministic"), indent=2
    ).decode()
    return BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"


def _without_surrogates(value: object) -> object:
    r"""Undecodable bytes of a path have no UTF-8; they become ``\udcff`` as plain text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value
