"""JSON for people and machines: indented, keys in order, nothing in it that a terminal obeys."""

import json
import re

import msgspec

BEYOND_ASCII = re.compile("[\\x7f-\\U0010ffff]")
"""What JSON need not escape: a terminal may obey some of it, and not every one can show the rest."""


def json_text(value: object) -> str:
    """Return ``value`` as ASCII, ending with a newline. Equal values give equal texts."""
    text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2).decode()
    return BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"
