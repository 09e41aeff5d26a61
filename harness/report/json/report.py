"""The report as ``report.json``: lossless, deterministic, versioned. ``docs/formats/report.md`` documents it.

Numbers that JSON does not have are written as ``harness/store/exact.py`` says.
"""

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import msgspec

from harness.core.comparison import CallComparison, TensorMetrics
from harness.core.errors import RunDirError
from harness.core.report import SCHEMA_VERSION, RunReport
from harness.report.json.text import BEYOND_ASCII
from harness.store.exact import NON_FINITE, plain_of, value_of
from harness.store.json import JsonError, from_json

_AGAIN = "run again, or restore the file from the run that made it"


def dump_report(report: RunReport) -> bytes:
    r"""Return the report as UTF-8 JSON in one line, with a fixed order of keys, ending with a newline.

    Lone surrogates (undecodable bytes of a path, say) have no UTF-8 and become ``\udcff`` as plain text. What a
    terminal may obey, and JSON need not escape, is escaped: the same texts when they are read back.
    """
    plain = plain_of(_at_calls(msgspec.to_builtins(report, order="deterministic"), _sparse_call))
    text = msgspec.json.encode(plain).decode()
    return BEYOND_ASCII.sub(_inert, text).encode() + b"\n"


def _inert(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def load_report(data: bytes, *, file: str) -> RunReport:
    """Return the report in ``data``; ``file`` is its name for messages. Unknown fields are ignored.

    Raises:
        RunDirError: not JSON, of another schema version, or not the shape of a report.
    """
    try:
        plain = from_json(data)
    except JsonError as error:
        raise RunDirError(f"{file} is not JSON: {error}", _AGAIN) from error
    if not isinstance(plain, dict) or "schema_version" not in plain:
        raise RunDirError(f"{file} is not a report: `$.schema_version` is missing", "name the report.json of a run")
    version = plain["schema_version"]
    if version != SCHEMA_VERSION or isinstance(version, bool):
        message = (
            f"{file} has schema version {version!r} at `$.schema_version`; this harness reads only {SCHEMA_VERSION}"
        )
        raise RunDirError(message, "read it with the harness that wrote it (`$.harness_version`), or run again")
    try:
        return value_of(plain, RunReport)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        raise RunDirError(f"{file} is damaged at {path or '`$`'}: {problem}", _AGAIN) from error


def _at_calls(plain: dict[str, Any], changed: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a report with what ``changed`` makes of each of its comparisons of a call."""

    def down(value: Any, *path: str) -> Any:
        if isinstance(value, list):
            return [down(item, *path) for item in value]
        if not path:
            return changed(value)
        if isinstance(value, dict) and path[0] in value:
            return {**value, path[0]: down(value[path[0]], *path[1:])}
        return value

    return dict(down(plain, "models", "comparisons", "calls"))


def _sparse(value: Any, kind: type[Any]) -> Any:
    """Return the fields of a dataclass that are not as they are by default."""
    defaults = {
        field.name: msgspec.to_builtins(field.default) for field in fields(kind) if field.default is not MISSING
    }
    return {name: item for name, item in value.items() if name not in defaults or item != defaults[name]}


def _sparse_call(call: dict[str, Any]) -> dict[str, Any]:
    tensors = [_sparse(tensor, TensorMetrics) for tensor in call["tensors"]]
    return dict(_sparse({**call, "tensors": tensors}, CallComparison))


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what ``dump_report`` writes."""
    schema = _with_non_finite(msgspec.json.schema(RunReport))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return dict(schema)


def _with_non_finite(schema: Any) -> Any:
    """Return a schema in which each number may also be one of the three strings."""
    match schema:
        case {"type": "number", **rest}:
            return {**rest, "anyOf": [{"type": "number"}, {"enum": list(NON_FINITE)}]}
        case dict():
            return {key: _with_non_finite(item) for key, item in schema.items()}
        case list():
            return [_with_non_finite(item) for item in schema]
        case _:
            return schema
