"""``record``: the requests that a server gets, as a file that ``shadow`` sends again."""

import argparse
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.terminal import say
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "record",
    "write the requests that a server gets to a file, on their way to it",
    "Stand between clients and a server of HTTP/1: pass every byte on as it is, and write the requests with their "
    "times of arrival to a file that shadow sends to both releases. Cookies, keys and tokens in headers are never "
    "written. Ctrl-C or SIGTERM ends it, once the requests under way have their answers.",
    (
        ("--to http://localhost:8000 --out r.jsonl", "clients send to 8080 instead of 8000"),
        ("--to http://localhost:8000 --out r.jsonl --share 0.1", "one in ten, drawn"),
    ),
    "0 done",
    "guide/record.md",
)
LOCAL = "127.0.0.1"
UNITS = {"MB": 10**6, "GB": 10**9}


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.core.traffic import PROTOCOLS

    command.add_argument(
        "--listen", default="8080", metavar="[HOST:]PORT", help=f"where clients send to (default: {LOCAL}:8080)"
    )
    command.add_argument("--to", required=True, metavar="URL", help="the server, such as http://localhost:8000")
    command.add_argument("--out", required=True, metavar="FILE", help="a new file")
    command.add_argument("--share", default="1", metavar="X", help="of the requests that are written (default: 1, all)")
    command.add_argument("--most", default="1GB", metavar="SIZE", help="of the file, such as 200MB (default: 1GB)")
    command.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="NAME",
        help="a field of JSON, tensor or parameter that is not stored",
    )
    command.add_argument("--protocol", choices=PROTOCOLS, default="http", help="what the server speaks (default: http)")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.machine.packages import require

    require("record", ("httptools", "uvloop"), "server")
    from harness.apps.record.record import RecordingPlan, record
    from harness.core.text import counted
    from harness.report.words.phrases import size

    plan = RecordingPlan(
        listen=_address(parsed.listen),
        to=_server(parsed.to),
        file=Path(parsed.out),
        share=_share(parsed.share),
        most_bytes=_size(parsed.most),
        redacted=frozenset(parsed.redact),
        protocol=parsed.protocol,
    )
    recording = record(project, plan)
    written = f"{counted(recording.written, 'request')} of {recording.passed:,}, {size(recording.size_bytes)}"
    lines = [f"{recording.file}: {written}"]
    lines += [f"not written: {count:,} ({why})" for why, count in sorted(recording.lost.items())]
    if recording.full:
        lines.append(f"the file reached --most {parsed.most}; later requests were passed on and not written")
    send = project.command("shadow", "server.toml", "--requests", recording.file)
    say("\n".join([*lines, f"send them to both releases: {send}"]) + "\n")
    return None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(
            f"--listen {text}: expected [HOST:]PORT", "for example --listen 8080, or --listen 0.0.0.0:8080"
        )
    return host.strip("[]") or LOCAL, int(port)


def _server(text: str) -> tuple[str, int]:
    wanted = "write the server's own address, such as http://localhost:8000"
    try:
        url = urllib.parse.urlsplit(text)
        port = url.port
    except ValueError:
        raise ConfigError(f"--to {text}: no URL", wanted) from None
    if url.scheme == "https":
        raise ConfigError(
            f"--to {text}: what is encrypted cannot be read on its way",
            "record behind the end of TLS, where it is http",
        )
    if url.scheme != "http" or not url.hostname or url.path.strip("/") or url.query:
        raise ConfigError(f"--to {text}: expected http://HOST:PORT", wanted)
    return url.hostname, port or 80


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ConfigError(f"--share {text}: expected a share above 0, at most 1", "for example --share 0.01")
    return share


def _size(text: str) -> int:
    number, unit = text[:-2].strip(), text[-2:].upper()
    try:
        size = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        size = 0.0
    if not 1 <= size < 2**63:
        raise ConfigError(f"--most {text}: expected a size", "for example --most 200MB, or --most 2GB")
    return int(size)
