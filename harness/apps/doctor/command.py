"""``doctor``: whether this machine and these environments are fit for a run."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_running, add_sides
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "doctor",
    "say whether this machine can run the gate; installs nothing",
    "Say whether this machine can run the gate: disk, memory, cores, debuggers, GPU and driver, each with what it "
    "means and what to do. Builds and installs nothing.",
    (
        ("2.1.2 2.6.0", "for these releases"),
        ("--env old=/opt/torch21/bin/python --new 2.6.0", "with a ready-made interpreter"),
    ),
    "0 ready, 3 an environment cannot be provisioned here",
    "guide/doctor.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.core.plan import RUNTIMES
    from harness.report.formats import CHECKUP

    command.add_argument("named", nargs="*", metavar="RELEASE", help="releases, or NAMEs of --env (default: the pair)")
    add_sides(command)
    command.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    add_running(command, "--device", "--jobs")
    command.add_argument("--runtime", choices=RUNTIMES, help="which worker initializes and is timed")
    add_format(command, CHECKUP.names)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.doctor.doctor import doctor
    from harness.report.formats import CHECKUP

    checkup = doctor(project, parsed.named)
    say(CHECKUP.render(parsed.format, checkup, shown()))
    return checkup
