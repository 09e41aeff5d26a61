"""JSON that somebody stored or sent, read into types. Whatever its bytes are, what is wrong is one exception."""

import json
import re
from typing import Any, TypeVar, overload

import msgspec

from harness.machine.typed import decoded

T = TypeVar("T")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# What an artifact that writes into its own record can make of it; all of it is damage, none of it is our bug.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError)


class JsonError(ValueError):
    """Raised where bytes are no JSON, or not of the type that is wanted; says what is wrong, not in which file."""


@overload
def from_json(data: bytes, type_: type[T]) -> T: ...
@overload
def from_json(data: bytes) -> Any: ...
def from_json(data: bytes, type_: Any = Any) -> Any:
    """Return the ``type_`` of ``data``. Raises ``JsonError``: no UTF-8 or JSON, nested too deeply, another shape."""
    try:
        return decoded(data, type_)
    except UnicodeDecodeError as error:
        raise JsonError(f"it is no UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise JsonError("its brackets are nested too deeply") from error
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise JsonError(str(error)) from error


def parsed(line: str) -> Any:
    """Return what a line of JSON holds, with ``?`` for halves of characters, which no file of ours can hold.

    They are no JSON for ``from_json``; a worker writes them where a model's text has them. Raises ``ValueError``: it is
    no JSON; ``RecursionError``: it is nested too deeply.
    """
    value = json.loads(line)
    if SURROGATE.search(line) is None:
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode())
