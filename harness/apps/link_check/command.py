"""``link-check``: binaries of a server against the LibTorch of two releases."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "link-check",
    "say whether a C++ server links with another LibTorch; builds and runs nothing",
    "Read which of LibTorch's symbols executables and shared libraries need, and what the new release has in place of"
    " those that are gone. Nothing is built, installed or run.",
    (
        ("server --new 2.6.0", "the server's executable; the old release is read from its symbols"),
        ("build/ ops/libmyops.so --old 2.1.2 --new 2.6.0", "all binaries of a folder, and a custom operator"),
        ("server --new 2.6.0 --source build/", "which of the changes your own code has to follow"),
        ("server --new /opt/libtorch-2.6 --image rootfs/", "a LibTorch of your own, in an unpacked image"),
    ),
    "0 all link and may run so, 1 one must be compiled again or changed, 4 it cannot be told",
    "guide/link-check.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import LINK_CHECK

    command.add_argument(
        "binaries", nargs="+", type=Path, metavar="BINARY", help="executables, shared libraries, or folders of them"
    )
    command.add_argument(
        "--old",
        metavar="RELEASE",
        help="what they were built against: a release, wheel, or LibTorch folder; default: the"
        " known release that has most of what they need",
    )
    command.add_argument("--new", required=True, metavar="RELEASE", help="what is to take its place")
    command.add_argument(
        "--source",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="the binaries' C++ code: what it does not name"
        " is needed by LibTorch's own inlined code, and compiling again will do",
    )
    command.add_argument(
        "--image", type=Path, metavar="DIR", help="look for libraries in this unpacked image, not on this machine"
    )
    add_format(command, LINK_CHECK.names, "sarif: for code scanning")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.link_check.link_check import link_check
    from harness.report.formats import LINK_CHECK

    checked = link_check(
        project, parsed.binaries, old=parsed.old, new=parsed.new, image=parsed.image, source=parsed.source
    )
    say(LINK_CHECK.render(parsed.format, checked, shown()))
    return checked
