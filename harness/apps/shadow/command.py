"""``shadow``: a team's own server in two releases, under its own requests."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_out, add_sides
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "shadow",
    "start your own server in both releases, and send it your own requests",
    "Start a server as its file says, with the old and with the new release, send both the same requests and compare"
    " the answers, the time and memory until it is ready, whether memory grows, and what becomes of requests in flight"
    " when it is stopped.",
    (
        ("server.toml --new 2.6.0 --requests requests.jsonl", "all of it; the old release is the project's"),
        ("server.toml --old 2.1.2 --new 2.6.0", "only whether it starts and stops as before"),
    ),
    "0 the new server does what the old one did, 1 it does not, 3 environment not provisioned, 4 it cannot be told",
    "guide/shadow.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import SHADOW

    command.add_argument("server", type=Path, metavar="SERVER", help="file that says how the server is started")
    add_sides(command)
    command.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="ready-made interpreter; NAME may be old or new",
    )
    command.add_argument("--requests", type=Path, metavar="FILE", help="recorded requests; without: none is sent")
    command.add_argument(
        "--most", type=_count, default=1000, metavar="N", help="of them so many, of every kind (default: 1000)"
    )
    command.add_argument(
        "--allow-same-torch",
        action="store_true",
        default=None,
        help="one torch on both sides, to see the noise; never green",
    )
    add_out(command)
    add_format(command, SHADOW.names)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text}")
    return int(text)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.shadow.shadow import shadow
    from harness.report.formats import SHADOW

    result = shadow(project, parsed.server, requests=parsed.requests, most=parsed.most)
    say(SHADOW.render(parsed.format, result, shown(result.folder)))
    return result
