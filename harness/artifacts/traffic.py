"""Files of requests: JSON Lines, read one by one and written so that a kill loses at most the line being written.

``docs/formats/requests.md`` describes them.
"""

import base64
import binascii
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Final, Self, TypedDict

from msgspec import Meta, ValidationError

from harness.config.schema import Kind, Table, choice, read, shown
from harness.core.errors import ConfigError
from harness.core.traffic import FORMAT, PROTOCOLS, VERSION, TrafficHeader, TrafficRequest
from harness.machine.files import refusal, unwritable
from harness.machine.typed import converted
from harness.store.json import JsonError, from_json

LONGEST_LINE: Final = 256 * 2**20  # bytes; what one request may occupy in memory
_TEXT: Final = Kind("text", str)
_HEADER: Final = Table(
    {
        "format": choice(FORMAT),
        "version": Kind(f"{VERSION}, the version that this gate reads", Annotated[int, Meta(ge=VERSION, le=VERSION)]),
        "protocol": choice(*PROTOCOLS),
        "source": _TEXT,
        "started": _TEXT,
        "sampled": Kind("a share above 0, at most 1", Annotated[float, Meta(gt=0, le=1)]),
        "redacted": Kind("a list of texts", tuple[str, ...]),
    }
)
_NAME: Final = Kind("a name in lower case", Annotated[str, Meta(pattern=r"\A[!#$%&'*+.^_`|~0-9a-z-]+\Z")])
_VALUE: Final = Kind("text of one line", Annotated[str, Meta(pattern=r"\A[^\r\n\0]*\Z")])
_FIELDS: Final = {
    "at": Kind("a number of seconds >= 0", Annotated[float, Meta(ge=0, le=1e9)]),
    "method": Kind("a method in capital letters, such as POST", Annotated[str, Meta(pattern=r"\A[A-Z]+\Z")]),
    "path": Kind('a path that begins with "/" and has no blanks', Annotated[str, Meta(pattern=r"\A/[!-~]*\Z")]),
}
_REQUEST: Final = Table({**_FIELDS, "headers": Table({}, _VALUE, _NAME)})
# The same in one step, for what is right: a million lines take a fifth of the time.
_MAKE: Final[Any] = TypedDict  # of types that stand in a table, which mypy does not know
_DICT: Final[Any] = dict
_RIGHT: Final = _MAKE(
    "_RIGHT",
    {**{key: kind.target for key, kind in _FIELDS.items()}, "headers": _DICT[_NAME.target, _VALUE.target]},
    total=False,
)
_BODY: Final = Kind('text, {"base64": text} or {"json": any value}', str)


def read_header(path: Path) -> TrafficHeader:
    """Return the first line of a file of requests. Raises ``ConfigError``: no such file, or another format."""
    with _opened(path) as file:
        return _header(file, path)


def read_traffic(path: Path) -> Iterator[TrafficRequest]:
    """Yield the requests of a file in its order, one line in memory at a time.

    A last line that is cut off, as a kill leaves it, is passed over. ``at`` need not ascend: a recorder writes one
    when its body is complete. Raises ``ConfigError``: the line of a file and what is wrong with it.
    """
    with _opened(path) as file:
        _header(file, path)
        number = 1
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise ConfigError(f"{path}:{number}: longer than {LONGEST_LINE // 2**20} MiB", "remove the line")
            if not line.strip():
                continue
            try:
                value = from_json(line)
            except JsonError as error:
                if not line.endswith(b"\n"):
                    return
                raise ConfigError(f"{path}:{number}: no JSON: {error}", "each line is one request") from None
            yield _request(value, f"{path}:{number}", number)


class TrafficWriter:
    """Writes a new file of requests, each line with one call of the system, so that whole lines survive a kill."""

    def __init__(self, path: Path, header: TrafficHeader) -> None:
        """Make the file. Raises ``ConfigError``: it is there already; ``RunDirError``: it cannot be written."""
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except FileExistsError:
            raise ConfigError(f"{path} is there already", "name another file, or remove this one") from None
        except OSError as error:
            raise unwritable(f"{path} cannot be made", error, "name a file in a folder that can be written") from error
        self._write(
            {"format": FORMAT, "version": VERSION, **{key: value for key, value in asdict(header).items() if value}}
        )

    def write(self, request: TrafficRequest) -> None:
        """Add one request. Raises ``RunDirError``: the disk is full, or the file cannot be written."""
        line: dict[str, Any] = {"at": request.at, "method": request.method, "path": request.path}
        if request.headers:
            line["headers"] = dict(request.headers)
        if request.body:
            try:
                line["body"] = request.body.decode()
            except UnicodeDecodeError:
                line["body"] = {"base64": base64.b64encode(request.body).decode()}
        self._write(line)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        try:
            while data:  # the system takes less than all only where the disk is full or a signal comes
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise unwritable(f"{self._path} cannot be written", error, "make room") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {refusal(error)}", "name a file of requests") from None


def _header(file: BinaryIO, path: Path) -> TrafficHeader:
    wanted = f'the first line is {{"format": "{FORMAT}", "version": {VERSION}}}; docs/formats/requests.md'
    try:
        value = from_json(file.readline(LONGEST_LINE))
    except JsonError:
        value = None
    if not isinstance(value, dict) or "format" not in value or "version" not in value:
        raise ConfigError(f"{path}:1: no file of requests", wanted)
    # What a later recorder says beside this is none of our business.
    plain = {key: item for key, item in value.items() if key in _HEADER.keys}
    read_values = read(plain, _HEADER, f"{path}:1")
    return TrafficHeader(**{key: item for key, item in read_values.items() if key not in ("format", "version")})


def _request(value: Any, where: str, number: int) -> TrafficRequest:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected an object, got {shown(value)}")
    body = value.pop("body", "")
    try:
        fields = converted(value, _RIGHT)
    except ValidationError:
        fields = {}
    if len(fields) != len(value):
        fields = read(value, _REQUEST, where)
    if "path" not in fields:
        raise ConfigError(f"{where}.path: missing", 'write the path of the request: "path": "/v2/models/NAME/infer"')
    return TrafficRequest(**fields, body=_body(body, f"{where}.body"), line=number)


def _body(value: Any, where: str) -> bytes:
    match value:
        case {"base64": str(text)} if len(value) == 1:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(f"{where}.base64: no base64", "write the bytes as base64 with padding") from None
        case {"json": plain} if len(value) == 1:
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
        case _:
            return str(_BODY.read(value, where)).encode()
