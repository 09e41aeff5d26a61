"""``gate``: a finished run, judged by another policy."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_baseline, add_format, add_out, add_policy, add_policy_keys, add_verbose

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "gate",
    "judge a finished run again, by another policy; needs no torch",
    "Judge a finished run again, by another policy or other waivers, without torch or environments; it may be a "
    "folder downloaded from CI. Shows what changed against the run's own decision.",
    (
        ("last", "by the policy and the waivers that are configured now"),
        ("last --policy policy.toml", "by those of a file"),
        ("last --set limits.steady=1.10", "by another limit; says what is to be timed again for it"),
    ),
    "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
    "guide/policy.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import RUN

    command.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'; one from CI will do")
    add_policy(command)
    add_policy_keys(command)
    command.add_argument("--waivers", metavar="FILE", help="waivers, in place of golden/waivers.toml")
    add_baseline(command)
    add_format(command, RUN.names, "as of report")
    add_verbose(command)
    add_out(command)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.gate.gate import gate
    from harness.apps.report.command import show_run

    finished = gate(project, parsed.run, waivers=parsed.waivers, baseline=parsed.baseline)
    return show_run(finished, parsed.format, verbose=parsed.verbose)
