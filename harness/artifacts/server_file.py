"""Reads ``server.toml``: how a team's own server is built, started, asked and stopped."""

import os
import re
import shlex
import signal
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from harness.artifacts.declarations import TOLERANCE
from harness.config.schema import COUNT, DTYPES, POSITIVE, RATIO_LIMIT, TEXT, TEXTS, Kind, Table, choice, read, shown
from harness.core.errors import ConfigError
from harness.core.load import LOAD_LIMITS, LoadPlan
from harness.core.shadow import ServerSettings
from harness.core.traffic import PROTOCOLS
from harness.machine.files import refusal

PLACEHOLDER: Final = re.compile(r"\{(python|libtorch|models|port\d?|threads|side|release|dir)\}")
IN_BRACES: Final = re.compile(r"\{(\w+)\}")
_COMMAND: Final = Kind("a command in quotes, or a list of its words", str | tuple[str, ...])
_PATH: Final = Kind('a path that begins with "/"', Annotated[str, Meta(pattern=r"\A/[!-~]*\Z")])
SERVER: Final = Table(
    {
        "command": _COMMAND,
        "build": _COMMAND,
        "build_deadline_s": POSITIVE,
        "environment": Table({}, Kind("text in quotes", str)),
        "requirements": TEXTS,
        "cwd": TEXT,
        "models": TEXT,
        "threads": COUNT,
        "protocol": choice(*PROTOCOLS),
        "request_deadline_s": POSITIVE,
        "ready": Table(
            {
                "path": _PATH,
                "status": Kind("a status of HTTP, from 100 to 599", Annotated[int, Meta(ge=100, le=599)]),
                "port": Kind("true", Literal[True]),
                "log": TEXT,
                "deadline_s": POSITIVE,
            }
        ),
        "stop": Table({"signal": Kind("the name of a signal, such as SIGTERM", str), "deadline_s": POSITIVE}),
        "ignore": TEXTS,
        "ignore_headers": TEXTS,
        "computes_in": choice(*DTYPES),
        "tolerance": TOLERANCE,
        "limits": Table({"ready": RATIO_LIMIT, "memory": RATIO_LIMIT}),
        "load": Table(
            {
                "rate": POSITIVE,
                "slo_ms": POSITIVE,
                "arrivals": choice("random", "recorded"),
                "seconds": POSITIVE,
                "turns": COUNT,
                "rounds": COUNT,
                "connections": COUNT,
                "limits": Table(dict.fromkeys(LOAD_LIMITS, RATIO_LIMIT)),
            }
        ),
    }
)
READY: Final = {"v2": "/v2/health/ready", "torchserve": "/ping"}
"""By protocol: what answers 200 once a server is ready; others accept connections."""
IGNORED: Final = {"v2": ("id",)}
LEAST_ROUNDS: Final = 3


def read_server(path: Path) -> ServerSettings:
    """Return what a file says. Raises ``ConfigError``: no such file, no TOML, or the key that is wrong."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {refusal(error)}", "name a server.toml") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}", "mend the file") from None
    return server_of(table, str(path), path.parent)


def server_of(table: Mapping[str, Any], where: str, base: Path) -> ServerSettings:
    """Return what a table says; its paths are relative to ``base``. Raises ``ConfigError``: ``where.key: ...``."""
    values = read(table, SERVER, where)
    ready, stop, load = values.pop("ready", {}), values.pop("stop", {}), values.pop("load", None)
    command = _words(values.pop("command", ()), f"{where}.command", base)
    if not command:
        raise ConfigError(
            f"{where}.command: missing", 'write how the server is started: command = "serve --port {port}"'
        )
    build = _words(values.pop("build", ()), f"{where}.build", base)
    for key, text in values.get("environment", {}).items():
        _check(text, f"{where}.environment.{key}")
    if "models" not in values and any(
        "{models}" in word for word in (*command, *values.get("environment", {}).values())
    ):
        raise ConfigError(f"{where}.models: missing", "{models} stands in the command: write models = FOLDER")
    protocol = values.get("protocol", "http")
    if "computes_in" in values and "tolerance" in values:
        raise ConfigError(f"{where}: computes_in beside tolerance", "keep one of them")
    for key in ("cwd", "models"):
        if key in values:
            values[key] = os.path.abspath(base / values[key])  # noqa: PTH100  links stay links
            if not Path(values[key]).exists():
                raise ConfigError(f"{where}.{key}: {values[key]} is not there", "name a folder that is")
    return ServerSettings(
        file=where,
        command=command,
        build=build,
        **{"cwd": str(base.absolute()), **{key: value for key, value in values.items() if key not in _OTHERWISE}},
        **({"request_s": values["request_deadline_s"]} if "request_deadline_s" in values else {}),
        computes_in=values.get("tolerance", values.get("computes_in", "float32")),
        ignore=(*IGNORED.get(protocol, ()), *values.get("ignore", ())),
        ignore_headers=tuple(name.lower() for name in values.get("ignore_headers", ())),
        **_ready(ready, f"{where}.ready", protocol),
        **_stop(stop, f"{where}.stop"),
        load=_load(load, f"{where}.load") if load is not None else None,
    )


_OTHERWISE: Final = ("request_deadline_s", "tolerance", "computes_in", "ignore", "ignore_headers")


def _words(value: str | tuple[str, ...], where: str, base: Path) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(value)) if isinstance(value, str) else value
    except ValueError as error:
        raise ConfigError(f"{where}: {error}: {shown(value)}", "close the quotes, or write a list of words") from None
    for word in words:
        _check(word, where)
    if (
        words and "/" in words[0] and "{" not in words[0]
    ):  # a program beside the file, from whatever folder it is started
        return (str((base / words[0]).absolute()), *words[1:])
    return words


def _check(text: str, where: str) -> None:
    for match in IN_BRACES.finditer(text):
        if not PLACEHOLDER.fullmatch(match[0]):
            known = "{python}, {libtorch}, {models}, {port}, {port2} ... {port9}, {threads}, {side}, {release}, {dir}"
            raise ConfigError(f"{where}: {match[0]} stands for nothing", f"placeholders are {known}")


def _ready(table: Mapping[str, Any], where: str, protocol: str) -> dict[str, Any]:
    ways = [key for key in ("path", "port", "log") if key in table]
    if len(ways) > 1:
        raise ConfigError(f"{where}: {' beside '.join(ways)}", "keep one of them")
    if "log" in table:
        try:
            re.compile(table["log"])
        except re.error as error:
            raise ConfigError(f"{where}.log: no regular expression: {error}", "mend it") from None
    path = table.get("path", "" if ways else READY.get(protocol, ""))
    values = {"ready_path": path, "ready_log": table.get("log", "")}
    return {**values, **{f"ready_{key}": table[key] for key in ("status", "deadline_s") if key in table}}


def _stop(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    name = table.get("signal", "SIGTERM")
    if name not in signal.Signals.__members__:
        raise ConfigError(f"{where}.signal: {shown(name)} is no signal", "write one such as SIGTERM or SIGINT")
    return {"stop_signal": name, **({"stop_deadline_s": table["deadline_s"]} if "deadline_s" in table else {})}


def _load(table: Mapping[str, Any], where: str) -> LoadPlan:
    values = dict(table)
    slo_ms, arrivals = values.pop("slo_ms", None), values.pop("arrivals", "random")
    if values.get("rounds", LEAST_ROUNDS) < LEAST_ROUNDS:
        raise ConfigError(f"{where}.rounds: fewer than {LEAST_ROUNDS} tell nothing", "leave it out, or write more")
    return LoadPlan(**values, slo_s=slo_ms and slo_ms / 1000, recorded=arrivals == "recorded")
