"""``doctor``: whether this machine and these environments are fit for a run."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import add_running, add_sides, options_of
from harness.cli.terminal import say, shown
from harness.core.plan import RUNTIMES
from harness.report.formats import CHECKUP

HELP = CommandHelp(
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
    """Add which releases this machine is to be fit for."""
    command.add_argument("named", nargs="*", metavar="RELEASE", help="releases, or NAMEs of --env (default: the pair)")
    add_sides(command)
    command.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    add_running(command, "--device", "--jobs")
    command.add_argument("--runtime", choices=RUNTIMES, help="which worker initializes and is timed")
    command.add_argument("--format", choices=CHECKUP.names, default="console", help="text, or all of it for a program")


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Look at the machine before a run."""
    from harness.apps.doctor.checks import exit_code
    from harness.run.doctor import doctor

    found = doctor(options_of(parsed, arguments), parsed.named)
    say(CHECKUP.render(parsed.format, found, shown()))
    return exit_code(found)
