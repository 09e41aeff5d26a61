"""JSON and plain values as types: the only place that asks msgspec for it.

What msgspec knows of a type it learns at the first use, and keeps on the classes. Two threads that do so at once for
types that share a class see it half done, and the process may crash. So the first use of each type is behind one lock.
"""

import threading
from typing import Any, Final

import msgspec

_LOCK: Final = threading.Lock()
_KNOWN: Final[set[Any]] = set()


def decoded(data: bytes | str, type_: Any) -> Any:
    """Return a value of JSON. Raises ``msgspec.DecodeError``: no JSON, or another shape (``ValidationError``)."""
    _learn(type_)
    return msgspec.json.decode(data, type=type_)


def converted(plain: Any, type_: Any, *, strict: bool = True) -> Any:
    """Return builtins as ``type_``; ``strict``: no text stands for a number. Raises ``msgspec.ValidationError``."""
    _learn(type_)
    return msgspec.convert(plain, type_, strict=strict)


def _learn(type_: Any) -> None:
    if type_ in _KNOWN:
        return
    with _LOCK:
        msgspec.json.Decoder(type_)
        _KNOWN.add(type_)
