"""JSON that somebody stored or sent, read into types. Whatever its bytes are, what is wrong is one exception."""

from typing import Any, TypeVar, overload

import msgspec

from harness.machine.typed import decoded

T = TypeVar("T")


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
