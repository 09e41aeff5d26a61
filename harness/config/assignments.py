"""``--set KEY=VALUE``: any key of ``[tool.compat]`` for one run, written as in TOML; pure."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from harness.config.schema import TOP, read, shown
from harness.core.errors import ConfigError

WHERE = "command line: --set"


def assigned(texts: Iterable[str]) -> dict[str, Any]:
    """Return the table that assignments such as ``latency.limit=0.05`` make together.

    A value that is no TOML, such as ``fbgemm`` or ``2.6.0``, is taken as text. Raises ``ConfigError``: names the
    assignment or the full key, and what was expected.
    """
    table: dict[str, Any] = {}
    for text in texts:
        table = merged(table, _parsed(text))
    read(table, TOP, WHERE)
    return table


def merged(table: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(table)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _parsed(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    for line in (text, f"{key} = {json.dumps(value.strip())}") if equals else ():
        try:
            return tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"{WHERE}: expected KEY=VALUE, got {shown(text)}", "for example --set latency.limit=0.05")
